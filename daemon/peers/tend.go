package peers

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
)

const (
	openEvery = 4  // beats after which the list of requests in flight is sent again
	listEvery = 10 // beats after which the workers are sent again, changed or not
	// generation is how long the beginning of a chain may be named at least; twice that at most.
	generation   = 150 * time.Second
	restartEvery = 5 * time.Second // other routers can request chains in full as often
)

// tend does the work of every second: it sends a beat, and what other routers have requested.
func (m *Member) tend(name string, now time.Time) {
	asked, restart, flags := m.receiver.TakeRequests()
	m.mu.Lock()
	m.beats++
	due := m.beats%openEvery == 0
	allDrains := m.beats%drainsEvery == 0
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
		m.chains.sendInFull()
	}
	m.queueBeat(name, flags, now)
	told := m.pool.Book.Told.Take() // before the drains: a hand-over counts where its worker drains
	for _, d := range m.receiver.drains.take(allDrains, now) {
		m.sender.QueueSession(d, now)
	}
	for id, until := range told {
		if until.After(now) {
			m.sender.QueueSession(Session{Kind: handOverRecord, Key: id, Life: until.Sub(now)}, now)
		}
	}
	m.share(now)
	if asked || due {
		m.sender.QueueOpen(now)
	}
}

// queueBeat queues a heartbeat. It lists the workers if they changed, or if no beat has listed them for long.
func (m *Member) queueBeat(name string, flags byte, now time.Time) {
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
		m.receiver.setOwnWorkers(own)
	}
	m.sender.QueueBeat(&b, now)
}

// named lists a pool's workers. The address is a hash that only routers with the same secret can compare.
func named(pool *route.Pool, secret route.Secret, now time.Time) (all []Named) {
	for _, s := range pool.Workers.Stats(now) {
		h := sha256.Sum256(append(append([]byte{byte(s.Rank)}, secret[:]...), s.URL...))
		all = append(all, Named{ID: s.ID, Key: worker.KeyOf(s.ID), Address: binary.LittleEndian.Uint64(h[:])})
	}
	return all
}
