package worker

import "github.com/warmpath/warmpath/daemon/fleet/judge"

// excusePause returns the outcome o of w's request r as it counts for w. An answer that paused for too long shows
// nothing about an engine that works on: some parsers of tools hold a long call until it is whole. The engine works on
// if its metrics moved within the last three readings, which are reading seconds apart, or answers to other requests
// flowed.
func excusePause(w *Worker, r *request, now, reading float64, o judge.Outcome) judge.Outcome {
	if o.Kind != judge.Broken || !o.Stalled {
		return o
	}
	late := 3 * reading
	if w.moved > 0 && now-w.moved <= late || w.flows(seconds(now)) && w.endpoint.flow.Load() > r.flow.Load() {
		return judge.Outcome{Kind: judge.Canceled}
	}
	return o
}
