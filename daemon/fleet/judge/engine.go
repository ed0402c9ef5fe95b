package judge

import (
	"fmt"
	"math"
	"time"
)

// Only its requests show that an engine hangs: vLLM's API server goes on answering /health and /metrics. They wait
// until their clients give up, and as the index has their prompts at that worker, each repeat would go there again.
const (
	shortWait    = 10 * time.Second // for a first byte, below which a client's leaving shows nothing
	longPrefills = 3                // predicted prefills, likewise
)

// shortly is for how long a request may have waited at an engine that is found asleep or paused, to be moved.
const shortly = 3 * time.Second

// stillPages is how many pages of metrics in a row must show no progress.
const stillPages = 3

// patientTrial is how long a trial waits for its first byte at least, until it is moved.
const patientTrial = 5 * time.Second

// Engine is what shows that an engine works on, beside the answers that come from it: its pages of metrics, and the
// answers that other routers get from it. The time 0 means never.
type Engine struct {
	moved  time.Duration // when they last showed that the engine has done something
	still  int           // pages of metrics since then
	read   time.Duration // when the newest page was read
	steps  bool          // which counts the engine's steps
	asleep bool          // it serves nothing
	paused bool          // of asleep: it holds its requests, and goes on with them
	slept  time.Duration // when the engine was last found asleep
	told   bool          // that it has been paused for too long
	woke   time.Duration // when it last went on

	orders  int           // of the router's, under way
	ordered time.Duration // when the last of them ended
}

// Forget drops what is known of the engine: it is dead or a new one.
func (g *Engine) Forget() {
	*g = Engine{slept: g.slept, woke: g.woke, orders: g.orders, ordered: g.ordered}
}

// Page records a page of metrics. first is true for the first one, with which nothing can be compared. moved is true
// if the engine has done something since the page before.
func (g *Engine) Page(first, moved, steps bool, now time.Duration) {
	g.read = now
	g.steps = steps
	if first {
		return
	}
	g.still++
	if moved {
		g.moved = now
		g.still = 0
	}
}

// Moved records that another router had a first byte from the engine.
func (g *Engine) Moved(at time.Duration) { g.moved = max(g.moved, at) }

// IsStill reports whether several pages in a row showed no progress.
func (g *Engine) IsStill() bool { return g.still >= stillPages }

// IsAsleep reports whether the engine has been put to sleep or is paused.
func (g *Engine) IsAsleep() bool { return g.asleep }

// Rest is whether an engine serves requests.
type Rest uint8

// The values of Rest.
const (
	Awake    Rest = iota
	Paused        // it holds its requests, takes new ones, and goes on with them all
	Sleeping      // its KV cache is gone
)

// Rest returns whether the engine serves requests.
func (g *Engine) Rest() Rest {
	switch {
	case !g.asleep:
		return Awake
	case g.paused:
		return Paused
	}
	return Sleeping
}

// SetRest records that the engine was paused or put to sleep, or goes on.
func (g *Engine) SetRest(r Rest, now time.Duration) {
	g.asleep, g.paused, g.told = r != Awake, r == Paused, false
	if g.asleep {
		g.slept = now
	} else {
		g.woke = now
	}
}

// IsForgotten reports, once a pause, that the engine has been paused for that long.
func (g *Engine) IsForgotten(long, now time.Duration) bool {
	if !g.paused || g.told || now-g.slept < long {
		return false
	}
	g.told = true
	return true
}

// WasForgotten reports whether IsForgotten has reported the pause.
func (g *Engine) WasForgotten() bool { return g.told }

// MayBeTold reports whether an order that succeeded changes what is known: where a page of metrics has come since the
// engine was put to sleep, the next one tells that it is awake. A paused engine goes on at once.
func (g *Engine) MayBeTold(r Rest) bool {
	return g.Rest() != r && (r != Awake || g.paused || g.read < g.slept)
}

// MayHaveChanged reports whether an answer of the engine that was asked for at that time may be newer than what is
// known of its rest. The router knows the effect of its own order before an answer comes that it asked for earlier, and
// takes it as known while the order is under way.
func (g *Engine) MayHaveChanged(asked time.Duration) bool {
	return g.orders == 0 && asked >= max(g.slept, g.woke, g.ordered)
}

// Order records that an order of the router's is sent to the engine. Call Ordered when it has ended.
func (g *Engine) Order() { g.orders++ }

// Ordered records the end of an order: what the engine was asked for before shows nothing of it.
func (g *Engine) Ordered(now time.Duration) { g.orders, g.ordered = max(0, g.orders-1), now }

// Rested reports whether the engine rests, or has rested since a time: what took long since then shows nothing.
func (g *Engine) Rested(since time.Duration) bool { return g.asleep || g.woke > since }

// LongWait returns how long a request waits until its wait shows something. predicted is the prefill of it or of the
// one that is computed now, whichever is longer.
func LongWait(predicted float64) time.Duration {
	return max(shortWait, Seconds(longPrefills*predicted))
}

// Patience returns how long a trial waits for its first byte. An answer in one piece waits until three pages of the
// engine's metrics have been read, which are reading apart.
func Patience(r *Request, predicted float64, reading time.Duration) time.Duration {
	least := patientTrial
	if r.Whole {
		least = max(least, 3*reading)
	}
	return max(least, Seconds(longPrefills*predicted))
}

