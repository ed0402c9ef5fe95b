package decisions

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/packed"
	"github.com/warmpath/warmpath/daemon/route"
)

// Ring keeps the last requests. It is safe for concurrent use, and its zero value keeps nothing.
type Ring struct {
	most atomic.Int64 // bytes

	mu      sync.Mutex // guards all below
	open    []*open    // decided, and not ended; by Seen.Kept - 1; nil = free
	free    []int      // places in open
	opened  int        // bytes of those
	ended   ended
	spare   []*open // the last used is the next: its memory is in the cache
	number  uint64  // of the last request
	changes uint64
}

// open is a request that is under way, as it was decided. Its memory is used again.
type open struct {
	decided packed.Coder
	end     packed.Coder
	sketch  route.Sketch
	number  uint64
	change  uint64
	at      time.Time
}

// size is the bytes of memory.
func (o *open) size() int { return int(unsafe.Sizeof(*o)) + len(o.decided.Out) }

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
	r.drop(in) // of one that is decided on once more
	at := in.Seen.At
	if at.IsZero() {
		at = time.Now()
	}
	o := r.opening(at)
	o.sketch.Take(c)
	e := entryOf(in, &o.sketch)
	e.module, e.reason = c.Module(), c.Reason()
	o.write(&e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened+o.size() > int(r.most.Load()) {
		r.again(o)
		return
	}
	r.changes++
	o.change = r.changes
	place := len(r.open)
	if n := len(r.free); n > 0 {
		place, r.free = r.free[n-1], r.free[:n-1]
		r.open[place] = o
	} else {
		r.open = append(r.open, o)
	}
	r.opened += o.size()
	r.shrink()
	in.Seen.Kept = uint64(place) + 1
}

// opening begins what is kept of a request.
func (r *Ring) opening(at time.Time) *open {
	r.mu.Lock()
	var o *open
	if n := len(r.spare); n > 0 {
		o, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		o = new(open)
	}
	r.number++
	o.at, o.number = at, r.number
	r.mu.Unlock()
	return o
}

// write writes what was decided.
func (o *open) write(e *entry) {
	e.number, e.at = o.number, o.at
	o.decided.Out = o.decided.Out[:0]
	e.codeAsked(&o.decided)
	e.codeRest(&o.decided)
	o.sketch.Clear()
}

// drop forgets what is kept of a request that is under way.
func (r *Ring) drop(in *exchange.Inbound) {
	if in.Seen.Kept == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again(r.close(in.Seen.Kept))
	in.Seen.Kept = 0
}

// close takes an open request out. The caller holds r.mu.
func (r *Ring) close(kept uint64) *open {
	o := r.open[kept-1]
	r.open[kept-1] = nil
	r.free = append(r.free, int(kept-1))
	r.opened -= o.size()
	return o
}

// again keeps the memory of what was open. The caller holds r.mu.
func (r *Ring) again(o *open) {
	if len(r.spare) < mostSpare {
		r.spare = append(r.spare, o)
	}
}

// mostSpare bounds the memory that is kept for requests to come: some 1.5 MB.
const mostSpare = 1000

// Ended keeps how a request ended; what nobody decided on is kept from here on. sent is the bytes of its answer's body.
func (r *Ring) Ended(in *exchange.Inbound, took time.Duration, sent int64) {
	most := int(r.most.Load())
	if most <= 0 {
		r.drop(in)
		return
	}
	var fresh *open
	if in.Seen.Kept == 0 {
		fresh = r.opening(time.Now())
		e := entryOf(in, &fresh.sketch)
		fresh.write(&e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o := fresh
	if o == nil {
		o = r.close(in.Seen.Kept)
	}
	e := entry{seen: &in.Seen, sent: sent, seconds: took.Seconds()}
	o.end.Out = o.end.Out[:0]
	e.codeEnd(&o.end)
	r.changes++
	r.ended.add(o.end.Out, o.decided.Out, r.changes, most)
	r.shrink()
	r.again(o)
}
