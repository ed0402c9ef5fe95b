package listen

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Patient accepts connections until it is closed, and no other error ends it: without descriptors it waits and tries
// again. An HTTP server takes any error of Accept for the end, so that one client that opens connections could end the
// process. Safe for concurrent use.
type Patient struct {
	inner net.Listener
	log   *slog.Logger
	once  sync.Once
	done  chan struct{} // closed by Close
}

// NewPatient wraps inner, which it owns from then on. log gets what an operator should know; nil = nothing.
func NewPatient(inner net.Listener, log *slog.Logger) *Patient {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Patient{inner: inner, log: log, done: make(chan struct{})}
}

// Accept returns the next connection. It fails only once the listener is closed.
func (p *Patient) Accept() (net.Conn, error) {
	var pause time.Duration
	for {
		conn, err := p.inner.Accept()
		if err == nil {
			return conn, nil
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		if !p.wait(err, pause) {
			return nil, fmt.Errorf("listen: %w", net.ErrClosed)
		}
	}
}

// wait sleeps after a failed accept. It returns false when the listener is closed.
func (p *Patient) wait(err error, pause time.Duration) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
	}
	if pause >= 100*time.Millisecond { // not at a single failure, and at most once a pause
		p.log.Warn("listen: cannot accept a connection; raise the limit of open files", "listen", p.inner.Addr().String(),
			"error", err, "retry_in", pause.String())
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-p.done:
		return false
	case <-t.C:
		return true
	}
}

// Close ends Accept.
func (p *Patient) Close() error {
	p.once.Do(func() { close(p.done) })
	return p.inner.Close()
}

// Addr returns the address at which inner listens.
func (p *Patient) Addr() net.Addr { return p.inner.Addr() }
