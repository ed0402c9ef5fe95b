package front

import (
	"log/slog"
	"time"

	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// A body is held until its answer begins, so that another worker can get it too. One that is not held is streamed to
// its worker, as is what of a body is over buffer_body_bytes, and loses no more than that repeat. So when a client
// holds as much as is left for all others, its next bodies are not held: a single client gets half of the memory, two
// clients get a third each. A client is a key, or without keys a network.

const (
	heldBodies = 24        // all clients together may hold this many bodies of buffer_body_bytes
	leastHeld  = 64 << 20  // by all
	freeBody   = 16 << 10  // of each body, which are not counted
	warnEvery  = time.Hour // at most
)

// holdings is what the bodies of requests hold, and as much again what holds the decoders of those that are packed. Its
// zero value is ready. It is safe for concurrent use.
type holdings struct {
	account.Shared
	decoders account.Shared
	warned   seldom.Line
}

// holding is what one body holds. The zero value holds nothing, and may hold anything.
type holding struct {
	account.Part
	decoder account.Part
	of      *holdings
	log     *slog.Logger
	in      *message.Inbound
	most    int64         // that all may hold
	wait    time.Duration // for a decoder
}

// newHolding is for the body of in.
func newHolding(h *handler, in *message.Inbound, epoch *Epoch) holding {
	return holding{of: &h.holdings, log: h.log, in: in, most: max(leastHeld, heldBodies*int64(epoch.BufferBody)),
		wait: epoch.ReadTimeout}
}

// upTo records that a body now takes this many bytes of memory. If it may not, it holds as much as before.
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

// Reserve implements inflate.Memory. It waits until the client may hold so much, as most bodies are unpacked at once.
func (p *holding) Reserve(size int) bool {
	if p.of == nil {
		return true
	}
	if p.decoder.Client() == "" {
		p.decoder = p.of.decoders.Part(p.in.Client())
	}
	for end, pause := time.Now().Add(p.wait), leastPause; !p.decoder.Grow(int64(size), p.most); pause *= 2 {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(min(pause, mostPause))
	}
	return true
}

// The pauses between two checks of the memory that decoders hold.
const leastPause, mostPause = time.Millisecond, time.Second / 2

// drop counts down what the body holds.
func (p *holding) drop() {
	p.Release()
	*p = holding{}
}
