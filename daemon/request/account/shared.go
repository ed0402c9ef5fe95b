package account

import (
	"net/netip"
	"sync"
)

// Shared is a store that all clients share, in bytes. A client may take as much as it leaves for all others: a single
// client gets half of the resource, two clients get a third each. So there is always room for the next one. A client
// is a key, or without keys a network, see [Network]. Its zero value is empty. It is safe for concurrent use.
type Shared struct {
	mu    sync.Mutex // guards all below
	taken int64
	by    map[string]int64 // clients that hold something
}

// Taken returns the bytes that all clients hold.
func (s *Shared) Taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// take counts n bytes more of a client, if it then holds no more than is left of most.
func (s *Shared) take(client string, n, most int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[client]+n > most-s.taken-n {
		return false
	}
	if s.by == nil {
		s.by = map[string]int64{}
	}
	s.by[client] += n
	s.taken += n
	return true
}

// give counts n bytes of a client down.
func (s *Shared) give(client string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	s.by[client] -= n
	if s.by[client] == 0 {
		delete(s.by, client)
	}
}

// Part is what one request holds of a Shared. The zero value holds nothing. It is not safe for concurrent use.
type Part struct {
	of     *Shared
	client string
	held   int64
}

// Part returns an empty part for a client.
func (s *Shared) Part(client string) Part { return Part{of: s, client: client} }

// Client returns who holds it.
func (p *Part) Client() string { return p.client }

// Grow sets the bytes that the part holds, if the client may hold them and the total limit allows it. If not, it
// holds as much as before. A part never shrinks.
func (p *Part) Grow(to, most int64) bool {
	if to <= p.held {
		return true
	}
	if !p.of.take(p.client, to-p.held, most) {
		return false
	}
	p.held = to
	return true
}

// Release gives back what the part holds. It may be called more than once.
func (p *Part) Release() {
	if p.held > 0 {
		p.of.give(p.client, p.held)
		p.held = 0
	}
}

// Network returns whose address a client's is: the /64 of an IPv6 address, as one host may have every address in it.
// Any other text stays as it is.
func Network(client string) string {
	a, err := netip.ParseAddr(client)
	if err != nil || !a.Is6() || a.Is4In6() {
		return client
	}
	return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
}
