package resp

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/cache/parts/seldom"
)

// Config configures the door and names the store behind it.
type Config struct {
	Listen   string      // HOST:PORT
	Bind     bind.Binder // nil = the system
	Store    *kvstore.Store
	User     string        // of AUTH, beside "default"; "" (default) = "default" alone
	Password string        // "" (default) = no AUTH is required
	TLS      *tls.Config   // nil (default) = plain TCP
	MaxConns int           // further clients get an error and are closed; default 10,000, as Redis
	Promise  time.Duration // how long EXISTS promises a value to its client; default 30 s
	Peer     string        // the client name of a daemon of the same pool; "" (default) = there is none
	Version  string        // of the program, for INFO
	Log      *slog.Logger  // default slog.Default()

	Pool Pool // of daemons that share their memory; nil (default) = there is none
}

// Pool is several daemons that share their memory.
type Pool interface {
	// Member reports whether a daemon of the pool may have that address. It is asked where there is no Password, which
	// such a daemon would have to give.
	Member(addr netip.Addr) bool
	// Hear receives what such a daemon publishes. message is valid until Hear returns.
	Hear(message []byte) error
}

// Server is the door. New binds it, Run serves, Close ends both.
type Server struct {
	config   Config
	listener net.Listener
	started  time.Time
	run      string // of this start, as Redis has one in INFO
	counts   counters
	held     *quota.Bytes // of the arguments of commands

	unaccepted, stalls, passwords, strangers seldom.Line // log lines that clients cause

	mu      sync.Mutex // guards conns, ids and closing
	conns   map[*conn]struct{}
	ids     int64
	closing bool
	running sync.WaitGroup // of connections
}

// counters are the door's counters; see Stats.
type counters struct {
	commands, failed, refused, stalled atomic.Uint64
	read, written                      atomic.Uint64
	hits, misses                       atomic.Uint64
}

// Stats counts what the door has done since it opened.
type Stats struct {
	Connections        int    // open now
	Refused            uint64 // connections over MaxConns
	Commands, Failed   uint64 // commands; those that got an error
	Stalled            uint64 // clients given up within a command or a reply
	Hits, Misses       uint64 // of GET and MGET, key by key
	BytesIn, BytesSent uint64
}

// New binds the door. It serves nothing before Run.
func New(c Config) (*Server, error) {
	if c.MaxConns <= 0 {
		c.MaxConns = 10_000
	}
	if c.Promise <= 0 {
		c.Promise = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	l, err := bind.Or(c.Bind).Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("resp: %w", err)
	}
	return &Server{config: c, listener: l, started: time.Now(), run: rand.Text(),
		held: quota.New(maxHeld), conns: map[*conn]struct{}{}}, nil
}

// Addr returns the door's address, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until Close.
func (s *Server) Run() error {
	for {
		n, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // no descriptor is free, or the client has left already
			if s.unaccepted.Due(time.Now(), time.Minute) {
				s.config.Log.Warn("a connection to the KV cache could not be accepted", "listen", s.Addr(), "error", err)
			}
			time.Sleep(50 * time.Millisecond)
			continue
		}
		c := s.admit(n)
		if c == nil {
			s.refuse(n)
			continue
		}
		go func() {
			defer s.running.Done()
			defer s.forget(c)
			c.serve()
		}()
	}
}

// admit makes the conn of a new connection; nil = there are too many, or the door closes.
func (s *Server) admit(n net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.conns) >= s.config.MaxConns && !s.makeRoom() {
		return nil
	}
	s.ids++
	c := newConn(s, n, s.ids)
	s.conns[c] = struct{}{}
	s.running.Add(1)
	return c
}

// maxHeld bounds the bytes of all clients' commands, beyond what each may hold.
const maxHeld = 64 << 20

// makeRoom closes the client that was silent for longest among those that have sent no command, or no password where
// one is set. It reports whether there was one. The caller holds mu.
func (s *Server) makeRoom() bool {
	var oldest *conn
	for c := range s.conns {
		if !c.introduced.Load() && (oldest == nil || c.id < oldest.id) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	delete(s.conns, oldest)
	oldest.raw.Close()
	s.counts.refused.Add(1)
	return true
}

func (s *Server) refuse(n net.Conn) {
	s.counts.refused.Add(1)
	_ = n.SetDeadline(time.Now().Add(time.Second))
	if s.config.TLS == nil {
		_, _ = n.Write([]byte("-ERR max number of clients reached\r\n"))
	}
	n.Close()
}

// warnOfStranger logs a client that uses the pool's name without right.
func (s *Server) warnOfStranger(client netip.Addr) {
	if s.strangers.Due(time.Now(), time.Minute) {
		s.config.Log.Warn("a client calls itself a daemon of the KV cache's pool, and is refused: it comes from no member's "+
			"address", "client", client, "remedy", "if it is one, give all members a kv_cache.password_file, or list its "+
			"address in kv_cache.l2.members")
	}
}

func (s *Server) forget(c *conn) {
	c.net.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close accepts no more connections, lets each one finish its command within ctx, and closes them.
func (s *Server) Close(ctx context.Context) {
	s.listener.Close()
	s.mu.Lock()
	s.closing = true
	for c := range s.conns {
		c.finish()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.net.Close()
	}
	s.mu.Unlock()
	<-done
}

// Stats returns the counts.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	n := &s.counts
	return Stats{Connections: open, Refused: n.refused.Load(), Commands: n.commands.Load(), Failed: n.failed.Load(),
		Stalled: n.stalled.Load(), Hits: n.hits.Load(), Misses: n.misses.Load(), BytesIn: n.read.Load(),
		BytesSent: n.written.Load()}
}
