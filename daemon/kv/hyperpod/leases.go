package hyperpod

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// maxLeases bounds the leases at a time. LMCache has 100 requests under way.
const maxLeases = 65_536

// leases holds the values that workers read, by the id for their release.
type leases struct {
	prefix string // of this process's ids, so that another process's ids release nothing here

	mu   sync.Mutex // guards all below
	last uint64
	held map[string]held

	expired uint64
}

type held struct {
	lease *kvstore.Lease
	key   string // of the store
	until time.Time
}

func newLeases() *leases {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return &leases{prefix: hex.EncodeToString(random[:]), held: map[string]held{}}
}

// add stores a lease; false = there are too many.
func (l *leases) add(lease *kvstore.Lease, key string, until time.Time) (id string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) >= maxLeases {
		return "", false
	}
	l.last++
	id = fmt.Sprintf("%s-%d", l.prefix, l.last)
	l.held[id] = held{lease: lease, key: key, until: until}
	return id, true
}

// release ends a lease, and reports whether there was one: of that key, or of any with "". The lease of a lookup is
// followed by the lease of a read, so the value lingers.
func (l *leases) release(id, key string) bool {
	l.mu.Lock()
	h, ok := l.held[id]
	ok = ok && (key == "" || key == h.key)
	if ok {
		delete(l.held, id)
	}
	l.mu.Unlock()
	if ok {
		h.lease.Linger()
	}
	return ok
}

// expire ends the leases whose time is over.
func (l *leases) expire(now time.Time) {
	l.mu.Lock()
	var over []*kvstore.Lease
	for id, h := range l.held {
		if !now.Before(h.until) {
			over = append(over, h.lease)
			delete(l.held, id)
		}
	}
	l.expired += uint64(len(over))
	l.mu.Unlock()
	for _, lease := range over {
		lease.Release()
	}
}

// stats returns how many leases are held, were granted, and were never released.
func (l *leases) stats() (now int, granted, expired uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held), l.last, l.expired
}
