package worker

import "time"

// condition is what a person is told that a worker is: Starting, Ready, Down, Ejected or Draining, and why it is one of
// the last two. A worker whose breaker lets a trial through is Ejected or Draining still. The caller holds the pool's
// lock.
func (w *Worker) condition() (s Standing, why string) {
	switch {
	case w.health.state == starting:
		return Starting, ""
	case w.health.state == down:
		return Down, ""
	case w.draining:
		return Draining, "asked to"
	case w.breaker.cause != none:
		return w.breaker.standing(), w.breaker.why
	}
	return Ready, ""
}

// mark notes since when the workers of the events are what they are.
func (p *Pool) mark(events []event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		if e.w == nil {
			continue
		}
		if state, _ := e.w.condition(); state != e.w.shownAs || e.w.since.IsZero() {
			e.w.shownAs, e.w.since = state, now
		}
	}
}

// source is who found an error.
type source uint8

const (
	byHealth  source = iota // a health check
	byModels                // the listing of models
	byMetrics               // a scrape
	byRequest               // a client's request
)

// note keeps a worker's latest error. While a worker is down, what its health check found is kept: that is why it is
// down, and a scrape that was under way then fails later.
func (h *health) note(why string, now time.Time, by source) {
	if h.state == down && h.errorBy == byHealth && !h.errorOver && by != byHealth && h.lastError != "" {
		return
	}
	h.lastError, h.errorAt, h.errorBy, h.errorOver = why, now, by, false
}

// good notes that what found the error finds none now.
func (h *health) good(by source) {
	if h.errorBy == by {
		h.errorOver = true
	}
}
