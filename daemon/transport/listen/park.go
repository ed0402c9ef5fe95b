package listen

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// parkEvery is the time between looks at the connections whose server waits for a request. One that has waited over a
// whole such time is parked, so after one to two seconds: a client between two questions, not one under load.
const parkEvery = time.Second

// parking takes connections from a server that has waited for their next request for a while, see doc.go.
type parking struct {
	parked func(*Conn)   // Config.Parked; nil = the server waits
	now    atomic.Int64  // looks so far, and one; 0 = nobody looks
	done   chan struct{} // closed with the watching

	mu    sync.Mutex         // guards conns
	conns map[*Conn]struct{} // all that are open; nil = nobody looks
}

// begin looks every so often until the watching ends. After each look it calls then with the look's number.
func (p *parking) begin(parked func(*Conn), every time.Duration, then func(look int64)) {
	p.done = make(chan struct{})
	if parked == nil {
		return
	}
	p.parked, p.conns = parked, map[*Conn]struct{}{}
	p.now.Store(1)
	go func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-t.C:
				now := p.now.Add(1)
				p.look(now - 2)
				then(now)
			}
		}
	}()
}

// look ends the waits of all servers that began at the look last, or before.
func (p *parking) look(last int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for c := range p.conns {
		c.readBy.dismiss(c.raw, last)
		c.presence.stirLate(now)
	}
}

// answering reports whether a server is writing an answer.
func (p *parking) answering() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.answered.Load() && !c.closed.Load() {
			return true
		}
	}
	return false
}

// each calls f for every connection.
func (p *parking) each(f func(*Conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		f(c)
	}
}

func (p *parking) add(c *Conn) {
	if p.parked == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
}

func (p *parking) remove(c *Conn) {
	if p.parked == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// errParked is the server's read error once nothing waits for its data any more.
var errParked = errors.New("listen: the connection waits elsewhere")

// Read reads as Conn does. To the server, a connection that is to be parked ends here, as if its client had closed it.
func (l *lease) Read(b []byte) (int, error) {
	if l.waits {
		l.since = l.census.parking.now.Load()
	}
	n, err := l.Conn.Read(b)
	l.since = 0
	if n > 0 {
		l.waits = false
	}
	if !errors.Is(err, errParked) {
		return n, err
	}
	l.over.Store(true)
	go l.census.parking.parked(l.Conn)
	return 0, io.EOF
}

// SetReadDeadline sets Conn's. fasthttp sets one before it waits for another request, and the next one once a byte of
// it is there, whether or not it was read ahead. Between the two fasthttp holds nothing of the connection.
func (l *lease) SetReadDeadline(t time.Time) error {
	l.waits = l.answered.Swap(false) && !l.over.Load()
	return l.Conn.SetReadDeadline(t)
}

// SetDeadline sets the read deadline: writes have a deadline of their own.
func (l *lease) SetDeadline(t time.Time) error { return l.SetReadDeadline(t) }

// dismiss ends a read that has waited for a request since that look, or longer.
func (p *lazy) dismiss(conn net.Conn, since int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading && p.since != 0 && p.since <= since {
		p.dismissed = true
		p.set = time.Unix(1, 0)
		_ = conn.SetReadDeadline(p.set) // of a closed connection: its read has ended
	}
}
