package decisions

import (
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/route"
)

// Ring keeps the last requests. It is safe for concurrent use, and its zero value keeps nothing.
type Ring struct {
	mu      sync.Mutex // guards all below
	most    int        // bytes
	bytes   int
	kept    []*entry // a queue in a circle: count of them from first on
	spare   *entry   // the last that went, for the next that comes
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = most
	r.shrink(nil)
}

// Decided implements exchange.Keeper: it keeps what was decided on a request that is now under way.
func (r *Ring) Decided(in *exchange.Inbound, c *route.Choice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.add(in)
	if e == nil {
		return
	}
	in.Seen.Kept = e.number
	e.open = true
	e.note(in)
	e.sketch.Take(c)
	e.seen.Module, e.seen.Reason = c.Module(), c.Reason()
	r.weigh(e)
}

// Ended keeps how a request ended; what nobody decided on is kept from here on. sent is the bytes of its answer's body.
func (r *Ring) Ended(in *exchange.Inbound, took time.Duration, sent int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.find(in.Seen.Kept)
	if e == nil {
		e = r.add(in)
	}
	if e == nil {
		return
	}
	module, reason := e.seen.Module, e.seen.Reason
	e.note(in)
	if e.sketch.Known() {
		e.seen.Module, e.seen.Reason = module, reason
	}
	e.open, e.sent, e.seconds = false, sent, took.Seconds()
	r.changes++
	e.change = r.changes
	r.weigh(e)
}

// add makes an entry the last. nil = the ring keeps nothing. The caller holds r.mu.
func (r *Ring) add(in *exchange.Inbound) *entry {
	if r.most <= 0 {
		return nil
	}
	e := r.spare
	if e == nil {
		e = new(entry)
	}
	r.spare = nil
	if r.count == len(r.kept) {
		r.grow()
	}
	r.kept[(r.first+r.count)%len(r.kept)] = e
	r.count++
	r.number++
	r.changes++
	e.number, e.change, e.at = r.number, r.changes, time.Now()
	e.seen.ID = strings.Clone(gate.Cut(in.ID))
	return e
}

// pop takes the oldest out. The caller holds r.mu, and there is one.
func (r *Ring) pop() {
	e := r.kept[r.first]
	r.kept[r.first] = nil
	r.first = (r.first + 1) % len(r.kept)
	r.count--
	r.bytes -= e.size
	sketch := e.sketch
	sketch.Clear()
	*e = entry{sketch: sketch}
	r.spare = e
}

// grow makes room for twice as many. The caller holds r.mu.
func (r *Ring) grow() {
	wider := make([]*entry, max(64, 2*len(r.kept)))
	for i := range r.count {
		wider[i] = r.kept[(r.first+i)%len(r.kept)]
	}
	r.kept, r.first = wider, 0
}

// weigh counts the bytes of e anew, and removes the oldest that there is no room for. The caller holds r.mu.
func (r *Ring) weigh(e *entry) {
	words := len(e.seen.ID) + len(e.seen.Model) + len(e.path) + len(e.client) + len(e.seen.Trace)
	size := int(unsafe.Sizeof(*e)) + e.sketch.Size() + words + len(e.seen.Attempts)*int(unsafe.Sizeof(route.Attempt{}))
	r.bytes += size - e.size
	e.size = size
	r.shrink(e)
}

// shrink removes the oldest until the ring is within its bytes; but not spare. The caller holds r.mu.
func (r *Ring) shrink(spare *entry) {
	for r.bytes > r.most && r.count > 0 && r.kept[r.first] != spare {
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
