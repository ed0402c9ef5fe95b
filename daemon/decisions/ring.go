package decisions

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/route"
)

// Ring keeps the last requests. It is safe for concurrent use, and its zero value keeps nothing.
type Ring struct {
	most  atomic.Int64 // bytes
	spare sync.Pool    // of *entry, empty

	mu      sync.Mutex // guards all below
	bytes   int
	kept    []*entry // a queue in a circle: count of them from first on
	first   int
	count   int
	number  uint64 // of the last request
	changes uint64
}

// entry is one request. Its memory is used again.
type entry struct {
	seen    exchange.Seen // its Candidates and Frame are in sketch
	sketch  route.Sketch
	number  uint64
	change  uint64 // of the last change of it, counted over the ring
	at      time.Time
	client  string
	key     string
	method  string
	path    string
	open    bool
	sent    int64
	seconds float64
	size    int
}

// Resize bounds the ring to so many bytes. 0 = keep nothing.
func (r *Ring) Resize(most int) {
	r.most.Store(int64(most))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shrink(nil)
}

// Decided implements exchange.Keeper: it keeps what was decided on a request that is now under way.
func (r *Ring) Decided(in *exchange.Inbound, c *route.Choice) {
	e := r.made(in)
	if e == nil {
		return
	}
	e.open = true
	e.sketch.Take(c)
	e.seen.Module, e.seen.Reason = c.Module(), c.Reason()
	e.measure()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(e)
	in.Seen.Kept = e.number
}

// Ended keeps how a request ended; what nobody decided on is kept from here on. sent is the bytes of its answer's body.
func (r *Ring) Ended(in *exchange.Inbound, took time.Duration, sent int64) {
	if in.Seen.Kept != 0 && r.ended(in, took, sent) {
		return
	}
	e := r.made(in)
	if e == nil {
		return
	}
	e.sent, e.seconds = sent, took.Seconds()
	e.measure()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(e)
}

// ended keeps how a request ended that Decided has kept. false = it is gone from the ring.
func (r *Ring) ended(in *exchange.Inbound, took time.Duration, sent int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.find(in.Seen.Kept)
	if e == nil {
		return false
	}
	module, reason := e.seen.Module, e.seen.Reason
	e.note(in)
	if e.sketch.Known() {
		e.seen.Module, e.seen.Reason = module, reason
	}
	e.open, e.sent, e.seconds = false, sent, took.Seconds()
	r.changes++
	e.change = r.changes
	r.bytes -= e.size
	e.measure()
	r.bytes += e.size
	r.shrink(e)
	return true
}

// made makes an entry of a request, which is not in the ring yet: most of the work is done without the lock. nil = the
// ring keeps nothing.
func (r *Ring) made(in *exchange.Inbound) *entry {
	if r.most.Load() <= 0 {
		return nil
	}
	e, _ := r.spare.Get().(*entry)
	if e == nil {
		e = new(entry)
	}
	e.at = time.Now()
	e.seen.ID = strings.Clone(gate.Cut(in.ID))
	e.note(in)
	return e
}

// add makes an entry the last. The caller holds r.mu.
func (r *Ring) add(e *entry) {
	if r.count == len(r.kept) {
		r.grow()
	}
	r.kept[(r.first+r.count)%len(r.kept)] = e
	r.count++
	r.number++
	r.changes++
	e.number, e.change = r.number, r.changes
	r.bytes += e.size
	r.shrink(e)
}

// pop takes the oldest out. The caller holds r.mu, and there is one.
func (r *Ring) pop() {
	e := r.kept[r.first]
	r.kept[r.first] = nil
	r.first = (r.first + 1) % len(r.kept)
	r.count--
	r.bytes -= e.size
	e.sketch.Clear()
	e.seen = exchange.Seen{}
	e.client, e.key, e.method, e.path = "", "", "", ""
	e.open, e.sent, e.seconds = false, 0, 0
	r.spare.Put(e)
}

// grow makes room for twice as many. The caller holds r.mu.
func (r *Ring) grow() {
	wider := make([]*entry, max(64, 2*len(r.kept)))
	for i := range r.count {
		wider[i] = r.kept[(r.first+i)%len(r.kept)]
	}
	r.kept, r.first = wider, 0
}

// shrink removes the oldest until the ring is within its bytes; but not last. The caller holds r.mu.
func (r *Ring) shrink(last *entry) {
	most := int(r.most.Load())
	for r.bytes > most && r.count > 0 && r.kept[r.first] != last {
		r.pop()
	}
}

// find returns the entry of a number, nil if it is gone. Neighbours' numbers differ by one. The caller holds r.mu.
func (r *Ring) find(number uint64) *entry {
	if r.count == 0 || number == 0 {
		return nil
	}
	oldest := r.kept[r.first].number
	if number < oldest || number >= oldest+uint64(r.count) {
		return nil
	}
	return r.at(int(number - oldest))
}

// at returns the i-th oldest. The caller holds r.mu.
func (r *Ring) at(i int) *entry { return r.kept[(r.first+i)%len(r.kept)] }

// note copies what is known of a request. Words of the client's become copies of bounded length.
func (e *entry) note(in *exchange.Inbound) {
	id, model, attempts := e.seen.ID, e.seen.Model, in.Seen.Attempts
	if model == "" && in.Seen.Model != "" {
		model = strings.Clone(gate.Cut(in.Seen.Model))
	}
	e.seen = in.Seen
	e.seen.ID, e.seen.Model = id, model
	e.seen.Candidates, e.seen.Frame = nil, nil
	e.seen.Attempts = attempts[:len(attempts):len(attempts)]
	e.client, e.method, e.path = in.Remote, gate.Cut(in.Method), gate.Cut(in.Path)
	if in.Caller != nil {
		e.key = in.Caller.Name
	}
}

// measure counts the entry's bytes of memory.
func (e *entry) measure() {
	words := len(e.seen.ID) + len(e.seen.Model) + len(e.path) + len(e.client) + len(e.seen.Trace)
	e.size = int(unsafe.Sizeof(*e)) + e.sketch.Size() + words + len(e.seen.Attempts)*int(unsafe.Sizeof(route.Attempt{}))
}
