package judge

import "time"

// State is the result of a worker's health checks.
type State uint8

// The values of State.
const (
	Starting State = iota // no check has passed or failed yet
	Up
	Silent // suspected: it does not answer its checks in time, and its port is open as far as is known
	Down   // dead: nothing listens, or its checks say so
)

// Check is the result of a failed health check.
type Check uint8

// The values of Check.
const (
	CheckLate   Check = iota // no answer in time
	CheckIll                 // an answer of 500 or more
	CheckClosed              // nothing listens
)

// checks records whether a worker is up.
type checks struct {
	state  State
	late   int           // checks without an answer since the last good one
	ill    int           // checks answered by 500 or more since then
	dying  bool          // an answer since then said in the worker's own words that it is going
	closed bool          // nothing listens there, as a check or a request has found since then
	born   time.Duration // when its process was first up: an older request went to another process
	joined bool          // the worker came after the pool was made: its first rise is a slow start too
	fell   time.Duration // when it fell silent or went down; 0 = neither
	good   time.Duration // when the last good check ended; 0 = there was none
}

const (
	maxLate = 2               // late checks in a row that make a suspect, if nothing flows
	maxIll  = 2               // checks answered by 500 or more that count as death: a sidecar that reloads gives one
	flowing = 5 * time.Second // an answer's bytes within this time prove life; above any gap between chunked prefills
)

// rise marks the worker up and reports whether it needs a slow start: it was away, or joins a running fleet.
func (h *checks) rise(now time.Duration) (back bool) {
	back = h.state == Down || h.state == Silent || h.joined
	if h.state != Silent {
		h.born = now
	}
	h.state = Up
	h.joined = false
	h.fell = 0
	return back
}

func (h *checks) fall(to State, now time.Duration) { h.state, h.fell = to, now }

// pass records a good check.
func (h *checks) pass(now time.Duration) {
	h.late, h.ill = 0, 0
	h.dying, h.closed = false, false
	h.good = now
}

// fail counts a failed check and returns the state that it proves: the present one, silent or down. A refused
// connection proves death. An answer of 500 or more does so the second time, or if an answer to a request has said the
// same. Silence proves nothing, and makes a suspect of a worker from which no byte came of late (flows). A worker that
// was never up is not waited for: it is down at its first failed check.
func (h *checks) fail(c Check, flows bool) State {
	switch c {
	case CheckLate:
		h.late++
	case CheckIll:
		h.ill++
	case CheckClosed:
		h.closed = true
	}
	switch {
	case c == CheckClosed, h.state == Starting, c == CheckIll && (h.ill >= maxIll || h.dying):
		return Down
	case h.state == Up && h.late >= maxLate && !flows:
		return Silent
	}
	return h.state
}

// hears reports whether a good check shows that the process which was there at a time lived on after it.
func (h *checks) hears(since time.Duration) bool {
	return h.state == Up && h.born <= since && h.good > since
}

// answers reports whether the worker has answered a check since that time, and every one after it.
func (h *checks) answers(since time.Duration) bool {
	return h.state == Up && h.good > since && h.late == 0 && h.ill == 0
}

// settled reports whether it is known what became of the process that was there at a time: it lived on, or another one
// began, or it has fallen since.
func (h *checks) settled(since time.Duration) bool {
	return h.good > since || h.born > since || h.fell > since
}
