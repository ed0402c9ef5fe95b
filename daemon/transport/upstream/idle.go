package upstream

import (
	"sync"
	"time"
)

// idle holds the connections that wait for a request. The last one back is the first one out, so that after a peak the
// others grow old and go.
type idle struct {
	limit   int
	timeout time.Duration

	mu     sync.Mutex // guards all below
	epoch  uint64     // goes up with each retire
	conns  []idleConn // since never goes down, so the oldest stand in front
	timer  *time.Timer
	armed  bool // the timer will fire
	closed bool
}

type idleConn struct {
	conn  *conn
	since time.Time
}

// put keeps a connection. If it returns false the caller closes it.
func (p *idle) put(c *conn, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.conns) >= p.limit || c.epoch != p.epoch {
		return false
	}
	p.conns = append(p.conns, idleConn{conn: c, since: now})
	if !p.armed {
		p.armed = true
		if p.timer == nil {
			p.timer = time.AfterFunc(p.timeout, p.reap)
		} else {
			p.timer.Reset(p.timeout)
		}
	}
	return true
}

// take returns the youngest connection; nil if there is none that is young enough.
func (p *idle) take(now time.Time) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.conns) - 1
	if last < 0 || now.Sub(p.conns[last].since) >= p.timeout {
		return nil // the timer is late: they are all too old
	}
	c := p.conns[last].conn
	p.conns[last] = idleConn{}
	p.conns = p.conns[:last]
	return c
}

// reap closes what has waited too long. One timer for all, set to the oldest.
func (p *idle) reap() {
	now := time.Now()
	p.mu.Lock()
	n := 0
	for n < len(p.conns) && now.Sub(p.conns[n].since) >= p.timeout {
		n++
	}
	old := append([]idleConn(nil), p.conns[:n]...)
	kept := copy(p.conns, p.conns[n:])
	clear(p.conns[kept:])
	p.conns = p.conns[:kept]
	p.armed = kept > 0
	if p.armed {
		p.timer.Reset(p.timeout - now.Sub(p.conns[0].since))
	}
	p.mu.Unlock()
	for _, o := range old {
		o.conn.close()
	}
}

// close returns all connections to the caller, and takes no more.
func (p *idle) close() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.dropAll()
}

// clear returns all connections to the caller.
func (p *idle) clear() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropAll()
}

// retire returns all connections to the caller, and makes put refuse those that are in use.
func (p *idle) retire() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch++
	return p.dropAll()
}

// current returns the epoch of a connection that is made now.
func (p *idle) current() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.epoch
}

// dropAll runs with mu held.
func (p *idle) dropAll() []*conn {
	p.armed = false
	if p.timer != nil {
		p.timer.Stop()
	}
	all := make([]*conn, len(p.conns))
	for i := range p.conns {
		all[i] = p.conns[i].conn
	}
	p.conns = nil
	return all
}
