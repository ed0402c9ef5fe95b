package worker

import "time"

// state is the result of a worker's health checks.
type state uint8

const (
	starting state = iota // no check has passed or failed yet
	up
	down
)

// health records whether a worker is up. Times are the pool's seconds.
type health struct {
	state  state
	silent int     // health checks in a row without an answer
	born   float64 // when its process was first up: an older request went to another process
	late   bool    // the worker came after the pool was made: its first rise is a slow start too
	fell   float64 // when it went down; 0 = it is not down
}

const (
	maxSilent = 2               // silent checks in a row that count as death, if nothing flows
	flowing   = 5 * time.Second // an answer's bytes within this time prove life; above any gap between chunked prefills
)

// rise marks the worker up and reports whether it comes back to a running fleet.
func (h *health) rise(now float64) (back bool) {
	back = h.state == down || h.late
	h.state = up
	h.late = false
	h.born = now
	h.fell = 0
	return back
}

func (h *health) fall(now float64) { h.state, h.fell = down, now }

// hush counts a failed check and reports whether the worker is dead. It is dead at once if the check itself proves
// death (proof). Otherwise it is dead after maxSilent checks in a row, unless bytes of an answer came within the last
// seconds (flows).
func (h *health) hush(proof, flows bool) bool {
	h.silent++
	return proof || h.state == starting || h.silent >= maxSilent && !flows
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

// note records an error. While a worker is down, the error of its health check stays, because it explains why the
// worker is down. A scrape that was under way fails later, and would replace it.
func (e *lastError) note(text string, at time.Time, by source, isDown bool) {
	if isDown && e.by == byHealth && !e.over && by != byHealth && e.text != "" {
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
