package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// kind is a sort of request that a worker computes an answer to.
type kind struct {
	path string
	body func(text string, tokens int) object
}

// kinds are those of the load: every endpoint of a generating model, streamed and not. Chats and completions go on to
// the wanted length; the others have no ignore_eos, and at temperature 0 this model does not end at its first token.
var kinds = []kind{
	{"/v1/chat/completions", func(text string, n int) object { return chatBody(said("user", text), n, false) }},
	{"/v1/chat/completions", func(text string, n int) object { return chatBody(said("user", text), n, true) }},
	{"/v1/completions", func(text string, n int) object {
		return object{"model": "tiny", "prompt": text, "max_tokens": n, "ignore_eos": true, "temperature": 0}
	}},
	{"/v1/completions", func(text string, n int) object {
		return object{"model": "tiny", "prompt": text, "max_tokens": n, "ignore_eos": true, "temperature": 0, "stream": true,
			"stream_options": object{"include_usage": true}}
	}},
	{"/v1/responses", func(text string, n int) object {
		return object{"model": "tiny", "input": text, "max_output_tokens": n, "store": false, "temperature": 0}
	}},
	{"/v1/responses", func(text string, n int) object {
		return object{"model": "tiny", "input": text, "max_output_tokens": n, "store": false, "temperature": 0,
			"stream": true}
	}},
	{"/v1/messages", func(text string, n int) object {
		return object{"model": "tiny", "messages": said("user", text), "max_tokens": n, "temperature": 0}
	}},
	{"/v1/messages", func(text string, n int) object {
		return object{"model": "tiny", "messages": said("user", text), "max_tokens": n, "temperature": 0, "stream": true}
	}},
	{"/v1/completions", func(text string, n int) object {
		return object{"model": "tiny", "prompt": ids(text), "max_tokens": n, "ignore_eos": true, "temperature": 0}
	}},
	{"/v1/completions", func(text string, n int) object {
		return object{"model": "tiny", "prompt": ids(text), "max_tokens": n, "ignore_eos": true, "temperature": 0,
			"stream":         true,
			"stream_options": object{"include_usage": true}}
	}},
	{"/tokenize", func(text string, _ int) object { return object{"model": "tiny", "prompt": text} }},
}

// names are those of kinds.
var names = []string{"chat", "chat-stream", "completions", "completions-stream", "responses", "responses-stream",
	"messages", "messages-stream", "completions-ids", "completions-ids-stream", "tokenize"}

// ids makes tokens of a text's bytes. Such a prompt passes vLLM's tokenizer by, which makes a difference in a drain.
func ids(text string) []int {
	var out []int
	for _, b := range []byte(text) {
		out = append(out, 100+int(b))
	}
	return out
}

func said(role, content string) []any { return []any{object{"role": role, "content": content}} }

// chatBody asks for exactly so many tokens.
func chatBody(messages []any, tokens int, stream bool) object {
	b := object{"model": "tiny", "messages": messages, "max_tokens": tokens, "ignore_eos": true, "temperature": 0,
		"stream": stream}
	if stream {
		b["stream_options"] = object{"include_usage": true}
	}
	return b
}

var words = strings.Fields("ferry harbour timber lantern meadow signal copper window river winter bridge orchard")

// fresh is a text of n words that no worker has seen.
func fresh(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%x:", rand.Uint64())
	for range n {
		b.WriteByte(' ')
		b.WriteString(words[rand.IntN(len(words))])
	}
	return b.String()
}

// load is a steady trickle of short requests of all kinds, each with a new prompt, so that both workers get some.
type load struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	answers []loaded // guarded by mu
}

type loaded struct {
	*answer
	kind int
}

// startLoad runs so many clients, each with one request at a time and a short pause between two.
func startLoad(ctx context.Context, c *client, clients int) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel}
	for first := range clients {
		l.wg.Go(func() {
			for k := first; ctx.Err() == nil; k = (k + 1) % len(kinds) {
				// The request itself is not cancelled at the end of the load: it ends by itself, or by the deadline.
				limit, done := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
				a := c.post(limit, kinds[k].path, kinds[k].body(fresh(20), 8))
				done()
				l.mu.Lock()
				l.answers = append(l.answers, loaded{a, k})
				l.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	return l
}

// firstFrom waits for a good answer of a worker and returns when it came.
func (l *load) firstFrom(ctx context.Context, worker string, since time.Time) (time.Time, error) {
	for {
		l.mu.Lock()
		for _, a := range l.answers {
			if a.sent.After(since) && a.worker() == worker && a.fault() == nil {
				l.mu.Unlock()
				return a.first, nil
			}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("worker %s answered nothing: %w", worker, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// end stops the clients and returns all answers.
func (l *load) end() []loaded {
	l.cancel()
	l.wg.Wait()
	return l.answers
}

// tally counts answers; an error lists the sorts of failure.
func tally(answers []loaded) (figure string, err error) {
	retried, failed, by, sorts := 0, 0, map[string]int{}, map[string]int{}
	for _, a := range answers {
		by[a.worker()]++
		if r := a.header.Get("X-Warmpath-Retries"); r != "" && r != "0" {
			retried++
		}
		if err := a.fault(); err != nil {
			failed++
			sorts[fmt.Sprintf("%s at %q: %.300v", names[a.kind], a.worker(), err)]++
		}
	}
	if failed > 0 {
		list := fmt.Sprintf("%d of %d requests failed:", failed, len(answers))
		for _, sort := range slices.Sorted(maps.Keys(sorts)) {
			list += fmt.Sprintf("\n      %d x %s", sorts[sort], sort)
		}
		return "", errors.New(list)
	}
	return fmt.Sprintf("%d new requests %s, 0 failed, %d retried", len(answers),
		strings.TrimPrefix(fmt.Sprint(by), "map"), retried), nil
}
