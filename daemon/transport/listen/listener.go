package listen

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/warmpath/warmpath/daemon/transport/certificate"
)

// Config sets how connections are served. The zero value is usable.
type Config struct {
	// WriteTimeout is how long a write may wait without getting a single byte out before the connection is reset.
	// Default 30 s. It acts between once and three times this.
	WriteTimeout time.Duration

	// MaxConns bounds the open connections; one more is closed as soon as it is accepted. Zero means no limit.
	MaxConns int

	// Limit is the name of MaxConns in the configuration, for the log. Default server.max_connections.
	Limit string

	// Certificate makes every connection speak TLS (1.2 or later, http/1.1). Default nil: none does.
	Certificate *certificate.Pair

	// Parked takes a plain connection whose server has waited for another request for a second or two, on a goroutine of
	// its own. The server has let it go; Parked continues to wait, then leases it again or closes it. Default nil: the
	// server waits.
	Parked func(*Conn)

	// Log gets what an operator should know. Default none.
	Log *slog.Logger

	parkEvery   time.Duration // a test's, between two looks at all connections; 0 = parkEvery
	longSilence time.Duration // a test's; 0 = longSilence
}

// Stats are counts since New, except Open.
type Stats struct {
	Open       int    // connections accepted and not closed yet
	Accepted   uint64 // connections served or being served
	Refused    uint64 // closed at once, by MaxConns
	Gone       uint64 // clients that left between Watch and Unwatch
	SlowClosed uint64 // reset because a write did not get on within WriteTimeout
}

// Listener accepts connections and watches over them. Safe for concurrent use.
type Listener struct {
	inner  *Patient
	tls    *tls.Config // nil = plain connections
	census census
}

// New wraps inner, which it owns from then on. An error is a system without another descriptor to spare.
func New(inner net.Listener, c Config) (*Listener, error) { return newListener(inner, c, newWatcher) }

func newListener(inner net.Listener, c Config, watch func() (watcher, error)) (*Listener, error) {
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Limit == "" {
		c.Limit = "server.max_connections"
	}
	l := &Listener{inner: NewPatient(inner, c.Log)}
	l.census.log = c.Log
	l.census.most = c.MaxConns
	l.census.limit = c.Limit
	l.census.start = time.Now()
	l.census.writeTimeout = c.WriteTimeout
	l.census.longSilence = cmp.Or(c.longSilence, longSilence)
	if c.Certificate != nil {
		l.tls = c.Certificate.TLS("http/1.1")
	}
	w, err := watch()
	if err != nil {
		return nil, fmt.Errorf("listen: cannot watch connections; raise the limit of open files: %w", err)
	}
	l.census.watcher = w
	l.census.parking.begin(c.Parked, cmp.Or(c.parkEvery, parkEvery), l.census.makeRoom)
	return l, nil
}

// Accept returns the next connection: the lease of a Conn (see From). It does no handshake. It fails only once the
// Listener is closed, see Patient.
func (l *Listener) Accept() (net.Conn, error) {
	l.census.accepting()
	defer l.census.acceptEnded()
	for {
		raw, err := l.inner.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(raw); c != nil {
			return c, nil
		}
	}
}

// admit makes a Conn of raw, or closes it and returns nil.
func (l *Listener) admit(raw net.Conn) net.Conn {
	if !l.census.enter() {
		raw.Close()
		return nil
	}
	_ = tune(raw, l.census.writeTimeout) // a client may be gone already; then the first read finds out
	c := newConn(raw, &l.census)
	if err := l.census.watcher.add(&c.presence, raw); err != nil {
		// It is served unwatched: fs.epoll.max_user_watches is a limit of millions.
		l.census.log.Warn("listen: a connection is not watched; raise fs.epoll.max_user_watches", "error", err)
	}
	if l.tls != nil {
		c.tls = tls.Server((*wire)(c), l.tls)
	}
	l.census.parking.add(c)
	return c.Lease()
}

// SetMaxConns changes the bound of the open connections. Those above it stay, and new ones come in once they are gone.
func (l *Listener) SetMaxConns(n int) {
	l.census.mu.Lock()
	defer l.census.mu.Unlock()
	l.census.most = n
}

// MaxConns returns the bound in force.
func (l *Listener) MaxConns() int {
	l.census.mu.Lock()
	defer l.census.mu.Unlock()
	return l.census.most
}

// Close accepts no more. A connection that Accept has already got is returned all the same: its client was let in. Open
// connections go on and are watched until they are closed, as a graceful shutdown needs.
func (l *Listener) Close() error {
	err := l.inner.Close() // first: nobody may come in after the watching has ended
	if !l.census.shut() {
		return fmt.Errorf("listen: %w", net.ErrClosed)
	}
	return err
}

// Addr returns the address at which inner listens.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Stats returns the counts. It reads them one by one, so they may differ by a connection.
func (l *Listener) Stats() Stats {
	n := &l.census
	n.mu.Lock()
	open := n.open
	n.mu.Unlock()
	return Stats{
		Open:       open,
		Accepted:   n.accepted.Load(),
		Refused:    n.refused.Load(),
		Gone:       n.gone.Load(),
		SlowClosed: n.slow.Load(),
	}
}

// Answering reports whether a server is writing an answer: from NextRequest until it closes the
// lease or sets the deadline of its next read. It needs Config.Parked.
func (l *Listener) Answering() bool { return l.census.parking.answering() }
