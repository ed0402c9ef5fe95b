package listen

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peekEvery is how late a leaving client may be found without epoll. A watched connection costs one recv each time.
const peekEvery = 20 * time.Millisecond

// peek looks for the end of what each watched connection has received. It misses a client that sent something more
// before it left; under TLS that is the closing record.
type peek struct {
	done chan struct{}

	mu    sync.Mutex // guards conns
	conns map[*presence]syscall.RawConn
}

func newPeek() (watcher, error) {
	p := &peek{done: make(chan struct{}), conns: map[*presence]syscall.RawConn{}}
	go p.run()
	return p, nil
}

func (p *peek) run() {
	t := time.NewTicker(peekEvery)
	defer t.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-t.C:
		}
		for _, c := range p.gone() {
			c.peerLeft()
		}
	}
}

// gone lists the watched connections whose client has left.
func (p *peek) gone() (gone []*presence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, raw := range p.conns {
		if c.watched() && ended(raw) {
			gone = append(gone, c)
		}
	}
	return gone
}

func (p *presence) watched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits != nil
}

func ended(raw syscall.RawConn) (end bool) {
	_ = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		end = n == 0 && err == nil || err != nil && err != unix.EAGAIN && err != unix.EINTR
	})
	return end
}

func (p *peek) add(c *presence, conn net.Conn) error {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("the connection has no descriptor")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = raw
	return nil
}

func (p *peek) remove(c *presence, _ net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *peek) await(*presence, net.Conn, bool) error { return errors.ErrUnsupported }

func (p *peek) close() { close(p.done) }
