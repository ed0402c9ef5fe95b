package worker

import "time"

// state is the result of a worker's health checks.
type state uint8

const (
	starting state = iota // no check has passed or failed yet
	up
	silent // suspected: it does not answer its checks in time, and its port is open as far as is known
	down   // dead: nothing listens, or its checks say so
)

// check is the result of a failed health check.
type check uint8

const (
	checkLate   check = iota // no answer in time
	checkIll                 // an answer of 500 or more
	checkClosed              // nothing listens
)

// health records whether a worker is up. Times are the pool's seconds.
type health struct {
	state  state
	late   int     // checks without an answer since the last good one
	ill    int     // checks answered by 500 or more since then
	dying  bool    // an answer since then said in the worker's own words that it is going
	closed bool    // nothing listens there, as a check or a request has found since then
	born   float64 // when its process was first up: an older request went to another process
	joined bool    // the worker came after the pool was made: its first rise is a slow start too
	fell   float64 // when it fell silent or went down; 0 = neither
	good   float64 // when the last good check ended; 0 = there was none
}

const (
	maxLate = 2               // late checks in a row that make a suspect, if nothing flows
	maxIll  = 2               // checks answered by 500 or more that count as death: a sidecar that reloads gives one
	flowing = 5 * time.Second // an answer's bytes within this time prove life; above any gap between chunked prefills
)

// rise marks the worker up and reports whether it needs a slow start: it was away, or joins a running fleet.
func (h *health) rise(now float64) (back bool) {
	back = h.state == down || h.state == silent || h.joined
	if h.state != silent {
		h.born = now
	}
	h.state = up
	h.joined = false
	h.fell = 0
	return back
}

func (h *health) fall(to state, now float64) { h.state, h.fell = to, now }

// pass records a good check.
func (h *health) pass(now float64) {
	h.late, h.ill = 0, 0
	h.dying, h.closed = false, false
	h.good = now
}

// fail counts a failed check and returns the state that it proves: the present one, silent or down. A refused
// connection proves death. An answer of 500 or more does so the second time, or if an answer to a request has said the
// same. Silence proves nothing, and makes a suspect of a worker from which no byte came of late (flows). A worker that
// was never up is not waited for: it is down at its first failed check.
func (h *health) fail(c check, flows bool) state {
	switch c {
	case checkLate:
		h.late++
	case checkIll:
		h.ill++
	case checkClosed:
		h.closed = true
	}
	switch {
	case c == checkClosed, h.state == starting, c == checkIll && (h.ill >= maxIll || h.dying):
		return down
	case h.state == up && h.late >= maxLate && !flows:
		return silent
	}
	return h.state
}

// hears reports whether a good check shows that the process which was there at a time lived on after it.
func (h *health) hears(since float64) bool {
	return h.state == up && h.born <= since && h.good > since
}

// answers reports whether the worker has answered a check since that time, and every one after it.
func (h *health) answers(since float64) bool {
	return h.state == up && h.good > since && h.late == 0 && h.ill == 0
}

// settled reports whether it is known what became of the process that was there at a time: it lived on, or another one
// began, or it has fallen since.
func (h *health) settled(since float64) bool {
	return h.good > since || h.born > since || h.fell > since
}

// source names what found an error.
type source uint8

const (
	byHealth  source = iota // a health check
	byModels                // the listing of models
	byMetrics               // a scrape
	byRequest               // a client's request
)

// lastError is a worker's latest error.
type lastError struct {
	text string
	at   time.Time
	by   source
	over bool // the same source has succeeded since, or the worker has come up
}

// note records an error. While a worker is down or silent, the error of its health check stays, because it explains
// why. A scrape that was under way fails later, and would replace it.
func (e *lastError) note(text string, at time.Time, by source, isOff bool) {
	if isOff && e.by == byHealth && !e.over && by != byHealth && e.text != "" {
		return
	}
	*e = lastError{text: text, at: at, by: by}
}

// good records that the source of the error succeeds now.
func (e *lastError) good(by source) {
	if e.by == by {
		e.over = true
	}
}
