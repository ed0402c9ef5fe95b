package limit

import (
	"math"
	"time"
)

// meter decides about one limit of a minute. Its zero value is no limit.
type meter struct {
	limit  float64 // units a minute; 0 = there is no limit
	whole  bool    // units are requests: each is one, and that is known before it is let in
	minute minute  // what was taken here in the last 60 s
	debt   float64 // units that were taken here and that the rate of the limit has not made up for, at the time at
	at     time.Time
	share  share
}

// Shares of a limit.
const (
	burst = .15 // the debt with which the next request is let in: nine seconds of the rate
	few   = 5   // requests that may come at once, however low their limit is
	full  = .98 // of the tokens of a minute with which the next request is let in: it may be larger than what is left
)

// set changes the limit. What was taken stays taken.
func (m *meter) set(perMinute int, at time.Time) {
	m.pass(at)
	if m.limit == 0 {
		m.debt = 0
	}
	m.limit = float64(perMinute)
}

// pass lets time pass. A clock that steps back changes nothing.
func (m *meter) pass(at time.Time) {
	m.minute.pass(at)
	if gone := at.Sub(m.at); gone > 0 {
		m.debt = max(0, m.debt-gone.Seconds()*m.limit/60)
		m.at = at
	}
}

// bounds returns the debt and the units in the last minute up to which a request is let in.
func (m *meter) bounds(at time.Time) (debt, taken float64) {
	if m.whole {
		return max(few, burst*m.limit) - 1, m.share.places(int(m.limit), at) - 1
	}
	return burst * m.limit, m.share.of(full*m.limit, at)
}

// wait returns how long it is until the next request is let in; 0 = it is let in now.
func (m *meter) wait(at time.Time) time.Duration {
	if m.limit == 0 {
		return 0
	}
	m.pass(at)
	debt, taken := m.bounds(at)
	wait := m.minute.until(taken, at)
	if over := m.debt - debt; over > 1e-6 { // sums of floating point
		wait = max(wait, seconds(over/(m.limit/60)))
	}
	return wait
}

// take adds units that are let in.
func (m *meter) take(units float64, at time.Time) {
	if m.limit == 0 {
		return
	}
	m.pass(at)
	m.debt += units
	m.minute.add(units, at)
}

// correct adds units to those that were let in at a time; below 0 it gives them back. What is added was taken since
// then and not at once, so that it is no debt.
func (m *meter) correct(units float64, taken, at time.Time) {
	if m.limit == 0 {
		return
	}
	m.pass(at)
	m.debt = max(0, m.debt+min(0, units))
	m.minute.add(units, taken)
}

// Balance is what is left of a limit of a minute.
type Balance struct {
	Limit     int           // 0 = there is no limit
	Remaining int           // of the last 60 s; 0 = no request is let in now
	Reset     time.Duration // until a request is let in again, or, if one is let in now, until all of it is there again
}

// left returns what is left of the limit.
func (m *meter) left(at time.Time) Balance {
	if m.limit == 0 {
		return Balance{}
	}
	b := Balance{Limit: int(m.limit), Reset: m.wait(at)}
	if b.Reset == 0 {
		b.Remaining = max(1, int(math.Floor(m.share.of(m.limit, at)-m.minute.sum)))
		b.Reset = m.minute.empty(at)
	}
	return b
}

// seconds returns a time in whole microseconds, rounded up, so that it has passed when it is over.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(s*1e6)) * time.Microsecond
}
