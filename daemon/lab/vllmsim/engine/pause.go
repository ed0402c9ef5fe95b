package engine

import "time"

// Pause is how far an engine works on. See vLLM's PauseState.
type Pause uint8

// The values of Pause.
const (
	Going   Pause = iota // it is not paused
	Closing              // what runs goes on; what waits, or comes, waits for Resume
	Frozen               // nothing goes on
)

// Pause holds the sequences from the end of the step on that is being computed.
func (e *Engine) Pause(p Pause) { e.sched.paused = p }

// Resume ends a pause. Steps begin at now at the earliest.
func (e *Engine) Resume(now time.Duration) {
	s := &e.sched
	s.paused = Going
	s.step.blocked = false
	s.clock = max(s.clock, now)
}

// Paused returns what the last Pause has set.
func (e *Engine) Paused() Pause { return e.sched.paused }

// Rests reports whether a paused engine has come to rest: no step is being computed, and unless it is Frozen no
// sequence runs.
func (e *Engine) Rests() bool {
	s := &e.sched
	return !s.step.active && (s.paused == Frozen || len(s.running) == 0)
}

// SetWeights says by a number of the caller's which weights compute from now on. What is cached keeps those that have
// computed it. Default 0.
func (e *Engine) SetWeights(n uint32) { e.sched.pool.weights = n }

// computedElse returns how many of the blocks other weights have computed.
func (p *blockPool) computedElse(held []int32) (n int) {
	for _, i := range held {
		if p.blocks[i].weights != p.weights {
			n++
		}
	}
	return n
}
