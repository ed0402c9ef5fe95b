package engine_test

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Two turns of a conversation on one worker: the second finds the first, reply included, in the cache.
func ExampleEngine() {
	e, err := engine.New(engine.Config{ShowEvery: time.Hour}) // only first tokens and ends are of interest
	if err != nil {
		panic(err)
	}
	prompt := engine.TextOfTokens(1, 8000)
	now := time.Duration(0)
	for turn := range 2 {
		q := engine.NewSequence(engine.AppendTokens(nil, prompt), "", 0, engine.BlockTokens)
		q.Owner = fmt.Sprintf("turn %d", turn+1)
		q.MaxTokens = 64
		if err := e.Submit(now, &q); err != nil {
			panic(err)
		}
		for at, ok := e.NextEvent(); ok; at, ok = e.NextEvent() {
			for _, event := range e.Advance(at) {
				switch event.Kind {
				case engine.FirstToken:
					ttft := (event.At - q.Times().Arrived).Round(time.Millisecond)
					fmt.Printf("%v: first token after %v, %d of %d tokens cached\n",
						event.Seq.Owner, ttft, q.CachedTokens(), q.PromptTokens())
				case engine.Finished:
					fmt.Printf("%v: %v after %d tokens\n", event.Seq.Owner, q.Finish(), q.OutputTokens())
				}
			}
			now = at
		}
		prompt += q.Reply.Text(q.OutputTokens()) + "and what follows from that?"
	}
	fmt.Printf("%d steps\n", e.Stats().Steps)
	// Output:
	// turn 1: first token after 598ms, 0 of 8000 tokens cached
	// turn 1: length after 64 tokens
	// turn 2: first token after 12ms, 8048 of 8071 tokens cached
	// turn 2: length after 64 tokens
	// 128 steps
}
