package front

import (
	"log/slog"
	"time"

	"github.com/warmpath/warmpath/cache/seldom"
	"github.com/warmpath/warmpath/daemon/request/account"
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

// holdings is what the bodies of requests hold. Its zero value is ready. It is safe for concurrent use.
type holdings struct {
	account.Shared
	warned seldom.Line
}

// holding is what one body holds. The zero value holds nothing, and may hold anything.
type holding struct {
	account.Part
	of   *holdings
	log  *slog.Logger
	in   *exchange.Inbound
	most int64 // that all may hold
}

// newHolding is for the body of in.
func newHolding(h *handler, in *exchange.Inbound, epoch *Epoch) holding {
	return holding{of: &h.holdings, log: h.log, in: in, most: max(leastHeld, heldBodies*int64(epoch.BufferBody))}
}

// upTo counts what a body holds that has come to so many bytes of memory. If it may not, it holds as much as before.
func (p *holding) upTo(size int) bool {
	if size <= freeBody || p.of == nil {
		return true
	}
	if p.Client() == "" {
		p.Part = p.of.Part(p.in.Client())
	}
	if p.Grow(int64(size)-freeBody, p.most) {
		return true
	}
	if p.of.warned.Due(time.Now(), warnEvery) {
		p.log.Warn("a client's bodies take as much memory as is left for others: more of them go to one worker each, "+
			"without a retry; raise server.buffer_body_bytes if the machine has the memory", "client", p.Client(),
			"buffer_body_bytes", p.most/heldBodies)
	}
	return false
}

// drop counts down what the body holds.
func (p *holding) drop() {
	p.Release()
	*p = holding{}
}