// Wait is what CountsAs knows of a request beside its outcome.
type Wait struct {
	Long    time.Duration // LongWait of the request
	Reading time.Duration // between two pages of metrics
}

// CountsAs returns the outcome of r as it counts, and for how many requests: a client that left, or a pause for which
// the answer was cut, may show that the engine hangs, or nothing.
func (g *Engine) CountsAs(h *Health, r *Request, o Outcome, w Wait, now time.Duration) (Outcome, int) {
	o = g.excusePause(h, r, o, w.Reading, now)
	switch {
	case o.Kind != Canceled:
	case r.Called && h.breaker.trial == r:
		return hanging(now - r.Sent), 1
	case !o.Partly:
		if n := g.hangs(h, r, w.Long, now); n > 0 {
			return hanging(now - r.Sent), n
		}
	}
	return o, 1
}

// excusePause returns the outcome o of r as it counts. An answer that paused for too long shows nothing about an engine
// that works on: some parsers of tools hold a long call until it is whole. The engine works on if its metrics moved
// within the last three readings, or answers to other requests flowed.
func (g *Engine) excusePause(h *Health, r *Request, o Outcome, reading, now time.Duration) Outcome {
	if o.Kind != Broken || !o.Stalled {
		return o
	}
	if g.moved > 0 && now-g.moved <= 3*reading || h.flows(now) && h.flow.Load() > r.flow.Load() {
		return Outcome{Kind: Canceled}
	}
	return o
}

// hangs returns for how many failed answers the leaving of r's client counts: 0, unless the engine has done nothing
// since r was sent although r waited for long. Each such time counts as one, so that a single patient client is enough.
//
// An answer in one piece shows no first byte, so it shows nothing. Nor does r if the answers to others flow, or if the
// engine's metrics, or another router's first bytes, show progress.
func (g *Engine) hangs(h *Health, r *Request, long, now time.Duration) int {
	if r.Whole || r.First > 0 || r.Away || g.moved > r.Sent || g.Rested(r.Sent) || h.flowsSince(r.Sent) {
		return 0
	}
	return int((now - r.Sent) / long)
}

// hanging is the outcome of a request for which hangs is not 0.
func hanging(waited time.Duration) Outcome {
	return Outcome{Kind: Broken, Hangs: true,
		Err: fmt.Sprintf("no byte of any answer in %.0f s", math.Floor(waited.Seconds()))}
}

// idle returns for how long the engine has done nothing although a request waits for its first byte: no byte of any
// answer has come, and its metrics have not moved. oldest is the one that waits for longest; nil = none waits. It
// returns 0 where that cannot be known: an engine which does not count its steps may be decoding one long answer.
func (g *Engine) idle(h *Health, oldest *Request, now time.Duration) time.Duration {
	if oldest == nil || g.moved == 0 || !g.steps {
		return 0
	}
	since := max(oldest.Sent, g.moved, g.woke)
	if h.flowsSince(since) {
		return 0
	}
	return now - since
}

// StandsStill reports whether the engine has done nothing for so long that its next requests are to go elsewhere. A
// step of vLLM's engine takes seconds at most, but for one that computes a long prompt in one piece: see LongWait.
func (g *Engine) StandsStill(h *Health, oldest *Request, long, now time.Duration) (v Verdict) {
	if !g.IsStill() || !h.IsUp() || g.asleep {
		return v
	}
	if idle := g.idle(h, oldest, now); idle >= long {
		v = Verdict{Do: PutAside, Cause: Failing, Hangs: true,
			Why: fmt.Sprintf("no byte of any answer and no step of its engine in %.0f s", idle.Seconds())}
	}
	return v
}

// MayBePaused reports whether the worker is to be asked whether its engine is paused, which its metrics do not tell:
// the engine counts its steps, made none up to the last page, and a request has waited since before that.
func (g *Engine) MayBePaused(oldest *Request) bool {
	return g.asleep || oldest != nil && g.steps && g.still > 0 && oldest.Sent < g.read
}

// MayMove reports whether r, which waits for its first byte, may go to another worker: the engine had stopped before r
// came, so that r is not what stopped it. If the engine says that it sleeps or is paused, this is taken for granted of
// all that came shortly before. What had waited for longer may have blocked it, and would block the next worker. A
// trial has its own patience.
func (g *Engine) MayMove(h *Health, r *Request, reading time.Duration) bool {
	switch {
	case r.First > 0, r.Away:
		return false
	case g.asleep:
		return r.Sent > g.slept-shortly
	}
	return r.Sent > g.moved+reading && h.breaker.trial != r
}

// WaitsInVain reports whether the trial r has waited for long enough, although the worker answers its health checks.
// Nothing came of its answer. If that comes in one piece, the engine's metrics have not moved either, which they did
// before.
func (g *Engine) WaitsInVain(h *Health, r *Request) bool {
	if !r.Waits() || h.breaker.trial != r || !h.checks.answers(r.Sent) {
		return false
	}
	return !r.Whole || g.moved > 0 && g.moved <= r.Sent
}

// Seconds makes a duration, at most 100 years.
func Seconds(s float64) time.Duration { return time.Duration(min(s, 3e9) * float64(time.Second)) }
