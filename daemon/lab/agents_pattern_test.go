package lab

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

// settled is when the lab's workers are out of their slow start.
const settled = 100 * time.Second

// ofOneAgent is n sessions of one agent, .4 s apart: a title, and beside it eight turns of 400 tokens each, a tenth of
// which is the answer, behind 31 KB of tools and system text.
func ofOneAgent(n int, gap time.Duration) (l traffic.Load) {
	const shared = 1
	number := uint64(1000)
	next := func() uint64 { number++; return number }
	for i := range n {
		c := traffic.Chat{Session: next(), Start: settled + time.Duration(i)*400*time.Millisecond}
		c.Turns = append(c.Turns, traffic.Turn{Parts: []traffic.Part{{ID: 7, Tokens: 590}, {ID: next(), Tokens: 10}},
			Answer: next(), Output: 10})
		parts := []traffic.Part{{ID: shared, Tokens: 7750}}
		for k := range 8 {
			parts = append(parts, traffic.Part{ID: next(), Tokens: 360})
			t := traffic.Turn{Parts: parts[:len(parts):len(parts)], Answer: next(), Output: 40}
			if k > 0 {
				t.After, t.Gap = []int{k}, gap
			}
			c.Turns = append(c.Turns, t)
			parts = append(parts, traffic.Part{ID: t.Answer, Tokens: 40, Answer: true})
		}
		l.Chats = append(l.Chats, c)
	}
	return l
}

// playThree runs a load on three workers that prefill 30 KB a second.
func playThree(t *testing.T, strategy string, l traffic.Load) *trial.Run {
	t.Helper()
	sc, err := setup.Read("A")
	if err != nil {
		t.Fatal(err)
	}
	sc.Workers, sc.Engine.PrefillRate, sc.Engine.Attention, sc.Engine.PoolPrefill = 3, 7500, 1e9, 0
	found, err := Find(strategy)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sc.World(l)
	if err != nil {
		t.Fatal(err)
	}
	c.Seed = 1
	c.Engine, err = c.Engine.Complete()
	if err != nil {
		t.Fatal(err)
	}
	r, err := world.Run(t.Context(), c, func(number int) (world.Router, error) {
		return found[0].router(t.Context(), new(served.Loader), sc, &c, member{number: number})
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSessionsOfOneAgent: all sessions of an agent begin alike, so that the worker which has its prompt first would get
// every one. They are spread for the turns that follow, at the cost of a copy of the prompt a worker.
func TestSessionsOfOneAgent(t *testing.T) {
	f := func(n int, gap time.Duration, mean, hit float64, used int) {
		t.Helper()
		r := playThree(t, "native:prefixaware", ofOneAgent(n, gap))
		workers, sum, cached, prompt := map[int]int{}, 0.0, 0, 0
		for i := range r.Outcomes {
			o := &r.Outcomes[i]
			workers[o.Worker]++
			sum += o.TTFT()
			cached += o.Cached
			prompt += o.Prompt
		}
		if got := sum / float64(len(r.Outcomes)); got > mean {
			t.Errorf("%d sessions, %v between turns: the first token after %.3f s; want %.2f at most", n, gap, got, mean)
		}
		if got := float64(cached) / float64(prompt); got < hit {
			t.Errorf("%d sessions, %v between turns: %.3f of the tokens were cached; want %.2f", n, gap, got, hit)
		}
		if len(workers) != used {
			t.Errorf("%d sessions, %v between turns: requests by worker %v; want %d workers", n, gap, workers, used)
		}
	}
	f(9, 0, .20, .92, 3)
	f(9, 400*time.Millisecond, .20, .92, 3)
	f(1, 0, .17, .85, 2) // its title shares nothing, and is computed elsewhere
	f(1, 400*time.Millisecond, .17, .85, 2)
}
