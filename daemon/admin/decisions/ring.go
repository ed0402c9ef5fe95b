package decisions

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/packed"
)

// Ring keeps the last requests. It is safe for concurrent use, and its zero value keeps nothing.
type Ring struct {
	most atomic.Int64 // bytes

	mu      sync.Mutex // guards all below
	open    []*open    // decided, and not ended; nil = free
	free    []int      // places in open
	opened  int        // bytes of those
	ended   ended
	number  uint64 // of the last request
	changes uint64
}

// open is a request that is under way, as it was decided: Seen.Kept. Its memory is used again.
type open struct {
	decided []byte
	place   int // in Ring.open
	number  uint64
	change  uint64
	at      time.Time
}

// draft is the memory in which a request is written. A stream that is open for minutes holds what was written alone: a
// third of it.
type draft struct {
	sketch route.Sketch
	coder  packed.Coder
}

var drafts = sync.Pool{New: func() any { return new(draft) }}

// spare is the memory of those that have ended.
var spare = sync.Pool{New: func() any { return new(open) }}

// size is the bytes of memory.
func (o *open) size() int { return int(unsafe.Sizeof(*o)) + len(o.decided) }

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
	most := int(r.most.Load())
	if most <= 0 {
		return
	}
	r.drop(in) // of one that is decided on once more
	o := spare.Get().(*open)
	o.at = in.Seen.At
	if o.at.IsZero() {
		o.at = time.Now()
	}
	d := drafts.Get().(*draft)
	d.sketch.Take(c)
	o.write(d, &entry{module: c.Module(), reason: c.Reason()}, in)
	drafts.Put(d)
	r.mu.Lock() // and no defer: each would cost a request
	kept := r.opened+o.size() <= most
	if kept {
		r.take(o)
	}
	r.mu.Unlock()
	if !kept {
		spare.Put(o)
		return
	}
	in.Seen.Kept = o
}

// take takes a request in that is open. The caller holds r.mu.
func (r *Ring) take(o *open) {
	r.number++
	r.changes++
	o.number, o.change, o.place = r.number, r.changes, len(r.open)
	if n := len(r.free); n > 0 {
		o.place, r.free = r.free[n-1], r.free[:n-1]
		r.open[o.place] = o
	} else {
		r.open = append(r.open, o)
	}
	r.opened += o.size()
	r.shrink()
}

// write writes the decision: d's sketch, in, and e's further fields.
func (o *open) write(d *draft, e *entry, in *exchange.Inbound) {
	e.sketch = &d.sketch
	e.at = o.at
	e.of(in)
	d.coder.Out = d.coder.Out[:0]
	e.codeAsked(&d.coder)
	e.codeRest(&d.coder)
	d.sketch.Clear()
	o.decided = append(o.decided[:0], d.coder.Out...)
}

// drop forgets what is kept of a request that is under way.
func (r *Ring) drop(in *exchange.Inbound) {
	o, kept := in.Seen.Kept.(*open)
	if !kept {
		return
	}
	r.mu.Lock()
	r.close(o)
	r.mu.Unlock()
	spare.Put(o)
	in.Seen.Kept = nil
}

// close takes an open request out. The caller holds r.mu.
func (r *Ring) close(o *open) {
	r.open[o.place] = nil
	r.free = append(r.free, o.place)
	r.opened -= o.size()
}

// Ended keeps how a request ended. A request without a decision is kept from here on. sent is the bytes of its answer's
// body.
func (r *Ring) Ended(in *exchange.Inbound, took time.Duration, sent int64) {
	most := int(r.most.Load())
	if most <= 0 {
		r.drop(in)
		return
	}
	o, decided := in.Seen.Kept.(*open)
	d := drafts.Get().(*draft)
	if !decided {
		o = spare.Get().(*open)
		o.at = time.Now()
		o.write(d, &entry{module: in.Seen.Module, reason: in.Seen.Reason}, in)
	}
	in.Seen.Kept = nil
	e := entry{seen: &in.Seen, sent: sent, seconds: took.Seconds()}
	d.coder.Out = d.coder.Out[:0]
	e.codeEnd(&d.coder)
	r.mu.Lock()
	if decided {
		r.close(o)
	} else {
		r.number++
		o.number = r.number
	}
	r.changes++
	r.ended.add(record{number: o.number, change: r.changes, end: d.coder.Out, decided: o.decided}, most)
	r.shrink()
	r.mu.Unlock()
	spare.Put(o)
	drafts.Put(d)
}
