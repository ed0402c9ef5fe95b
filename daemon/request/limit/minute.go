package limit

import "time"

// slot is how exactly a minute knows when something was taken. The last 60 s end between two slots, so that a unit
// counts for up to one slot longer.
const slot = 500 * time.Millisecond

// slots are those of 60 s, with the one that has begun and the one that ends.
const slots = int64(time.Minute/slot) + 1

// minute holds what was taken in the last 60 s. Its zero value is ready.
type minute struct {
	began time.Time // of slot 0
	now   int64     // number of the slot that has begun
	units [slots]float64
	sum   float64
}

// number returns the number of the slot of a time.
func (m *minute) number(at time.Time) int64 {
	if m.began.IsZero() {
		m.began = at
	}
	return int64(at.Sub(m.began) / slot)
}

// pass forgets what is older than 60 s.
func (m *minute) pass(at time.Time) {
	n := m.number(at)
	if n-m.now >= slots {
		m.units, m.sum, m.now = [slots]float64{}, 0, n
	}
	for m.now < n {
		m.now++
		m.sum -= m.units[m.now%slots]
		m.units[m.now%slots] = 0
	}
}

// add adds units that were taken at a time. What belongs into a slot that is over for more than 60 s is added now, or
// forgotten if it is given back.
func (m *minute) add(units float64, at time.Time) {
	n := m.number(at)
	switch {
	case n > m.now-slots && n <= m.now && n >= 0:
	case units < 0:
		return
	default:
		n = m.now
	}
	m.units[n%slots] += units
	m.sum += units
}

// until returns how long it takes until the sum is at most so many units; 0 = it is.
func (m *minute) until(most float64, at time.Time) time.Duration {
	over := m.sum - most - 1e-6 // sums of floating point
	if over <= 0 {
		return 0
	}
	n := m.now - slots + 1
	for ; n <= m.now && over > 0; n++ {
		over -= m.units[(n+slots)%slots]
	}
	gone := m.began.Add(time.Duration(n-1+slots) * slot)
	return max(time.Millisecond, gone.Sub(at))
}

// empty returns how long it takes until nothing is left.
func (m *minute) empty(at time.Time) time.Duration { return m.until(1e-6, at) }
