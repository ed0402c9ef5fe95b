package engine

import (
	"fmt"
	"slices"
	"time"
)

// Engine is one simulated worker: a paged KV cache, a scheduler and a model of time. It has no goroutine, no lock and
// no clock. Every instant is a simulated time since the engine's start, which the caller passes in. Not safe for
// concurrent use.
type Engine struct {
	cfg     Config
	now     time.Duration // of the last Advance
	sched   scheduler
	journal *journal
}

// New makes an engine with an empty cache.
func New(cfg Config) (*Engine, error) {
	cfg, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, journal: &journal{sums: newStats(cfg.MaxModelLen), gap: cfg.Gap}}
	e.sched = scheduler{cfg: &e.cfg, pool: newBlockPool(cfg.KVTokens / cfg.BlockTokens), journal: e.journal}
	e.sched.pool.log.on = cfg.Changes
	if cfg.CPUTokens > 0 {
		e.sched.cpu = NewTier(cfg.CPUTokens, cfg.ChunkTokens)
	}
	return e, nil
}

// Submit puts a sequence into the waiting queue. Nothing is computed before the next Advance. It returns an error, and
// submits nothing, where prompt and reply could not be held together.
func (e *Engine) Submit(now time.Duration, q *Sequence) error {
	if q.MaxTokens < 1 || q.prompt < 1 || q.prompt+q.MaxTokens > e.cfg.MaxModelLen || q.blockSize != e.cfg.BlockTokens {
		return fmt.Errorf("engine: %d tokens of prompt and up to %d of reply in blocks of %d; give at least one of each, "+
			"together at most %d, in blocks of %d", q.prompt, q.MaxTokens, q.blockSize, e.cfg.MaxModelLen, e.cfg.BlockTokens)
	}
	q.times.Arrived = now
	e.sched.waiting = append(e.sched.waiting, q)
	return nil
}

// Advance computes every step that has ended by now, starts the next one, and returns what has happened since the last
// call, in order. However far it strides, steps and their times are the same. The list is valid until the next call.
func (e *Engine) Advance(now time.Duration) []Event {
	e.journal.clear()
	e.now = now
	for e.sched.advance(now) {
	}
	e.show()
	return e.journal.events
}

// show adds an event for each running sequence that has tokens which no event has reported.
func (e *Engine) show() {
	for _, q := range e.sched.running {
		fresh := q.output > q.shown
		if fresh && (e.cfg.ShowEvery == 0 || q.shown == 0 || e.now-q.shownAt >= e.cfg.ShowEvery) {
			if q.shown > 0 || q.output > 1 {
				e.journal.add(Tokens, q, e.sched.clock)
			}
			q.shown = q.output
			q.shownAt = e.now
		}
	}
}

// NextEvent returns the next instant at which Advance has something to report: a first token, an end, or tokens that
// are due by Config.ShowEvery. It returns false if nothing is to come.
func (e *Engine) NextEvent() (time.Duration, bool) {
	s := &e.sched
	if !s.step.active {
		at, ok := s.nextStart()
		return max(e.now, at), ok
	}
	at := s.step.end
	idle := len(s.loading) == 0 && (len(s.waiting) == 0 || s.step.blocked)
	if e.cfg.ShowEvery > 0 && s.step.prefills == 0 && idle {
		at = max(at, min(e.now+e.cfg.ShowEvery, s.nextFinish()))
	}
	return at, true
}

// Cancel ends sequences with FinishAbort at the instant of the last Advance, and frees what they hold. It returns an
// event for each that had not ended before. The list is valid until the next call.
func (e *Engine) Cancel(seqs ...*Sequence) []Event {
	e.journal.clear()
	for _, q := range seqs {
		if q.state != ended {
			e.sched.free(q, FinishAbort)
			e.journal.add(Finished, q, e.now)
		}
	}
	if len(e.journal.events) > 0 {
		e.sched.remove()
	}
	return e.journal.events
}

// CancelAll cancels all that runs or waits.
func (e *Engine) CancelAll() []Event {
	return e.Cancel(slices.Concat(e.sched.running, e.sched.loading, e.sched.waiting)...)
}

// ResetCache forgets all that is cached on the GPU, and with external what the CPU tier and the shared one hold, as
// reset_prefix_cache does. It returns false, and forgets nothing, while a sequence holds a block. With preempt the
// sequences are sent back to wait first, and go on by themselves.
func (e *Engine) ResetCache(preempt, external bool) bool {
	return e.sched.reset(preempt, external, max(e.now, e.sched.clock))
}

// TakeBatches returns the changes of the cache in the steps that have ended since the last call, one batch for each
// step that changed anything. There are none without Config.Changes.
func (e *Engine) TakeBatches() []Batch { return e.sched.pool.log.take() }

// Held returns how many copies of each block, or chunk, a medium holds.
func (e *Engine) Held(m Medium) map[uint64]int {
	held := map[uint64]int{}
	if m == OnCPU {
		for _, h := range e.sched.cpu.hashes() {
			held[h] = 1
		}
		return held
	}
	for i := range e.sched.pool.blocks {
		if b := &e.sched.pool.blocks[i]; b.full {
			held[b.hash]++
		}
	}
	return held
}

// Slow makes every step from the next one on last so many times the model's time: Model.Slowness.
func (e *Engine) Slow(times float64) { e.cfg.Model.Slowness = times }

// LoadAdapter brings an adapter to a place, if one is free or idle: the caller has waited for the load.
func (e *Engine) LoadAdapter(name string) { e.sched.adapters.take(name, max(1, e.cfg.MaxLoras), 0) }

// DropAdapter takes an idle adapter from its place.
func (e *Engine) DropAdapter(name string) {
	a := &e.sched.adapters
	if i := a.find(name); i >= 0 && a.places[i].running == 0 {
		a.places = slices.Delete(a.places, i, i+1)
	}
}

// Adapters returns the adapters of the sequences that run, and of those that wait.
func (e *Engine) Adapters() (running, waiting []string) {
	for _, p := range e.sched.adapters.places {
		if p.running > 0 {
			running = append(running, p.name)
		}
	}
	for _, q := range e.sched.waiting {
		if q.Adapter != "" && !slices.Contains(waiting, q.Adapter) {
			waiting = append(waiting, q.Adapter)
		}
	}
	return running, waiting
}
