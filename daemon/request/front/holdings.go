package front

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/seldom"
	"github.com/warmpath/warmpath/daemon/request/exchange"
)

// A body is held until its answer begins, so that another worker can get it too. One that is not held is streamed to
// its worker, as is what of a body is over buffer_body_bytes, and loses no more than that repeat. So when a client
// holds as much as is left for all others, its next bodies are not held: one client has half of what there is, two a
// third each. The clients are the keys, and the networks where there are none.

const (
	heldBodies = 24        // as much as so many bodies of buffer_body_bytes are held by all
	leastHeld  = 64 << 20  // by all
	freeBody   = 16 << 10  // of each body, which are not counted
	warnEvery  = time.Hour // at most
)

// holdings counts what the bodies of requests hold. Its zero value is ready. It is safe for concurrent use.
type holdings struct {
	mu     sync.Mutex // guards all below
	all    int64
	by     map[string]int64 // clients that hold something
	warned seldom.Line
}

// take counts n bytes more of a client, if it then holds no more than is left of most.
func (h *holdings) take(client string, n, most int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[client]+n > most-h.all-n {
		return false
	}
	if h.by == nil {
		h.by = map[string]int64{}
	}
	h.by[client] += n
	h.all += n
	return true
}

// give counts n bytes of a client down.
func (h *holdings) give(client string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all -= n
	h.by[client] -= n
	if h.by[client] == 0 {
		delete(h.by, client)
	}
}

// holding is what one body holds. The zero value holds nothing, and may hold anything.
type holding struct {
	of     *holdings
	log    *slog.Logger
	client string
	most   int64 // that all may hold
	held   int64
}

// newHolding is for the body of in.
func newHolding(h *handler, in *exchange.Inbound, epoch *Epoch) holding {
	p := holding{of: &h.holdings, log: h.log, client: in.Remote, most: max(leastHeld, heldBodies*int64(epoch.BufferBody))}
	if in.Caller != nil && in.Caller.Name != "" {
		p.client = in.Caller.Name
	}
	return p
}

// upTo counts what a body holds that has come to so many bytes of memory. If it may not, it holds as much as before.
func (p *holding) upTo(size int) bool {
	more := int64(size) - freeBody - p.held
	if more <= 0 || p.of == nil {
		return true
	}
	if p.held == 0 {
		p.client = networkOf(p.client)
	}
	if p.of.take(p.client, more, p.most) {
		p.held += more
		return true
	}
	if p.of.warned.Due(time.Now(), warnEvery) {
		p.log.Warn("a client's bodies take as much memory as is left for others: more of them go to one worker each, "+
			"without a retry; raise server.buffer_body_bytes if the machine has the memory", "client", p.client,
			"buffer_body_bytes", p.most/heldBodies)
	}
	return false
}

// networkOf returns the /64 of an IPv6 address: one host may have every address in it. Any other name stays as it is.
func networkOf(client string) string {
	a, err := netip.ParseAddr(client)
	if err != nil || !a.Is6() || a.Is4In6() {
		return client
	}
	return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
}

// drop counts down what the body holds.
func (p *holding) drop() {
	if p.held > 0 {
		p.of.give(p.client, p.held)
	}
	*p = holding{}
}
