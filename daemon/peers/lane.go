package peers

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// laneTimeout is how long an exchange on the lane may take. A slower Redis is left to calls that wait for their
	// answer.
	laneTimeout = callTimeout / 2
	// mostInPassing bounds the bytes of one write in passing: every socket takes as many.
	mostInPassing = 64 << 10
)

// lane is a connection of its own for the rounds while requests come. A request may begin a round in passing: it
// writes, and waits for nothing. Any fault on the lane closes it, and an ordinary call then finds the cause.
type lane struct {
	on atomic.Bool // requests may begin rounds

	mu      sync.Mutex // also held while another call sends frames; guards all below
	cable   *cable     // nil: there is none
	current *parcel    // the exchange whose answer has not been applied; nil = none
	idle    bool       // the last exchange sent nothing and received nothing
}

// connected reports whether the lane has a connection.
func (l *lane) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cable != nil
}

// parcel is what one exchange sends and reads.
type parcel struct {
	members []*Member // that have frames in it
	batches []batch   // one for each of these
	reading reading
	at      time.Time
}

// add takes up to most bytes of a pool's frames; its stream keeps about kept bytes.
func (u *parcel) add(m *Member, most, kept int) {
	if frames := m.sender.Take(most, u.at); len(frames) > 0 {
		u.members = append(u.members, m)
		u.batches = append(u.batches, batch{stream: m.stream, frames: frames, most: m.entriesToKeep(kept)})
	}
}
