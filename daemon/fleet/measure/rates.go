package measure

import (
	"math"
	"time"
)

// InSeconds is what Duration.Seconds returns, without its integer divisions: a Snapshot calls it for each worker.
func InSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }

// Window is the time over which the averages are taken, in seconds.
const Window = 30.0

const (
	warmth   = 16   // the number of dispatches a worker over which the newest rate is taken
	shortest = 1e-3 // the fewest seconds for these: the rate stays finite when a clock does not advance
)

// Rates counts the requests sent to the fleet. The averages decay once a second. Between two decays a request at now is
// added with the weight forward(now), and a reader multiplies by Back(now). So a Snapshot computes one exponential, not
// one a worker.
type Rates struct {
	aged    time.Duration // when the averages last decayed
	sent    float64       // requests, weighted as of aged
	seconds float64       // of their prefill, likewise
	Begun   float64       // requests, ever
	newest  ring          // when they were sent
}

// Share is one worker's part of the counts, weighted as of rates.aged.
type Share struct {
	Seconds  float64 // of prefill
	Requests float64
}

func (r *Rates) forward(now time.Duration) float64 {
	return math.Exp((now - r.aged).Seconds() / Window)
}

// Back returns the factor by which a reader multiplies the averages now.
func (r *Rates) Back(now time.Duration) float64 { return math.Exp((r.aged - now).Seconds() / Window) }

// Age moves aged to now if a second or more has passed, and returns by how much. The caller fades the shares by it.
func (r *Rates) Age(now time.Duration) (dt float64) {
	dt = (now - r.aged).Seconds()
	if dt < 1 {
		return 0
	}
	r.aged = now
	keep := math.Exp(-dt / Window)
	r.sent *= keep
	r.seconds *= keep
	return dt
}

// Aged returns when the averages last decayed.
func (r *Rates) Aged() time.Duration { return r.aged }

// Place counts a session that the worker of s is to serve from now on, as one request.
func (r *Rates) Place(s *Share, now time.Duration) { s.Requests += r.forward(now) }

// Add counts a request, with its seconds of prefill, for the worker of s.
func (r *Rates) Add(s *Share, seconds float64, now time.Duration) {
	forward := r.forward(now)
	r.sent += forward
	r.seconds += forward * seconds
	r.Begun++
	r.newest.note(now)
	s.Seconds += forward * seconds
	s.Requests += forward
}

// Hold makes room for the newest dispatches of the given number of workers.
func (r *Rates) Hold(workers int) { r.newest.hold(warmth * workers) }

// Fade lets the share decay as the averages do.
func (s *Share) Fade(keep float64) {
	s.Seconds *= keep
	s.Requests *= keep
}

// Prefill returns the mean seconds of prefill of the requests sent, each counted e^(-age/30 s). It returns false if
// they count for less than half a request. Shares do not add up to it, since those of dead workers are dropped.
func (r *Rates) Prefill(now time.Duration) (mean float64, ok bool) {
	if r.sent*r.Back(now) < .5 {
		return 0, false
	}
	return r.seconds / r.sent, true
}

// Lambda returns the requests sent per second and worker that is up: the average over 30 s, or half of the rate of the
// last 16 a worker if that is more.
//
// The average begins at 0 and needs its 30 s. Alone it would give work done twice no price until then (see K in
// sdk/score), and chats would leave the worker that holds them: a fleet of small models answers a thousand requests
// in that time. lambda takes half of the newest rate, as a burst of 16 requests does not last. A shorter window in
// place of both lost: 5 to 8 % in overload, simulated.
func (r *Rates) Lambda(now time.Duration, up int) float64 {
	average := r.sent * r.Back(now) / Window / float64(max(1, up))
	if t, ok := r.newest.back(warmth * max(1, up)); ok {
		return max(average, .5*warmth/max(shortest, (now-t).Seconds()))
	}
	return average
}

// ring holds the times of the fleet's newest dispatches.
type ring struct {
	at   []time.Duration
	next int    // index of the oldest, which the next one replaces
	n    uint64 // dispatches ever
}

// hold makes room for size dispatches. A ring that grows begins anew: its times are those of a smaller fleet.
func (r *ring) hold(size int) {
	if len(r.at) < size {
		*r = ring{at: make([]time.Duration, size)}
	}
}

func (r *ring) note(at time.Duration) {
	if len(r.at) == 0 {
		return
	}
	r.at[r.next] = at
	r.next++
	if r.next == len(r.at) {
		r.next = 0
	}
	r.n++
}

// back returns the time of the k-th last dispatch; false if there were fewer.
func (r *ring) back(k int) (time.Duration, bool) {
	if k > len(r.at) || r.n < uint64(k) {
		return 0, false
	}
	i := r.next - k
	if i < 0 {
		i += len(r.at)
	}
	return r.at[i], true
}

// Mean is a running mean over about the last 32 values.
type Mean struct {
	Value float64
	N     int
}

// Add adds a value.
func (m *Mean) Add(x float64) {
	m.N = min(m.N+1, 32)
	m.Value += (x - m.Value) / float64(m.N)
}
