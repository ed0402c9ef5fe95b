package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/route"
)

// Sent implements route.Teller.
func (t *Teller) Sent(s *route.Sent, chains []prompt.Chain, at time.Time) uint64 {
	t.mu.Lock()
	t.next++
	a := act{kind: kindSent, id: t.next, sent: *s, chains: len(chains), at: at, from: len(t.said.hashes)}
	for i := range chains {
		t.said.chain(chains[i].Hashes)
	}
	t.said.send(&a)
	t.noted(at)
	if t.pass != nil {
		t.pass(at.Add(-patience))
	}
	return a.id
}

// FirstByte implements route.Teller.
func (t *Teller) FirstByte(id uint64, at time.Time) {
	t.mu.Lock()
	if a := t.said.of(id); a != nil {
		a.first = at
	} else {
		t.said.acts = append(t.said.acts, act{kind: kindFirst, id: id, at: at})
	}
	t.noted(at)
}

// Answer implements route.Teller.
func (t *Teller) Answer(id, space uint64, chain []uint64, at time.Time) {
	t.mu.Lock()
	a := t.said.of(id)
	if a == nil || !t.said.answers(a, space, chain, at) {
		if a != nil {
			a.apart = true
		}
		t.said.acts = append(t.said.acts,
			act{kind: kindAnswer, id: id, sent: route.Sent{Space: space}, at: at, from: t.said.chain(chain)})
	}
	t.noted(at)
}

// Ended implements route.Teller.
func (t *Teller) Ended(id uint64, at time.Time) {
	t.mu.Lock()
	if a := t.said.of(id); a != nil {
		a.ended = true
	} else {
		t.said.acts = append(t.said.acts, act{kind: kindEnded, id: id, at: at})
	}
	t.noted(at)
	if t.pass != nil {
		t.pass(at)
	}
}

// Forgotten implements route.Teller.
func (t *Teller) Forgotten(worker uint64) {
	t.mu.Lock()
	t.said.part()
	t.said.acts = append(t.said.acts, act{kind: kindForgotten, sent: route.Sent{Worker: worker}})
	t.noted(time.Time{})
}

// noted releases mu, which its caller holds, after a note for the next frame. If many notes wait, it writes them.
func (t *Teller) noted(at time.Time) {
	much := t.said.full()
	if !at.IsZero() {
		t.wake(at)
	}
	t.mu.Unlock()
	if much {
		t.catchUp()
	}
}

var _ route.Teller = (*Teller)(nil)
