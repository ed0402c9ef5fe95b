package decisions

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/packed"
	"github.com/warmpath/warmpath/daemon/route"
)

// Ring keeps the last requests. It is safe for concurrent use, and its zero value keeps nothing.
type Ring struct {
	most  atomic.Int64 // bytes
	spare sync.Pool    // of *entry, empty

	mu      sync.Mutex // guards all below
	open    []*entry   // decided, and not ended; by Seen.Kept - 1; nil = free
	free    []int      // places in open
	opened  int        // bytes of those
	ended   ended
	number  uint64 // of the last request
	changes uint64
	text    packed.Coder // memory
}

// Resize bounds the ring to so many bytes. 0 = keep nothing.
func (r *Ring) Resize(most int) {
	r.most.Store(int64(most))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shrink()
	if most == 0 {
		r.ended = ended{gone: r.ended.gone}
	}
}

// shrink removes the oldest until the ring is within its bytes. The caller holds r.mu.
func (r *Ring) shrink() { r.ended.shrink(int(r.most.Load()) - r.opened) }

// Decided implements exchange.Keeper: it keeps what was decided on a request that is now under way.
func (r *Ring) Decided(in *exchange.Inbound, c *route.Choice) {
	if r.most.Load() <= 0 {
		return
	}
	e := r.fresh()
	e.note(in)
	e.open = true
	e.at = in.Seen.At
	if e.at.IsZero() {
		e.at = time.Now()
	}
	e.sketch.Take(c)
	e.seen.Module, e.seen.Reason = c.Module(), c.Reason()
	e.measure()
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.Seen.Kept != 0 { // decided on once more
		r.close(in.Seen.Kept)
		in.Seen.Kept = 0
	}
	if r.opened+e.size > int(r.most.Load()) {
		return
	}
	r.number++
	r.changes++
	e.number, e.change = r.number, r.changes
	place := len(r.open)
	if n := len(r.free); n > 0 {
		place, r.free = r.free[n-1], r.free[:n-1]
		r.open[place] = e
	} else {
		r.open = append(r.open, e)
	}
	r.opened += e.size
	r.shrink()
	in.Seen.Kept = uint64(place) + 1
}

// close takes an open entry out, which the caller may use again. The caller holds r.mu.
func (r *Ring) close(kept uint64) *entry {
	e := r.open[kept-1]
	r.open[kept-1] = nil
	r.free = append(r.free, int(kept-1))
	r.opened -= e.size
	return e
}

// Ended keeps how a request ended; what nobody decided on is kept from here on. sent is the bytes of its answer's body.
func (r *Ring) Ended(in *exchange.Inbound, took time.Duration, sent int64) {
	if r.most.Load() <= 0 && in.Seen.Kept == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.last(in)
	e.open, e.sent, e.seconds = false, sent, took.Seconds()
	r.changes++
	if most := int(r.most.Load()); most > 0 {
		r.text.Out = r.text.Out[:0]
		e.code(&r.text)
		r.ended.add(r.text.Out, r.changes, most)
		r.shrink()
	}
	e.clear()
	r.spare.Put(e)
}

// last takes the entry of a request that ends out of the open ones, or makes one, and notes the request as it is now.
// The caller holds r.mu.
func (r *Ring) last(in *exchange.Inbound) *entry {
	if in.Seen.Kept == 0 {
		e := r.fresh()
		r.number++
		e.number, e.at = r.number, time.Now()
		e.note(in)
		return e
	}
	e := r.close(in.Seen.Kept)
	module, reason := e.seen.Module, e.seen.Reason
	e.note(in)
	if e.sketch.Known() {
		e.seen.Module, e.seen.Reason = module, reason
	}
	return e
}

// fresh returns an empty entry.
func (r *Ring) fresh() *entry {
	if e, _ := r.spare.Get().(*entry); e != nil {
		return e
	}
	return new(entry)
}
