package listen

import (
	"net"
	"sync"
	"time"
)

// lazy sets read deadlines when they are needed. fasthttp sets two a request, one for the wait before it and one for
// its header. Most often everything comes with the first read: then the second deadline is never needed, and the first
// is nearly the one of the request before. Each would cost a change of the runtime's timers and three looks at the
// clock, 1 us.
type lazy struct {
	mu      sync.Mutex    // guards all below
	want    time.Time     // the last one asked for; zero = none
	set     time.Time     // the one that the connection has
	extra   time.Duration // by which set was made later than was asked for
	reading bool

	since     int64 // the look since which the read that runs waits for a request; 0 = it does not
	dismissed bool  // the read is to end, as the server stops waiting
}

// maxExtra bounds how late a deadline is set so that it serves later requests too. Together with lingerBrief, a client
// that sends half a head still loses its connection within a second of its deadline.
const maxExtra = 500 * time.Millisecond

// ask makes t the deadline, at once for a read that runs.
func (p *lazy) ask(conn net.Conn, t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want = t
	if p.reading {
		return p.apply(conn)
	}
	return nil
}

// begin prepares a read.
func (p *lazy) begin(conn net.Conn, since int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading = true
	p.since = since
	return p.apply(conn)
}

// end ends it. It reports whether the read was dismissed.
func (p *lazy) end() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	dismissed := p.dismissed
	p.reading = false
	p.dismissed = false
	return dismissed
}

// apply sets the deadline, with mu held.
func (p *lazy) apply(conn net.Conn) error {
	late := p.set.Sub(p.want)
	switch {
	case p.want.IsZero() && p.set.IsZero(), !p.want.IsZero() && !p.set.IsZero() && late >= 0 && late <= p.extra:
		return nil
	case p.want.IsZero():
		p.set = time.Time{}
		p.extra = 0
	default:
		p.extra = max(0, min(maxExtra, time.Until(p.want)/8))
		p.set = p.want.Add(p.extra)
	}
	return conn.SetReadDeadline(p.set)
}
