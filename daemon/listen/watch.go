package listen

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Goner is called when a client has left.
type Goner interface {
	// Gone is called at most once a Watch, from any goroutine, with the Conn's lock held: it must be short (a close, a
	// cancel), and must neither call Watch or Unwatch of that Conn nor wait for somebody who does. One goroutine calls
	// it for all connections of a Listener.
	Gone()
}

// presence is whether the client of a connection is there, and who waits for it to leave.
type presence struct {
	gone *atomic.Uint64 // counts those that left while somebody waited

	mu    sync.Mutex // guards the rest; held while Gone runs
	waits Goner      // nil when nobody watches
	gen   uint64     // of the latest watch
	fired bool       // Gone was called for gen
	left  bool       // the peer has left; stays
	wake  func()     // of Conn.Await; nil when nobody awaits
	until time.Time  // it is called at the latest then
	key   uint32     // not guarded: the watcher's alone
}

// watch is Conn.Watch.
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

// unwatch is Conn.Unwatch.
func (p *presence) unwatch(gen uint64) (gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gen != gen {
		return false
	}
	p.waits = nil
	return p.fired
}

// peerLeft is called by the watcher.
func (p *presence) peerLeft() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	p.fire()
}

// fire calls Gone if somebody waits. It runs with mu held.
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

// await has wake called by the next of stir, or of stirLate once it is late.
func (p *presence) await(until time.Time, wake func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = until
	p.wake = wake
}

// stir wakes who awaits something of the client, if anybody does.
func (p *presence) stir() {
	p.mu.Lock()
	wake := p.wake
	p.wake = nil
	p.mu.Unlock()
	if wake != nil {
		go wake()
	}
}

// stirLate is stir for who awaits it no longer.
func (p *presence) stirLate(now time.Time) {
	p.mu.Lock()
	late := p.wake != nil && now.After(p.until)
	p.mu.Unlock()
	if late {
		p.stir()
	}
}

func (p *presence) watched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits != nil
}

// watcher calls peerLeft of what is between its add and remove, at least once soon after the client has left.
type watcher interface {
	add(p *presence, raw net.Conn) error
	remove(p *presence, raw net.Conn) // also after a failed add

	// await has stir called as well once there is something to read, or is at once, until it is called without on.
	await(p *presence, raw net.Conn, on bool) error
	close() // once, when no connection is left
}
