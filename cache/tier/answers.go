package tier

import "bytes"

// What follows brings memory to what Redis answered, while others may have changed the same value.

// answer is what Redis said of a value to a question asked when read gave the ticket.
type answer struct {
	ticket  uint32
	value   []byte // nil: there is none
	expires int64
	changed bool // Redis did not have this value before the question
}

// adopt takes an answer over. If the value was changed here meanwhile, nobody knows which came first: what stands is
// kept, but Redis is asked at the next read.
func (m *memory) adopt(k id, a answer, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slot := m.slot(k)
	e := m.find(k, now)
	switch {
	case *slot != a.ticket:
		if e != nil {
			e.checked = doubt
		}
	case a.value == nil:
		if e != nil {
			m.remove(e)
		}
	case e != nil && e.owes != paid: // is sent to Redis later, and is newer than what it answered
	default:
		m.store(k, write{value: a.value, expires: a.expires}, now)
		if !a.changed {
			*slot = a.ticket
		}
	}
}

// adoptInDoubt keeps an answer for a value that was not known here before, and is not now. adopt leaves it out when
// another key of the slot was changed meanwhile, but it must be here if Redis falls silent. Redis is asked at the next
// read.
func (m *memory) adoptInDoubt(k id, a answer, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.find(k, now) != nil {
		return
	}
	if _, ok := m.store(k, write{value: a.value, expires: a.expires}, now); ok {
		m.find(k, now).checked = doubt
	}
}

// markPaid marks as paid what stood at the ticket; a tombstone has then done its work.
func (m *memory) markPaid(k id, ticket uint32, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(k, now)
	switch {
	case e == nil:
	case *m.slot(k) != ticket:
		e.checked = doubt
	case !e.live():
		m.remove(e)
	default:
		m.setDebt(e, paid)
	}
}

// markOwing marks that Redis has to be given what stands there now.
func (m *memory) markOwing(k id, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(k, now); e != nil && e.live() {
		m.setDebt(e, oweSet)
	} else if e != nil {
		m.setDebt(e, oweDelete)
	}
}

// finish takes over what Redis said to a change that was owed, and reports whether the debt is done with. What was
// changed here meanwhile stays owed, on top of what Redis is now known to have.
func (m *memory) finish(o *owed, r reply, now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := o.entry
	if e.at == gone {
		return true
	}
	other := r.kind == kindValue && !bytes.Equal(r.value, o.value)
	switch {
	case e.version != o.version:
		if e.owes.givesWay() && !other && r.kind != kindTombstone {
			e.base = o.value
		}
		return false
	case !e.live():
		m.remove(e)
	case other:
		m.store(o.id, write{value: r.value, expires: until(now, r.ttl)}, now)
	case r.kind == kindTombstone:
		m.remove(e)
	case e.expires != o.expires:
		m.setDebt(e, oweTouch)
	default:
		e.base = nil
		m.setDebt(e, paid)
	}
	return true
}
