package tier

import "bytes"

// What follows brings memory to what Redis answered, while others may have changed the same value.

// answer is what Redis answered for a value, to a question asked when read gave the ticket.
type answer struct {
	ticket  uint32
	value   []byte // nil: there is none
	expires int64
	changed bool // Redis did not have this value before the question
}

// adopt stores an answer of Redis. If the value was changed here after the question was sent, it is unknown which
// change came first. Then the value here stays, and Redis is asked again at the next read.
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
	case e != nil && e.owes != paid: // it will be sent to Redis, and is newer than the answer
	default:
		m.store(k, write{value: a.value, expires: a.expires}, now)
		if !a.changed {
			*slot = a.ticket
		}
	}
}

// adoptInDoubt stores an answer for a value that is not held here. adopt does not store it if another key of the same
// slot was changed after the question was sent. It must be here all the same, in case Redis falls silent. Redis is
// asked again at the next read.
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

// distrust has Redis asked at the next read, however lately it was.
func (m *memory) distrust(k id, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(k, now); e != nil {
		e.checked = doubt
	}
}

// markPaid marks the entry as paid if it has not changed since the ticket. A tombstone that is paid is removed.
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

// markOwing marks that Redis must get the present value.
func (m *memory) markOwing(k id, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.find(k, now); e != nil && e.live() {
		m.setDebt(e, oweSet)
	} else if e != nil {
		m.setDebt(e, oweDelete)
	}
}

// finish stores what Redis answered to a change that was owed, and reports whether the debt is over. If the value was
// changed here meanwhile, that later change is still owed, based on what Redis now has.
func (m *memory) finish(o *owed, r reply, now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := o.entry
	if e.at == 0 {
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
