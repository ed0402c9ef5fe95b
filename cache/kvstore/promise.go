package kvstore

import (
	"context"
	"net/netip"
	"time"
)

// What a tier behind has is promised by a pin that waits for the value. The value comes as soon as a fetcher is free,
// or with the GET, if that is first; memory.add gives it the pin. So it is there when the client asks, whatever the
// tier evicts meanwhile.

const (
	maxWanted = 4096 // promises of values that are not in memory yet: 64 GiB at 16 MiB each. No more are made
	fetchers  = 4    // reads of promised values at a time
)

// want promises a value that is not in memory and has it fetched; false = there are too many. The caller holds mu.
func (s *Store) want(key string, owner netip.Addr, until time.Time) bool {
	w := s.memory.wanted[key]
	if w == nil {
		if len(s.memory.wanted) >= maxWanted {
			return false
		}
		select {
		case s.ahead <- key:
		default:
			return false
		}
		w = &entry{}
		s.memory.wanted[key] = w
		if s.fetching < fetchers {
			s.fetching++
			go s.fetchAhead()
		}
	}
	w.pin(owner, until)
	return true
}

// fetchAhead gets what was promised, until there is no more of it.
func (s *Store) fetchAhead() {
	for {
		key, ok := s.nextWanted()
		if !ok {
			return
		}
		if l, _ := s.load(context.Background(), flight{key: key}, netip.Addr{}); l != nil {
			l.Release()
			continue
		}
		s.mu.Lock()
		if s.behind.find(key, time.Time{}, Everywhere) < 0 { // else memory is full, and the GET tries again
			s.memory.settle(key, netip.Addr{}, false)
		}
		s.mu.Unlock()
	}
}

// nextWanted returns a key whose promise still waits for its value. false = there is none, and the fetcher ends.
func (s *Store) nextWanted() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ahead) > 0 && !s.closed {
		key := <-s.ahead
		if s.memory.wanted[key] != nil {
			return key, true
		}
	}
	s.fetching--
	return "", false
}

// settle ends promises of a value that is not in memory: the owner has read it elsewhere, or it is lost.
func (m *memory) settle(key string, owner netip.Addr, found bool) {
	w := m.wanted[key]
	if w == nil {
		return
	}
	if found {
		w.redeem(owner)
	} else {
		m.broken++
		w.pins = nil
	}
	if len(w.pins) == 0 {
		delete(m.wanted, key)
	}
}
