package peers

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/worker"
)

const (
	openEvery = 4  // beats after which all requests in flight are told again
	listEvery = 10 // beats after which the workers are told again, changed or not
	// generation is how long the beginning of a chain may be named, at least; twice that at most.
	generation   = 150 * time.Second
	restartEvery = 5 * time.Second // others may ask for chains in full as often
)

// tend does what is due every second: a beat, and what others have asked for.
func (m *Member) tend(name string, now time.Time) {
	asked, restart, flags := m.hearer.Wants()
	m.mu.Lock()
	m.beats++
	due := m.beats%openEvery == 0
	if m.aged.IsZero() {
		m.aged = now
	}
	age := now.Sub(m.aged) >= generation
	if age {
		m.aged = now
	}
	restart = restart && now.Sub(m.restarts) >= restartEvery
	if restart {
		m.restarts = now
	}
	m.mu.Unlock()
	if age {
		m.chains.age()
	}
	if restart {
		m.chains.restart()
	}
	m.beat(name, flags, now)
	if asked || due {
		m.teller.Open(now)
	}
}

// beat tells that this router lives, and its workers if they changed or were not told for long.
func (m *Member) beat(name string, flags byte, now time.Time) {
	own := named(m.pool, m.pool.Secret(), now)
	b := Beat{Name: name, Workers: own, flags: flags}
	b.digest = sum(b.Workers)
	m.mu.Lock()
	if b.digest == m.digest && m.beats%listEvery != 0 {
		b.Workers = nil
	}
	changed := b.digest != m.digest
	m.digest = b.digest
	m.mu.Unlock()
	if changed {
		m.hearer.know(own)
	}
	m.teller.Beat(&b, now)
}

// named lists a pool's workers. An address is told as a hash that only those who share the secret can compare.
func named(pool *route.Pool, secret route.Secret, now time.Time) (all []Named) {
	for _, s := range pool.Workers.Stats(now) {
		h := sha256.Sum256(append(append([]byte{byte(s.Rank)}, secret[:]...), s.URL...))
		all = append(all, Named{ID: s.ID, Key: worker.KeyOf(s.ID), Address: binary.LittleEndian.Uint64(h[:])})
	}
	return all
}
