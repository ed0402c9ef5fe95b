package feed

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// ports are the sockets of a Listener. A worker of several ranks that is given one address has rank r dial r ports
// above it, or _dp<r> behind the path. So there is a socket for each known rank of a worker that may dial, up to
// worker.MaxRanks. One that is open stays so.
type ports struct {
	ctx    context.Context
	config zmtp.Config
	to     interface{ serve(c *zmtp.Conn, rank int) } // a Listener
	log    *slog.Logger

	mu        sync.Mutex // guards all below
	base      string     // where rank 0 dials: as configured, with the port that was found for 0
	listeners map[int]*zmtp.Listener
	again     time.Time // before it, what failed is not tried again
	said      string    // the last error, which was logged
	closed    bool
}

// tryAgain is the time to the next try to listen for a rank.
const tryAgain = 30 * time.Second

// open listens for rank 0, at base.
func (p *ports) open() (*zmtp.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.listen(p.base, 0)
	if err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(strings.TrimPrefix(p.base, "tcp://")); err == nil {
		if _, port, err := net.SplitHostPort(l.Addr().Addr); err == nil {
			p.base = "tcp://" + net.JoinHostPort(host, port)
		}
	}
	return l, nil
}

// listen makes the listener of a rank. p.mu is held.
func (p *ports) listen(addr string, rank int) (*zmtp.Listener, error) {
	l, err := zmtp.Listen(p.ctx, addr, p.config, func(c *zmtp.Conn) { p.to.serve(c, rank) })
	if err == nil {
		p.listeners[rank] = l
	}
	return l, err
}

// reach listens for ranks up to this one. A port that is taken is tried again, and named in the log once.
func (p *ports) reach(rank int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := 1; r <= min(rank, worker.MaxRanks-1); r++ {
		if p.closed || p.listeners[r] != nil || now.Before(p.again) {
			continue
		}
		addr, err := Address(p.base, "", r)
		if err == nil {
			_, err = p.listen(addr, r)
		}
		if err == nil {
			p.log.Info("listening for the KV events of workers", "address", addr, "rank", r)
			continue
		}
		p.again = now.Add(tryAgain)
		if p.said != err.Error() {
			p.said = err.Error()
			p.log.Warn("cannot listen for the KV events of a data-parallel rank that dials: it is chosen by routed history",
				"rank", r, "error", err, "remedy", fmt.Sprintf("free the %d ports above server.kv_events_listen", rank))
		}
	}
}

// isAt reports whether a worker's address for a rank is ours: the worker then dials us, and we do not dial it.
func (p *ports) isAt(addr string, rank int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	own, err := Address(p.base, "", rank)
	if err != nil {
		return false
	}
	_, ours, tcp := net.SplitHostPort(strings.TrimPrefix(own, "tcp://"))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(addr, "tcp://"))
	return addr == own || tcp == nil && err == nil && port == ours
}

// addr returns the address that rank 0 dials.
func (p *ports) addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listeners[0].Addr().String()
}

// close ends all listeners and connections.
func (p *ports) close() {
	p.mu.Lock()
	p.closed = true
	all := p.listeners
	p.mu.Unlock()
	for _, l := range all { // none is added from here on
		l.Close()
	}
}
