package listen

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Goner handles a client that has left.
type Goner interface {
	// Gone handles the departure. It is called at most once a Watch, from any goroutine, with the Conn's lock held.
	// It must be short (a close, a cancel), and must neither call Watch or Unwatch of that Conn nor wait for a goroutine
	// that does. One goroutine calls it for all connections of a Listener.
	Gone()
}

// presence holds whether the client of a connection is there, and what to call when it leaves.
type presence struct {
	gone *atomic.Uint64 // counts those that left while watched

	mu    sync.Mutex // guards the rest; held while Gone runs
	waits Goner      // nil when there is no watch
	gen   uint64     // of the latest watch
	fired bool       // Gone was called for gen
	left  bool       // the peer has left; stays
	wake  func()     // of Conn.Await; nil = there is none
	until time.Time  // wake is called then at the latest
	key   uint32     // not guarded: the watcher's alone
}

// watch implements Conn.Watch.
func (p *presence) watch(g Goner) (gen uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gen++
	p.waits = g
	p.fired = false
	if p.left {
		p.fire()
	}
	return p.gen
}

// unwatch implements Conn.Unwatch.
func (p *presence) unwatch(gen uint64) (gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gen != gen {
		return false
	}
	p.waits = nil
	return p.fired
}

// peerLeft records that the client left. The watcher calls it.
func (p *presence) peerLeft() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	p.fire()
}

// fire calls Gone if there is a watch. It runs with mu held.
func (p *presence) fire() {
	if p.waits == nil {
		return
	}
	g := p.waits
	p.waits = nil
	p.fired = true
	p.gone.Add(1)
	g.Gone()
}

// await makes the next stir call wake, or stirLate after until.
func (p *presence) await(until time.Time, wake func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = until
	p.wake = wake
}

// stir calls wake, if there is one.
func (p *presence) stir() {
	p.mu.Lock()
	wake := p.wake
	p.wake = nil
	p.mu.Unlock()
	if wake != nil {
		go wake()
	}
}

// stirLate is stir, if until has passed.
func (p *presence) stirLate(now time.Time) {
	p.mu.Lock()
	late := p.wake != nil && now.After(p.until)
	p.mu.Unlock()
	if late {
		p.stir()
	}
}

// watcher calls peerLeft for each presence between its add and remove, at least once soon after the client has left.
type watcher interface {
	add(p *presence, raw net.Conn) error
	remove(p *presence, raw net.Conn) // also after a failed add

	// await makes it call stir as well once there is something to read, or is already, until a call without on.
	await(p *presence, raw net.Conn, on bool) error
	close() // once, when no connection is left
}
