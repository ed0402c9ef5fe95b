package peers

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// laneTimeout is how long an exchange on the lane may take: a slower Redis is for calls that wait for it.
	laneTimeout = callTimeout / 2
	// mostInPassing is the bytes that are written at once in passing: what every socket takes.
	mostInPassing = 64 << 10
)

// lane is a connection of its own for the rounds while requests come, of which a request may begin one in passing: it
// writes, and waits for nothing. Whatever goes wrong on it closes it, and an ordinary call then finds out what it is.
type lane struct {
	on atomic.Bool // requests may begin rounds

	mu    sync.Mutex // held while frames are under way by another call as well; guards all below
	cable *cable     // nil: there is none
	under *parcel    // the exchange whose answer has not been applied; nil = none
	idle  bool       // the last exchange told nothing and heard nothing
}

// there reports whether it can be used.
func (l *lane) there() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cable != nil
}

// parcel is what is sent at once, and what is asked for.
type parcel struct {
	of      []*Member // that have something to send
	all     []batch   // of each
	reading reading
	at      time.Time
}

// add takes up to most bytes of what a pool has to send; its stream keeps about kept bytes.
func (u *parcel) add(m *Member, most, kept int) {
	if frames := m.teller.Take(most, u.at); len(frames) > 0 {
		u.of = append(u.of, m)
		u.all = append(u.all, batch{stream: m.stream, frames: frames, most: m.keeps(kept)})
	}
}
