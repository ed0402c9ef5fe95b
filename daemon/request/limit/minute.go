package limit

import "time"

// slot is how exactly a minute knows when something was taken. The use of one slot leaves the minute as a whole, 60 s
// after the last of it: no request waits longer than 60 s, and no 60 s have more than the limit.
const slot = 500 * time.Millisecond

// slots are those of 60 s, with the one that has begun and the one that ends.
const slots = int64(time.Minute/slot) + 2

// minute holds what was taken in the last 60 s, and the debt of all that was taken: how much of it the rate of the
// limit has not made up for. A late correction counts as if it had been known at that time: the debt is computed
// again from the slots. Its zero value is ready.
type minute struct {
	began      time.Time     // of slot 0
	passed     time.Duration // since then
	first, now int64         // numbers of the oldest slot that counts, and of the one that has begun
	cells      [slots]cell
	sum        float64
	before     float64 // the debt at the beginning of the oldest slot
}

// cell is one slot.
type cell struct {
	units float64
	paid  float64       // units for which the rate of the limit makes up in its time
	last  time.Duration // when units were taken last, since the minute's beginning
}

// pass advances the time. The limit pays the given number of units a second. A clock that steps back changes nothing.
func (m *minute) pass(at time.Time, rate float64) {
	if m.began.IsZero() {
		m.began = at
	}
	to := at.Sub(m.began)
	if to-m.passed >= time.Duration(slots)*slot {
		*m = minute{began: at, before: max(0, m.debt()-rate*(to-m.passed).Seconds())}
		return
	}
	for m.passed < to {
		end := time.Duration(m.now+1) * slot
		until := min(to, end)
		m.cells[m.now%slots].paid += rate * (until - m.passed).Seconds()
		m.passed = until
		if until < end {
			break
		}
		m.now++
		if m.now-m.first == slots {
			m.forget()
		}
		m.cells[m.now%slots] = cell{last: end}
	}
	for m.first < m.now && to-m.cells[m.first%slots].last >= time.Minute {
		m.forget()
	}
}

// forget removes the oldest slot.
func (m *minute) forget() {
	c := &m.cells[m.first%slots]
	m.before = max(0, m.before+c.units-c.paid)
	m.sum -= c.units
	m.first++
}

// debt returns the units for which the rate of the limit has not made up.
func (m *minute) debt() float64 {
	debt := m.before
	for n := m.first; n <= m.now; n++ {
		c := &m.cells[n%slots]
		debt = max(0, debt+c.units-c.paid)
	}
	return debt
}

// add adds units that were taken at a time; below 0 it gives them back. What belongs into a slot that is over for more
// than 60 s is added now, or taken off the debt if it is given back.
func (m *minute) add(units float64, at time.Time) {
	n := int64(at.Sub(m.began) / slot)
	switch {
	case n >= m.first && n <= m.now && !at.Before(m.began):
	case units < 0:
		m.before = max(0, m.before+units)
		return
	default:
		n = m.now
	}
	c := &m.cells[n%slots]
	c.units += units
	m.sum += units
	if n == m.now && units > 0 {
		c.last = m.passed
	}
}

// until returns the time until the sum is at most the given number of units; 0 = now.
func (m *minute) until(most float64) time.Duration {
	over := m.sum - most - 1e-6 // sums of floating point
	if over <= 0 {
		return 0
	}
	n := m.first
	for ; n < m.now; n++ {
		over -= m.cells[n%slots].units
		if over <= 0 {
			break
		}
	}
	return max(time.Millisecond, m.cells[n%slots].last+time.Minute-m.passed)
}

// empty returns how long it takes until nothing is left.
func (m *minute) empty() time.Duration { return m.until(1e-6) }

// Shown is for how long one part of a Past is.
const Shown = 5 * time.Second

// Past is what was taken of a limit in the last 60 s, the newest 5 s first.
type Past [int(time.Minute / Shown)]float64

// past returns what was taken, by its age.
func (m *minute) past() (p Past) {
	for n := m.first; n <= m.now; n++ {
		c := &m.cells[n%slots]
		p[min(len(p)-1, int(max(0, m.passed-c.last)/Shown))] += c.units
	}
	return p
}
