package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// simulation is the stage of the caches in virtual time: two simulated engines as small as the real ones, the router's
// own code before them, the same traffic.
type simulation struct {
	ctx      context.Context
	loader   *served.Loader
	strategy served.Spec
	kvTokens int
	engines  [2]*engine.Engine
	told     [2][]engine.Batch // all events so far, which a new router is replayed
	routers  []*served.Router
	chosen   *route.Choice // of the request at hand
	now      time.Duration
	ticked   time.Duration
	count    int // routers so far
	chats    map[int]*simulatedChat
}

// simulatedChat is what a chat has so far.
type simulatedChat struct {
	text string
	ids  []uint32
}

// What a message costs beside its words, in tokens of the tiny model's template, and what two of the words cost that
// are no tokens of its vocabulary.
var (
	frameTokens  = map[string]int{"system": 11, "user": 7, "assistant": 11} // the first has <s> before it
	promptTokens = 9
	longWords    = map[string]int{"bridge": 7, "orchard": 6}
)

// checkSimulated is checkSituations in virtual time: no vLLM and no clock, the same figures each time.
func checkSimulated(ctx context.Context, o options) error {
	l, err := served.NewLoader(ctx)
	if err != nil {
		return err
	}
	defer l.Close(ctx)
	results := make([]result, len(situations))
	for i := range situations {
		for k := range o.seeds {
			var sums []sum
			for _, name := range o.strategies {
				s, err := simulate(ctx, l, "native:"+name, &situations[i], drawTraffic(o.seed+uint64(k), o.requests))
				if err != nil {
					return fmt.Errorf("%s, %s: %w", situations[i].name, name, err)
				}
				sums = append(sums, s)
			}
			results[i] = append(results[i], sums)
		}
	}
	return conclude(o.strategies, results)
}

// simulate plays a traffic in a situation under a strategy.
func simulate(ctx context.Context, l *served.Loader, strategy string, s *situation, traffic []turn) (sum, error) {
	spec, err := served.Read(strategy)
	if err != nil {
		return sum{}, err
	}
	g := &simulation{ctx: ctx, loader: l, strategy: spec, kvTokens: s.kvTokens, chats: map[int]*simulatedChat{}}
	defer g.close()
	for i := range g.engines {
		g.engines[i], err = engine.New(engine.Config{KVTokens: smallBlocks * 32, BlockTokens: 32, MaxModelLen: smallLength,
			Changes: true, ShowEvery: time.Hour})
		if err != nil {
			return sum{}, err
		}
	}
	for range max(1, s.routers) {
		if err := g.serve(); err != nil {
			return sum{}, err
		}
	}
	var all []*played
	for i := range traffic {
		if i == len(traffic)/2 && s.simulated != nil {
			if err := s.simulated(g); err != nil {
				return sum{}, err
			}
		}
		t := &traffic[i]
		one, err := g.play(t, s.past != nil && s.past(t))
		if err != nil {
			return sum{}, fmt.Errorf("request %d: %w", i, err)
		}
		all = append(all, one)
	}
	return sumOf(routed(all)), nil
}

func (g *simulation) close() {
	for _, r := range g.routers {
		r.Close()
	}
	g.routers = nil
}

// restart begins another router in the place of those before.
func (g *simulation) restart() error {
	g.close()
	return g.serve()
}

// reset empties the cache of one engine. As in vLLM its event comes with the next step.
func (g *simulation) reset() error {
	if !g.engines[0].ResetCache(false, false) {
		return errors.New("the cache cannot be reset")
	}
	return nil
}

// serve adds a router. It gets the events of before, as from a replay socket.
func (g *simulation) serve() error {
	g.count++
	strategy, err := g.loader.Load(g.ctx, &g.strategy, uint64(g.count), nil)
	if err != nil {
		return err
	}
	r := served.New(g.ctx, served.Config{Strategy: strategy, Block: 32, KVTokens: g.kvTokens, Scrape: time.Second,
		Seed: uint64(g.count), Seen: func(_ *trial.Request, c *route.Choice) { g.chosen = c }})
	for i, e := range g.engines {
		r.Up(g.now, i)
		s := e.Stats()
		r.Scraped(g.now, i, &s)
		if r.Follows() {
			r.Changed(g.now, i, g.told[i])
		}
	}
	g.routers = append(g.routers, r)
	return nil
}

