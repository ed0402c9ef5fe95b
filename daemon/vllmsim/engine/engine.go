package engine

import (
	"fmt"
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
	e := &Engine{cfg: cfg, journal: &journal{sums: newStats(cfg.MaxModelLen)}}
	e.sched = scheduler{cfg: &e.cfg, pool: newBlockPool(cfg.KVTokens / cfg.BlockTokens), journal: e.journal}
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
		if len(s.waiting) == 0 {
			return 0, false
		}
		return max(e.now, s.waiting[0].times.Arrived), true
	}
	at := s.step.end
	if e.cfg.ShowEvery > 0 && s.step.prefills == 0 && (len(s.waiting) == 0 || s.step.blocked) {
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
	return e.Cancel(append(e.sched.running[:len(e.sched.running):len(e.sched.running)], e.sched.waiting...)...)
}

// Stats returns what the engine has done, and what it holds as of the last call.
func (e *Engine) Stats() Stats {
	s := e.journal.sums
	s.Running = len(e.sched.running)
	s.Waiting = len(e.sched.waiting)
	s.Blocks = e.sched.pool.usable()
	s.BlocksHeld = s.Blocks - e.sched.pool.free
	s.BlocksCached = e.sched.pool.cached
	return s
}
