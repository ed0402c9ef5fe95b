package listen

import (
	"crypto/tls"
	"errors"
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
	inner   net.Listener
	conf    Config
	start   time.Time // write deadlines are reckoned from here
	certs   *certs    // nil without TLS
	tls     *tls.Config
	watcher watcher
	done    chan struct{} // closed by Close

	accepted, refused, gone, slow atomic.Uint64

	mu     sync.Mutex // guards the rest
	open   int
	closed bool
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
	l := &Listener{inner: inner, conf: c, start: time.Now(), done: make(chan struct{})}
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

// Accept returns the next connection: the lease of a Conn (see From). It does no handshake. It fails
// only once the Listener is closed: running out of descriptors makes it wait and try again, since fasthttp ends its server
// at any other error.
func (l *Listener) Accept() (net.Conn, error) {
	var pause time.Duration
	for {
		raw, err := l.inner.Accept()
		if err != nil {
			if pause = min(max(2*pause, 5*time.Millisecond), time.Second); !l.wait(err, pause) {
				return nil, fmt.Errorf("listen: %w", net.ErrClosed)
			}
			continue
		}
		pause = 0
		if c := l.admit(raw); c != nil {
			return c, nil
		}
	}
}

// wait sleeps after a failed accept. It is false when the Listener is closed.
func (l *Listener) wait(err error, pause time.Duration) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	select {
	case <-l.done:
		return false
	default:
	}
	if pause >= 100*time.Millisecond { // not at a single failure, and at most once a pause
		l.conf.Log.Warn("listen: cannot accept a connection; raise the limit of open files", "error", err, "retry_in", pause)
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-l.done:
		return false
	case <-t.C:
		return true
	}
}

// admit makes a Conn of raw, or closes it and returns nil.
func (l *Listener) admit(raw net.Conn) net.Conn {
	l.mu.Lock()
	full := l.closed || l.conf.MaxConns > 0 && l.open >= l.conf.MaxConns
	if !full {
		l.open++
	}
	l.mu.Unlock()
	if full {
		l.refused.Add(1)
		raw.Close()
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
	close(l.done)
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