// tick lets pass what passes each second.
func (g *simulation) tick() {
	for g.now-g.ticked >= time.Second {
		g.ticked += time.Second
		for _, r := range g.routers {
			r.Tick(g.now)
			for i, e := range g.engines {
				s := e.Stats()
				r.Scraped(g.now, i, &s)
			}
		}
	}
}

// chatOf returns a chat, begun with its system prompt.
func (g *simulation) chatOf(t *turn) *simulatedChat {
	c := g.chats[t.chat]
	if c == nil {
		c = new(simulatedChat)
		c.add("system", t.system, wordIDs(t.system))
		g.chats[t.chat] = c
	}
	return c
}

// add appends a message.
func (c *simulatedChat) add(role, text string, ids []uint32) {
	c.text += "<|start|>" + role + " " + text + "<|end|> "
	for i := range frameTokens[role] {
		c.ids = append(c.ids, uint32(len(role)*100+i))
	}
	c.ids = append(c.ids, ids...)
}

// wordIDs gives a text a token for each word.
func wordIDs(text string) (ids []uint32) {
	for word := range strings.FieldsSeq(text) {
		for i := range max(1, longWords[word]) {
			ids = append(ids, uint32(10_000+100*slices.Index(words, word)+i))
		}
	}
	return ids
}

// play sends one request.
func (g *simulation) play(t *turn, past bool) (*played, error) {
	c := g.chatOf(t)
	c.add("user", t.text, wordIDs(t.text))
	ids := slices.Clone(c.ids)
	for i := range promptTokens {
		ids = append(ids, uint32(20_000+i))
	}
	seq := engine.NewSequence(ids, "", uint64(t.seed), 32)
	seq.MaxTokens = t.tokens
	answer, heard := answerOf(&seq, t)
	q := &world.Request{Chat: &traffic.Chat{}, Request: trial.Request{Prompt: len(ids), MaxTokens: t.tokens}, IDs: ids,
		Answer: answer}
	done := &played{turn: *t, prompt: len(ids), past: past}
	at, r := t.home, g.routers[t.router%len(g.routers)]
	if !past {
		var p world.Placement
		at, p = r.Choose(g.now, q, []byte(c.text+"<|start|>assistant "))
		if p != world.Sent {
			return nil, errors.New("no worker took it")
		}
		done.believed = g.chosen.Believed()
	}
	if err := g.run(at, &seq, func() {
		if !past {
			r.First(g.now, q)
		}
	}); err != nil {
		return nil, err
	}
	done.cached = seq.CachedTokens()
	if !past {
		r.End(g.now, q, trial.End{Status: trial.Answered, Output: t.tokens, Cached: done.cached})
	}
	c.add("assistant", answer, heard)
	g.now += 5 * time.Millisecond
	g.tick()
	return done, nil
}

// answerOf returns the text of an answer, and the tokens that it is when it comes back as a message.
func answerOf(q *engine.Sequence, t *turn) (text string, ids []uint32) {
	var b strings.Builder
	rng := rand.New(rand.NewPCG(uint64(t.seed), 7))
	for i := range t.tokens {
		id := q.Reply.Token(i)
		if t.raw { // it tokenizes to something else
			ids = append(ids, id^0x5a5a5a)
			fmt.Fprintf(&b, "%x", rng.IntN(1<<16))
			continue
		}
		ids = append(ids, id)
		b.WriteByte(' ')
		b.WriteString(words[rng.IntN(len(words))])
	}
	return b.String(), ids
}

// run runs a request to its end, and has the routers told what changed.
func (g *simulation) run(at int, q *engine.Sequence, first func()) error {
	e := g.engines[at]
	if err := e.Submit(g.now, q); err != nil {
		return err
	}
	for next, more := e.NextEvent(); more; next, more = e.NextEvent() {
		g.now = max(g.now, next)
		for _, event := range e.Advance(next) {
			if event.Kind == engine.FirstToken {
				first()
			}
		}
		batches := e.TakeBatches()
		g.told[at] = append(g.told[at], batches...)
		for _, r := range g.routers {
			if r.Follows() {
				r.Changed(g.now, at, batches)
			}
		}
	}
	if q.Finish() == engine.Unfinished {
		return fmt.Errorf("worker %d does not end", at)
	}
	return nil
}
