package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Sent implements route.Teller.
func (s *Sender) Sent(sent *route.Sent, chains []prompt.Chain, at time.Time) uint64 {
	s.mu.Lock()
	s.next++
	e := event{kind: kindSent, id: s.next, sent: *sent, chains: len(chains), at: at, from: len(s.queue.hashes)}
	for i := range chains {
		s.queue.addChain(chains[i].Hashes)
	}
	s.queue.addRequest(&e)
	s.finishEvent(at)
	return e.id
}

// FirstByte implements route.Teller.
func (s *Sender) FirstByte(id uint64, at time.Time) {
	s.mu.Lock()
	if e := s.queue.eventOf(id); e != nil {
		e.first = at
	} else {
		s.queue.events = append(s.queue.events, event{kind: kindFirst, id: id, at: at})
	}
	s.finishEvent(at)
}

// Answer implements route.Teller.
func (s *Sender) Answer(id, space uint64, chain []uint64, at time.Time) {
	s.mu.Lock()
	e := s.queue.eventOf(id)
	if e == nil || !s.queue.addAnswer(e, space, chain, at) {
		if e != nil {
			e.apart = true
		}
		s.queue.events = append(s.queue.events,
			event{kind: kindAnswer, id: id, sent: route.Sent{Space: space}, at: at, from: s.queue.addChain(chain)})
	}
	s.finishEvent(at)
}

// Ended implements route.Teller.
func (s *Sender) Ended(id uint64, at time.Time) {
	s.mu.Lock()
	if e := s.queue.eventOf(id); e != nil {
		e.ended = true
	} else {
		s.queue.events = append(s.queue.events, event{kind: kindEnded, id: id, at: at})
	}
	s.finishEvent(at)
}

// Forgotten implements route.Teller.
func (s *Sender) Forgotten(worker uint64) {
	s.mu.Lock()
	s.queue.separate()
	s.queue.events = append(s.queue.events, event{kind: kindForgotten, sent: route.Sent{Worker: worker}})
	s.finishEvent(time.Time{})
}

// finishEvent is called with mu held, after an event was put into the queue. It releases mu. If many events wait, it
// writes them into a frame.
func (s *Sender) finishEvent(at time.Time) {
	much := s.queue.full()
	if !at.IsZero() {
		s.owner.announce(at)
	}
	s.mu.Unlock()
	if much {
		s.writeQueued()
	}
}

var _ route.Teller = (*Sender)(nil)
