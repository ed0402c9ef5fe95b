package worker

import (
	"fmt"
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// Only its requests show that an engine hangs: vLLM's API server goes on answering /health and /metrics. They wait
// until their clients give up, and as the index has their prompts at that worker, each repeat would go there again.
const (
	shortWait    = 10.0 // seconds for a first byte, below which a client's leaving shows nothing
	longPrefills = 3.0  // predicted prefills, likewise
)

// hangs returns for how many failed answers the leaving of r's client counts: 0, unless the engine of w has done
// nothing since r was sent although r waited for long. Each such time counts as one, so that a single patient client is
// enough.
//
// An answer in one piece shows no first byte, so it shows nothing. Nor does r if the answers to others flow, or if the
// engine's metrics, or another router's first bytes, show progress.
func hangs(w *Worker, r *request, slowness, now float64) int {
	if r.whole || r.first > 0 || w.moved > r.at || time.Duration(w.endpoint.flow.Load()).Seconds() > r.at {
		return 0
	}
	return int((now - r.at) / longWait(w, r.est, slowness))
}

// longWait returns for how many seconds a request of that estimate waits at w before its wait shows something. The
// prompt that is computed now may be a long one.
func longWait(w *Worker, est, slowness float64) float64 {
	if w.queue.front != nil {
		est = max(est, w.queue.front.est)
	}
	return max(shortWait, longPrefills*slowness*w.speed.times()*est)
}

// patientTrial is how many seconds a trial waits for its first byte at least, until it is moved.
const patientTrial = 5.0

// patience returns how many seconds a trial at w waits for its first byte. An answer in one piece waits until three
// pages of the engine's metrics have been read.
func patience(f *fleet, w *Worker, r *request) float64 {
	least := patientTrial
	if r.whole {
		least = max(least, 3*f.conf.ScrapeInterval.Seconds())
	}
	return max(least, longPrefills*f.speed.slowness*w.speed.times()*r.est)
}

// waitsInVain reports whether the trial r at w has waited for long enough, although the worker answers its health
// checks. Nothing came of its answer. If that comes in one piece, the engine's metrics have not moved either, which
// they did before.
func waitsInVain(w *Worker, r *request) bool {
	if r.ended || r.first > 0 || w.breaker.trial != r || !w.health.answers(r.at) {
		return false
	}
	return !r.whole || w.moved > 0 && w.moved <= r.at
}

// hanging is the outcome of a request for which hangs is not 0.
func hanging(waited float64) judge.Outcome {
	return judge.Outcome{Kind: judge.Broken, Err: fmt.Sprintf("no byte of any answer in %.0f s", math.Floor(waited))}
}

// shortly is for how many seconds a request may have waited at an engine that is found asleep or paused, to be moved.
const shortly = 3.0

// stillPages is how many pages of metrics in a row must show no progress.
const stillPages = 3

// oldestWaiting returns the request that has waited for longest at w for its first byte; nil = none waits.
func oldestWaiting(w *Worker) *request {
	for r := w.flight.oldest; r != nil; r = r.newer {
		if r.first == 0 && !r.ended {
			return r
		}
	}
	return nil
}

// idleFor returns for how many seconds the engine of w has done nothing although a request waits for its first byte: no
// byte of any answer has come, and its metrics have not moved. It returns 0 where that cannot be known: an engine which
// does not count its steps may be decoding one long answer.
func idleFor(w *Worker, now float64) float64 {
	r := oldestWaiting(w)
	if r == nil || w.moved == 0 || w.readings.Steps == 0 {
		return 0
	}
	since := max(r.at, w.moved)
	if time.Duration(w.endpoint.flow.Load()).Seconds() > since {
		return 0
	}
	return now - since
}

// standsStill reports whether the engine of w has done nothing for so long that its next requests are to go elsewhere.
// A step of vLLM's engine takes seconds at most, but for one that computes a long prompt in one piece.
func standsStill(f *fleet, w *Worker, now float64) bool {
	if w.still < stillPages || !w.isUp() {
		return false
	}
	return idleFor(w, now) >= longWait(w, 0, f.speed.slowness)
}

// mayBePaused reports whether the worker is to be asked whether its engine is paused, which its metrics do not tell:
// the engine counts its steps, made none up to the last page, and a request has waited since before that.
func mayBePaused(w *Worker) bool {
	if w.readings.Asleep {
		return true
	}
	r := oldestWaiting(w)
	return r != nil && w.readings.Steps > 0 && w.still > 0 && r.at < w.readings.at
}

// movable reports whether r, which waits at w for its first byte, may go to another worker: the engine had stopped
// before r came, so that r is not what stopped it. If the engine says that it sleeps or is paused, this is taken for
// granted of all that came shortly before. What had waited for longer may have blocked it, and would block the next
// worker. A trial has its own patience.
func movable(w *Worker, r *request, reading float64) bool {
	switch {
	case r.first > 0 || r.holder == nil:
		return false
	case w.readings.Asleep:
		return r.at > w.slept-shortly
	}
	return r.at > w.moved+reading && w.breaker.trial != r
}
