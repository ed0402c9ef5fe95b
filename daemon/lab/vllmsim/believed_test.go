package vllmsim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// believer is the router's side of one worker: its subscriber and index.
type believer struct {
	index *holdings.Index
	sub   *kvevents.Subscriber
}

func believe(t *testing.T, at events.Source) *believer {
	b := &believer{index: holdings.New(holdings.Config{})}
	w := b.index.Writer(0)
	b.sub = kvevents.New(kvevents.Config{Endpoint: at.Endpoint, Replay: *at.Replay, Sink: w,
		OnState: func(s kvevents.State) { w.SetLive(s == kvevents.Live) }})
	ctx, end := context.WithCancel(context.Background())
	var over sync.WaitGroup
	over.Go(func() { b.sub.Run(ctx) })
	t.Cleanup(func() {
		end()
		over.Wait()
	})
	return b
}

// tokens returns what the router believes the worker to hold of a prompt, the CPU tier included.
func (b *believer) tokens(salt string, ids []uint32) holdings.Held {
	var q holdings.Query
	out := make([]holdings.Held, 1)
	q.Reset("", salt, ids)
	b.index.Match(&q, []uint32{0}, out)
	return out[0]
}

// TestBelievedIsCached plays random chats against a worker that is too small for them, through faults of its events.
// The router's own subscriber and index believe before each request what the worker then reports as cached, to the
// token.
func TestBelievedIsCached(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"maps", Config{}},
		{"arrays", Config{KVEvents: KVEvents{Form: events.Array}}},
		{"cpu tier", Config{CPUTokens: 40000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := c.cfg
			cfg.KVEvents.Endpoint = "tcp://127.0.0.1:0"
			cfg.KVEvents.Replay = "tcp://127.0.0.1:0"
			cfg.KVTokens = 4000
			cfg.Speed = 2000
			cfg.DevMode = true
			s := newTiny(t, cfg)
			p := &chats{t: t, s: s, rng: rand.New(rand.NewPCG(7, uint64(len(c.name)))), talks: make([][]message, 6)}
			p.router = believe(t, s.process.Load().infer.ranks.drivers[0].events.Source())
			for _, mode := range []string{FaultNone, FaultEventsGap, FaultEventsDuplicate, FaultEventsReorder, FaultEventsCut,
				FaultEventsRestart, FaultNone} {
				for range 2 { // the subscriber rations replays, so more would wait for it
					if err := s.SetFault(Fault{Mode: mode, Count: 2}); err != nil {
						t.Fatal(err)
					}
					if mode != FaultNone {
						p.turn(false)
						p.turn(false)
					}
					if err := s.SetFault(Fault{Mode: FaultNone}); err != nil {
						t.Fatal(err)
					}
					p.turn(false) // shows the hole, if there is one
					for range 5 {
						p.turn(true)
					}
				}
			}
			if p.hits < 20 {
				t.Errorf("%d turns found something cached; the chats try too little", p.hits)
			}
		})
	}
}

// chats are conversations with one worker, and what the router believes of it.
type chats struct {
	t      *testing.T
	s      *Server
	rng    *rand.Rand
	router *believer
	talks  [][]message
	hits   int
}

// turn plays one more turn of one of the chats. With exact it waits until the router has read all, and then compares
// what is believed with what the answer reports as cached.
func (p *chats) turn(exact bool) {
	p.t.Helper()
	if p.rng.IntN(15) == 0 {
		do(p.s, "POST", "/reset_prefix_cache?reset_external=true", "")
		exact = false // reported with the next step
	}
	i := p.rng.IntN(len(p.talks))
	if len(p.talks[i]) > 8 {
		p.talks[i] = nil
	}
	talk := append(p.talks[i], message{Role: "user", Content: engine.TextOfTokens(p.rng.Uint64(), 1+p.rng.IntN(200))})
	var believed int
	salt := fmt.Sprint("salt-", i%2)
	if exact {
		_, sent := settle(p.t, p.s.process.Load().infer.ranks.drivers[0])
		waittest.Until(p.t, "the router has read all", func() bool {
			st := p.router.sub.Stats()
			return st.State == kvevents.Live && st.Next == sent
		})
		believed = int(p.router.tokens(salt, chatTokens(nil, talk, true)).Local)
	}
	body, err := json.Marshal(map[string]any{"messages": talk, "max_tokens": 1 + p.rng.IntN(60), "cache_salt": salt})
	if err != nil {
		p.t.Fatal(err)
	}
	a := answerOf(p.t, p.s, "/v1/chat/completions", string(body))
	if exact && believed != a.Usage.Details.Cached {
		p.t.Errorf("the router believes %d of %d tokens, %d were cached", believed, a.Usage.Prompt, a.Usage.Details.Cached)
	}
	if exact && believed > 0 {
		p.hits++
	}
	p.talks[i] = append(talk, message{Role: "assistant", Content: a.Choices[0].Message.Content})
}
