package decisions

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Ring keeps the last requests. It is safe for concurrent use, and its zero value keeps nothing.
type Ring struct {
	most atomic.Int64 // bytes

	mu      sync.Mutex     // guards all below, and the entries
	open    []*keptRequest // decided, and not ended
	ended   []*keptRequest // the oldest first
	removed uint64         // from ended, ever
	opened  int            // bytes of open
	used    int            // bytes of both
	number  uint64         // of the last request
	changes uint64
}

// spare is the memory of entries that made room.
var spare = sync.Pool{New: func() any { return new(keptRequest) }}

// Resize sets the size limit of the ring in bytes. 0 = keep nothing.
func (r *Ring) Resize(most int) {
	r.most.Store(int64(most))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shrink()
	if most == 0 {
		r.ended = nil
	}
}

// shrink removes the oldest until the ring is within its bytes. The caller holds r.mu.
func (r *Ring) shrink() {
	for most := int(r.most.Load()); r.used > most && len(r.ended) > 0; {
		e := r.ended[0]
		r.ended[0] = nil
		r.ended = r.ended[1:]
		r.removed++
		r.used -= e.size()
		spare.Put(e)
	}
}

// Decided implements journal.Keeper: it keeps what was decided on a request that is now under way.
func (r *Ring) Decided(in *message.Inbound, c *route.Choice) {
	if r.most.Load() <= 0 {
		return
	}
	r.drop(in) // of one that is decided on once more
	at := in.Seen.At
	if at.IsZero() {
		at = time.Now()
	}
	e := spare.Get().(*keptRequest)
	e.begin(in, c, at)
	r.keepOpen(in, e)
}

// Waits implements journal.Keeper: it keeps that a request waits.
func (r *Ring) Waits(in *message.Inbound, c *route.Choice, p journal.Position) {
	if r.most.Load() <= 0 {
		return
	}
	r.drop(in)
	e := spare.Get().(*keptRequest)
	e.beginWait(in, c, p)
	r.keepOpen(in, e)
}

// Prefills implements journal.Keeper.
func (r *Ring) Prefills(in *message.Inbound, s record.Split) {
	if e, kept := in.Seen.Kept.(*keptRequest); kept {
		r.write(e, func() { e.Split = &s })
	}
}

// Moves implements journal.Keeper. A request that goes where it was to go takes no lock.
func (r *Ring) Moves(in *message.Inbound, to string) {
	if e, kept := in.Seen.Kept.(*keptRequest); kept && e.Worker != to {
		r.write(e, func() {
			e.Worker, e.Retries, e.Attempts = to, int(in.Seen.Retries), slices.Clone(in.Seen.Attempts)
		})
	}
}

// write changes the record of a request that is still running.
func (r *Ring) write(e *keptRequest, change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := e.size()
	change()
	r.opened += e.size() - before
	r.used += e.size() - before
	r.changes++
	e.change = r.changes
}

// keepOpen adds a request that is under way.
func (r *Ring) keepOpen(in *message.Inbound, e *keptRequest) {
	r.mu.Lock() // and no defer: each would cost a request
	kept := r.addOpen(e)
	r.mu.Unlock()
	if !kept {
		spare.Put(e)
		return
	}
	in.Seen.Kept = e
}

// addOpen adds a request that is open, unless those that are open leave no room. The caller holds r.mu.
func (r *Ring) addOpen(e *keptRequest) bool {
	size := e.size()
	if r.opened+size > int(r.most.Load()) {
		return false
	}
	r.number++
	r.changes++
	e.Number, e.change, e.place = r.number, r.changes, len(r.open)
	r.open = append(r.open, e)
	r.opened += size
	r.used += size
	r.shrink()
	return true
}

// drop deletes the record of a request that is still running.
func (r *Ring) drop(in *message.Inbound) {
	e, kept := in.Seen.Kept.(*keptRequest)
	if !kept {
		return
	}
	r.mu.Lock()
	r.removeOpen(e)
	r.mu.Unlock()
	spare.Put(e)
	in.Seen.Kept = nil
}

// removeOpen removes an open request. The caller holds r.mu.
func (r *Ring) removeOpen(e *keptRequest) {
	last := len(r.open) - 1
	r.open[e.place] = r.open[last]
	r.open[e.place].place = e.place
	r.open[last] = nil
	r.open = r.open[:last]
	r.opened -= e.size()
	r.used -= e.size()
}

// Ended keeps how a request ended. A request without a decision is kept from here on. sent is the bytes of its answer's
// body.
func (r *Ring) Ended(in *message.Inbound, took time.Duration, sent int64) {
	most := int(r.most.Load())
	if most <= 0 {
		r.drop(in)
		return
	}
	e, decided := in.Seen.Kept.(*keptRequest)
	in.Seen.Kept = nil
	if !decided {
		e = spare.Get().(*keptRequest)
		e.begin(in, nil, time.Now())
	}
	r.mu.Lock()
	if decided {
		r.removeOpen(e)
	} else {
		r.number++
		e.Number = r.number
	}
	e.end(in, took, sent)
	r.changes++
	e.change = r.changes
	r.used += e.size()
	r.ended = append(r.ended, e)
	r.shrink()
	r.mu.Unlock()
}
