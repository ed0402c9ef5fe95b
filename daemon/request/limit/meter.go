package limit

import (
	"math"
	"time"
)

// meter decides about one limit of a minute. Its zero value means no limit.
type meter struct {
	limit  float64 // units a minute; 0 = there is no limit
	whole  bool    // units are requests: each is one, and that is known before it is let in
	minute minute  // what was taken here, and what of that is not paid
	theirs float64 // the debt of the other routers, at the time at
	risk   float64 // by how much the answers under way may outgrow what is expected of them, at the time at
	at     time.Time
	share  share
}

// Shares of a limit.
const (
	burst    = .15 // the debt with which the next request is let in: nine seconds of the rate
	few      = 5   // requests that may come at once, however low their limit is
	full     = .98 // share of a minute's tokens below which the next request is let in, even if it needs more than is left
	mostDebt = 60  // minutes: a worker with wrong counts shuts a key out for no longer
	mostRisk = .3  // of one request: so that it is below burst after 60 s
)

// fades is the time in which a risk decays to 1/e: an answer that has run for this time has shown most of its length.
const fades = time.Minute

// set changes the limit. What was taken stays taken.
func (m *meter) set(perMinute int, at time.Time) {
	m.pass(at)
	if m.limit == 0 { // it owes nothing
		m.minute.before = 0
		for i := range m.minute.cells {
			m.minute.cells[i].paid = m.minute.cells[i].units
		}
	}
	m.limit = float64(perMinute)
}

// pass lets time pass. The rate of the limit pays the debts of all routers, and each one's in proportion.
func (m *meter) pass(at time.Time) {
	rate, gone := m.limit/60, at.Sub(m.at)
	if gone <= 0 {
		return
	}
	if m.theirs > 0 {
		own := m.minute.debt()
		part := own / (own + m.theirs)
		m.theirs = max(0, m.theirs-rate*(1-part)*gone.Seconds())
		m.minute.pass(at, rate*part)
	} else {
		m.minute.pass(at, rate)
	}
	m.minute.before = min(m.minute.before, mostDebt*m.limit)
	m.risk = faded(m.risk, gone)
	m.at = at
}

// faded returns what is left of a risk.
func faded(risk float64, gone time.Duration) float64 {
	return risk * math.Exp(-gone.Seconds()/fades.Seconds())
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
	most, taken := m.bounds(at)
	return max(m.minute.until(taken), m.paid(most))
}

// paid returns the time until debts and risks are at most the given number of units.
func (m *meter) paid(most float64) time.Duration {
	debt, rate := m.minute.debt()+m.theirs, m.limit/60
	after := func(s float64) float64 { return max(0, debt-rate*s) + faded(m.risk, seconds(s)) }
	most += 1e-6 // sums of floating point
	if after(0) <= most {
		return 0
	}
	low, high := 0., debt/rate+fades.Seconds()*max(0, math.Log(m.risk/most))+1e-3
	for high-low > 1e-4 {
		if mid := (low + high) / 2; after(mid) > most {
			low = mid
		} else {
			high = mid
		}
	}
	return seconds(high)
}

// take adds units that are let in.
func (m *meter) take(units float64, at time.Time) { m.correct(units, at, at) }

// correct adds units to those that were let in at a time; below 0 it gives them back.
func (m *meter) correct(units float64, taken, at time.Time) {
	if m.limit > 0 {
		m.pass(at)
		m.minute.add(units, taken)
	}
}

// Balance is what is left of a limit of a minute.
type Balance struct {
	Limit     int           // 0 = there is no limit
	Remaining int           // of the last 60 s; 0 = no request is let in now
	Reset     time.Duration // until a request is let in again; if one is let in now, until the whole limit is free again
}

// left returns what is left of the limit.
func (m *meter) left(at time.Time) Balance {
	if m.limit == 0 {
		return Balance{}
	}
	b := Balance{Limit: int(m.limit), Reset: m.wait(at)}
	if b.Reset == 0 {
		b.Remaining = max(1, int(math.Floor(m.share.of(m.limit, at)-m.minute.sum)))
		b.Reset = m.minute.empty()
	}
	return b
}

// seconds returns a time in whole microseconds, rounded up, so that it has passed when it is over.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(s*1e6)) * time.Microsecond
}
