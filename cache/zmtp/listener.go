package zmtp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bind"
)

// Listener accepts peers and hands each to a function. Its methods may be called side by side.
type Listener struct {
	config Config
	on     net.Listener
	handle func(*Conn)

	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	waiting newcomers // of peers that have yet to settle
	peers   atomic.Int64
	turned  atomic.Uint64
}

// Listen binds addr, where port 0 is any free one and * all interfaces. handle is called for each peer after its
// handshake, in a goroutine of its own; when it returns, the Conn is closed. Everything ends with ctx.
func Listen(ctx context.Context, addr string, c Config, handle func(*Conn)) (*Listener, error) {
	a, err := ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	if a.Network == "unix" {
		removeLeftover(a.Addr)
	}
	c = c.withDefaults()
	on, err := bind.Or(c.Bind).Listen(a.Network, a.Addr)
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	l := &Listener{config: c, on: on, handle: handle}
	l.ctx, l.end = context.WithCancel(ctx)
	l.running.Add(1)
	context.AfterFunc(l.ctx, func() {
		defer l.running.Done()
		on.Close()
	})
	l.running.Go(l.accept)
	return l, nil
}

// removeLeftover removes the socket file of a process that is gone. It leaves a socket at which a process listens, and
// a file that is not a socket.
func removeLeftover(path string) {
	if s, err := os.Lstat(path); err != nil || s.Mode()&os.ModeSocket == 0 {
		return
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		os.Remove(path)
	}
}

// Addr is where l listens, with the port that it got.
func (l *Listener) Addr() Address { return addressOf(l.on.Addr()) }

// Peers returns how many connections are open, handshakes under way among them, and how many were turned away in all.
func (l *Listener) Peers() (open int, refused uint64) { return int(l.peers.Load()), l.turned.Load() }

// acceptPause is how long accept waits after an error, such as too many open files.
const acceptPause = 100 * time.Millisecond

func (l *Listener) accept() {
	for {
		nc, err := l.on.Accept()
		if l.ctx.Err() != nil {
			if err == nil {
				nc.Close()
			}
			return
		}
		if err != nil {
			l.turn(l.Addr(), err)
			select {
			case <-l.ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		if l.peers.Add(1) > int64(l.config.Peers) && !l.makeRoom() {
			l.peers.Add(-1)
			nc.Close()
			l.turn(addressOf(nc.RemoteAddr()), fmt.Errorf("zmtp: %d peers already: %w", l.config.Peers, ErrLimit))
			continue
		}
		at := l.waiting.add(nc)
		l.running.Go(func() {
			defer l.peers.Add(-1)
			defer at.leave()
			l.serve(nc, at)
		})
	}
}

// makeRoom closes the peer that has waited longest without a word, where each has a time for that. It reports whether
// there was one.
func (l *Listener) makeRoom() bool {
	if l.config.First <= 0 {
		return false
	}
	oldest := l.waiting.closeOldest()
	if oldest == nil {
		return false
	}
	l.turn(addressOf(oldest.RemoteAddr()),
		fmt.Errorf("zmtp: %d peers already, and it has sent nothing: %w", l.config.Peers, ErrLimit))
	return true
}

func (l *Listener) turn(a Address, err error) {
	l.turned.Add(1)
	if l.config.Refused != nil {
		l.config.Refused(a, err)
	}
}

func (l *Listener) serve(nc net.Conn, at *newcomer) {
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(keepAlive)
	}
	a := addressOf(nc.RemoteAddr())
	c, err := newConn(l.ctx, nc, a, l.config, time.Now().Add(l.config.Handshake))
	if err != nil {
		if at.leave() && l.ctx.Err() == nil { // else makeRoom has counted it
			l.turn(a, err)
		}
		return
	}
	defer c.Close()
	c.place = at
	l.handle(c)
}

// Close stops listening, ends every connection and waits for the handlers to return. The address is free then.
func (l *Listener) Close() {
	l.end()
	l.running.Wait()
}
