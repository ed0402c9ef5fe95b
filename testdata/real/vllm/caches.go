package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The engines of these checks are small enough to evict: 128 blocks of 32 tokens. vLLM 0.32 keeps one of the blocks for
// itself and starts only if the longest request fits in the others.
const (
	smallBlocks = 128
	smallLength = 4000
)

// stage is what the checks of caches play on.
type stage struct {
	options
	workers  [2]*vllm
	listener *listener
	dir      string
	ports    []int // two a router
	traffic  []turn
	whole    []int
	routers  int    // started so far: names their files
	pool     string // lines of their pools
}

// checkCaches compares what the router believes of the workers' caches with what the engines find in them, and the hit
// rates that strategies reach where routing by one's own history goes wrong.
func checkCaches(ctx context.Context, o options, dir string) error {
	ports, err := freePorts(6)
	if err != nil {
		return err
	}
	g := &stage{options: o, dir: dir, ports: ports[2:], traffic: drawTraffic(o.seed, o.requests)}
	defer g.close()
	if err := g.open(ctx, ports); err != nil {
		return err
	}
	if o.record != "" {
		return g.recordCaches(ctx, o.record)
	}
	var failed error
	if o.parts != "situations" {
		failed = g.checkBelieved(ctx)
	}
	if o.parts != "believed" {
		failed = errors.Join(failed, g.checkSituations(ctx))
	}
	return failed
}

// open starts the workers side by side and waits for their first answers. A first forward pass compiles for up to a
// minute, also with --enforce-eager.
func (g *stage) open(ctx context.Context, ports []int) error {
	s := setup{python: g.python, model: g.model, dir: g.dir, drain: time.Second, blocks: smallBlocks, length: smallLength,
		events: true}
	began := time.Now()
	err := g.start(ctx, ports, s)
	if err != nil {
		return err
	}
	g.whole, err = g.workers[0].wholeWords(ctx)
	if err != nil {
		return err
	}
	g.listener, err = listen(g.python, filepath.Join("testdata", "real", "vllm", "events.py"), g.dir, g.workers[:])
	if err != nil {
		return err
	}
	a := g.workers[0].client.send(ctx, "GET", "/version", nil, nil)
	fmt.Printf("ok    %-15s two workers of vLLM %s serve after %.0f s, %d blocks of 32 tokens each\n", "start",
		a.text("version"), time.Since(began).Seconds(), smallBlocks)
	return g.empty(ctx)
}

// start starts the workers side by side, and waits for their first answers.
func (g *stage) start(ctx context.Context, ports []int, s setup) error {
	if err := g.engage(s, ports); err != nil {
		return err
	}
	for _, w := range g.workers {
		if _, err := w.ready(ctx); err != nil {
			return err
		}
		if err := w.warm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// engage starts both workers, or takes those that run already.
func (g *stage) engage(s setup, ports []int) error {
	running := strings.Fields(g.attach)
	for i := range g.workers {
		if g.attach == "" {
			w, err := s.start(fmt.Sprintf("w%d", i+1), ports[i])
			if err != nil {
				return err
			}
			g.workers[i] = w
			continue
		}
		if len(running) != len(g.workers) {
			return fmt.Errorf("-attach names %d workers, not %d", len(running), len(g.workers))
		}
		id, rest, _ := strings.Cut(running[i], "=")
		where := strings.Split(rest, ",")
		if len(where) != 3 {
			return fmt.Errorf("-attach: %q is not ID=URL,EVENTS,REPLAY", running[i])
		}
		g.workers[i] = &vllm{id: id, url: where[0], events: where[1], replay: where[2], client: newClient(where[0])}
	}
	return nil
}

func (g *stage) close() {
	for _, w := range g.workers {
		if w != nil && w.cmd != nil {
			w.kill()
		}
	}
	if g.listener != nil {
		g.listener.kill()
	}
}

// warm sends a worker two blocks of tokens that no traffic has.
func (w *vllm) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	a := w.client.post(ctx, "/v1/completions", object{"model": "tiny", "prompt": ids(fresh(12))[:70], "max_tokens": 2})
	if err := a.fault(); err != nil {
		return fmt.Errorf("worker %s: %w", w.id, err)
	}
	return nil
}

// reset empties a worker's cache, without the router's knowledge.
func (w *vllm) reset(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if a := w.client.post(ctx, "/reset_prefix_cache", nil); a.err != nil || a.status != http.StatusOK {
		return fmt.Errorf("/reset_prefix_cache at %s: status %d, %w", w.id, a.status, a.err)
	}
	return nil
}

// empty empties all caches and waits until their event streams have told so. vLLM publishes a reset with the next
// store, so each worker is given one. The first attempt may be published before the listener's socket is connected.
func (g *stage) empty(ctx context.Context) error {
	for _, w := range g.workers {
		if err := w.reset(ctx); err != nil {
			return err
		}
		var err error
		for range 3 {
			before := len(g.listener.of(w.id))
			if err = w.warm(ctx); err != nil {
				return err
			}
			err = g.listener.waitBeyond(ctx, w.id, before)
			if err == nil {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// serve starts the n-th router of a run and waits until it has both workers, and has their caches if it follows them.
func (g *stage) serve(ctx context.Context, n int, strategy string, kvTokens int) (*router, error) {
	g.routers++
	r, err := serve(g.binary, g.dir, settings{name: fmt.Sprintf("router%d", g.routers), port: g.ports[2*n],
		admin: g.ports[2*n+1], strategy: strategy, kvTokens: kvTokens, events: follows(strategy), budget: g.budget,
		workers: g.workers[:], pool: g.pool})
	if err != nil {
		return nil, err
	}
	err = r.up(ctx, g.workers[:])
	if err == nil && follows(strategy) {
		err = r.live(ctx)
	}
	if err != nil {
		r.kill()
		return nil, err
	}
	return r, nil
}

// follows reports whether a strategy is given the workers' KV events.
func follows(strategy string) bool { return strategy == "kvaware" }

// play plays the traffic in a situation under a strategy, on emptied caches.
func (g *stage) play(ctx context.Context, s *situation, strategy string, stream bool) ([]*played, error) {
	if err := g.empty(ctx); err != nil {
		return nil, err
	}
	p := &player{workers: g.workers, stream: stream, past: s.past, whole: g.whole, said: map[int][]any{}}
	defer func() {
		for _, r := range p.routers {
			r.kill()
		}
	}()
	for n := range max(1, s.routers) {
		r, err := g.serve(ctx, n, strategy, s.kvTokens)
		if err != nil {
			return nil, err
		}
		p.routers = append(p.routers, r)
	}
	var all []*played
	for i, t := range g.traffic {
		if i == len(g.traffic)/2 && s.midway != nil {
			if err := s.midway(ctx, g, p, strategy); err != nil {
				return nil, err
			}
		}
		one, err := p.play(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
		all = append(all, one)
	}
	return all, g.listener.alive()
}

// routed leaves out what went past the router.
func routed(all []*played) []*played {
	return slices.DeleteFunc(slices.Clone(all), func(p *played) bool { return p.past })
}
