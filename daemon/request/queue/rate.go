package queue

import (
	"math"
	"time"
)

// memory is how long a rate looks back.
const memory = 10 * time.Second

// rate learns how many seconds of prefill are served in a second in which requests wait.
type rate struct {
	since   time.Time // up to when it is counted
	served  float64
	seconds float64
}

// begin counts from a time on.
func (r *rate) begin(at time.Time) { r.since = at }

// add counts the time since the last call, and the seconds of work that were served at its end.
func (r *rate) add(cost float64, at time.Time) {
	passed := max(0, at.Sub(r.since)).Seconds()
	fade := math.Exp(-passed / memory.Seconds())
	r.served = r.served*fade + cost
	r.seconds = r.seconds*fade + passed
	r.since = at
}

// value returns the rate; 0 = too little was seen.
func (r *rate) value() float64 {
	if r.seconds < 1 {
		return 0
	}
	return r.served / r.seconds
}
