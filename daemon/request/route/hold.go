package route

import "github.com/warmpath/warmpath/host"

// verdictOf returns the verdict of the strategy that was asked.
func verdictOf(r *host.Result, q *Queueing) Verdict {
	if r.Reject != nil {
		return Rejected
	}
	if isHeld(r, q) {
		return Held
	}
	return Chosen
}

// isHeld reports whether the request waits for a better worker. If its time for that is over, or its pool has no queue,
// the host's fallback has chosen, and that is the reason.
func isHeld(r *host.Result, q *Queueing) bool {
	if r.Hold == 0 {
		return false
	}
	if q.Waited < min(r.Hold, q.Longest) {
		return true
	}
	r.Fallback = "hold"
	return false
}
