package worker

import (
	"fmt"
	"math"
	"time"
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
	est := r.est
	if w.queue.front != nil {
		est = max(est, w.queue.front.est)
	}
	return int((now - r.at) / max(shortWait, longPrefills*slowness*w.speed.rel*est))
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
	return max(least, longPrefills*f.speed.slowness*w.speed.rel*r.est)
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
func hanging(waited float64) Outcome {
	return Outcome{Kind: Broken, Err: fmt.Sprintf("no byte of any answer in %.0f s", math.Floor(waited))}
}
