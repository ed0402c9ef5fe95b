package listen

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Config says how connections are served. The zero value is usable.
type Config struct {
	// WriteTimeout is how long a write may wait without getting a single byte out before the connection is reset.
	// Default 30 s. It acts between once and three times this.
	WriteTimeout time.Duration

	// MaxConns bounds the open connections; one more is closed as soon as it is accepted. Zero means no limit.
	MaxConns int

	// CertFile and KeyFile are PEM files. With both every connection speaks TLS (1.2 or later, http/1.1); with neither none
	// does. When they change the new pair is used for the next handshake, see Listener.Reload.
	CertFile, KeyFile string

	// Log takes what an operator should know. Default none.
	Log *slog.Logger
}

// Stats are counts since New, but for Open.
type Stats struct {
	Open       int    // connections accepted and not closed yet
	Accepted   uint64 // connections served or being served
	Refused    uint64 // closed at once, by MaxConns
	Gone       uint64 // clients that left between Watch and Unwatch
	SlowClosed uint64 // reset because a write did not get on within WriteTimeout
}

// Listener accepts connections and watches over them. Safe for concurrent use.
type Listener struct {
	inner   *Patient
	conf    Config
	start   time.Time // write deadlines are reckoned from here
	certs   *certs    // nil without TLS
	tls     *tls.Config
	watcher watcher

	accepted, refused, gone, slow atomic.Uint64

	mu      sync.Mutex // guards the rest
	most    int        // Config.MaxConns, or what SetMaxConns made of it
	open    int
	closed  bool
	plainAt time.Time // when it was last logged that a client spoke without TLS
	fullAt  time.Time // when it was last logged that connections are refused
}

// New wraps inner, which it owns from then on. An error is a certificate that cannot be used, or a system without another
// descriptor to spare.
func New(inner net.Listener, c Config) (*Listener, error) { return newListener(inner, c, newWatcher) }

func newListener(inner net.Listener, c Config, watch func() (watcher, error)) (*Listener, error) {
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	l := &Listener{inner: NewPatient(inner, c.Log), conf: c, most: c.MaxConns, start: time.Now()}
	if c.CertFile != "" || c.KeyFile != "" {
		certs, err := loadCerts(c.CertFile, c.KeyFile, c.Log)
		if err != nil {
			return nil, err
		}
		l.certs, l.tls = certs, certs.config()
	}
	w, err := watch()
	if err != nil {
		return nil, fmt.Errorf("listen: cannot watch connections; raise the limit of open files: %w", err)
	}
	l.watcher = w
	return l, nil
}

// Accept returns the next connection: the lease of a Conn (see From). It does no handshake. It fails only once the Listener is
// closed, see Patient.
func (l *Listener) Accept() (net.Conn, error) {
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
	l.mu.Lock()
	full := l.closed || l.most > 0 && l.open >= l.most
	if !full {
		l.open++
	}
	l.mu.Unlock()
	if full {
		l.refused.Add(1)
		raw.Close()
		l.warnFull()
		return nil
	}
	l.accepted.Add(1)
	_ = tune(raw, l.conf.WriteTimeout) // a client may be gone already; then the first read tells
	c := &Conn{raw: raw, l: l, remote: net.IPv4zero.String()}
	if a, ok := raw.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = a.IP.String()
	}
	if err := l.watcher.add(c); err != nil {
		// It is served unwatched: fs.epoll.max_user_watches is a limit of millions.
		l.conf.Log.Warn("listen: a connection is not watched; raise fs.epoll.max_user_watches", "error", err)
	}
	if l.tls != nil {
		c.tls = tls.Server((*wire)(c), l.tls)
	}
	return c.Lease()
}

// SetMaxConns changes the bound of the open connections. Those above it stay; nobody new comes in until they have gone.
func (l *Listener) SetMaxConns(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = n
}

// MaxConns is the bound in force.
func (l *Listener) MaxConns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// warnFull logs that connections are refused, every ten seconds at most.
func (l *Listener) warnFull() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); !l.closed && now.Sub(l.fullAt) >= 10*time.Second {
		l.fullAt = now
		l.conf.Log.Warn("listen: connections are refused, as many are open as may be; find who keeps them, or raise server.max_connections and the limit of open files",
			"max_connections", l.most)
	}
}

// warnPlain logs that a client speaks without TLS, every ten seconds at most.
func (l *Listener) warnPlain(client string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.plainAt) >= 10*time.Second {
		l.plainAt = now
		l.conf.Log.Warn("listen: a client spoke plain HTTP to a port that serves TLS; give it an https:// URL", "client", client)
	}
}

// forget takes note that a connection is closed.
func (l *Listener) forget() {
	l.mu.Lock()
	l.open--
	last := l.closed && l.open == 0
	l.mu.Unlock()
	if last {
		l.watcher.close()
	}
}

// Close accepts no more. Open connections go on and are watched until they are closed, as a graceful shutdown needs it.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return fmt.Errorf("listen: %w", net.ErrClosed)
	}
	l.closed = true
	last := l.open == 0
	l.mu.Unlock()
	if last {
		l.watcher.close()
	}
	return l.inner.Close()
}

// Addr is where inner listens.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Stats tells the counts. They are read one by one, so they need not fit each other to the last connection.
func (l *Listener) Stats() Stats {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	return Stats{open, l.accepted.Load(), l.refused.Load(), l.gone.Load(), l.slow.Load()}
}

// Reload reads the certificate again. After an error the old one stays. Without TLS it does nothing. A changed pair is also
// found without it, within a second, by the first handshake after the change.
func (l *Listener) Reload() error {
	if l.certs == nil {
		return nil
	}
	return l.certs.reload()
}
