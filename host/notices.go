package host

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Notices holds what a module wants to learn outside of its picks, until the keeper delivers it. Adding a notice never
// waits: the queues are bounded, and what finds its queue full is dropped and counted. A module that wants nothing
// costs one branch. Safe for concurrent use.
//
// A notice reaches one instance, whichever is idle. To deliver each to all instances lost: a strategy that counts
// outcomes by kv_incr would count each as often as there are processors, and a replaced instance would miss those of
// the time before it anyway.
type Notices struct {
	wants uint32 // Want bits; set before the strategy serves
	wake  func() // calls the keeper

	mu       sync.Mutex // guards all below
	tick     int64      // Unix nanoseconds; 0 = none is due
	first    queue[abi.Outcome]
	complete queue[abi.Outcome]
	events   queue[abi.KVEvent]
	ticks    counted
	failures int // in a row
	deaf     bool
	hears    time.Time // while deaf: when to try again
}

// Limits of what waits for the keeper: some seconds of a busy pool, 100 and 400 KB.
const (
	maxOutcomes = 1024
	maxEvents   = 8192
)

// notice is one call to make: records stand at the frame's address, and argument is what the export gets.
type notice struct {
	export   string
	records  []byte
	argument uint64
}

// counted counts the notices of one kind by what became of them.
type counted struct{ delivered, dropped uint64 }

// queue holds records of one kind, in order, up to a limit.
type queue[T any] struct {
	items []T
	sent  []T // under way; its memory is used in turn with that of items
	counted
}

func (q *queue[T]) push(limit int, items ...T) {
	n := min(len(items), limit-len(q.items))
	q.items = append(q.items, items[:n]...)
	q.dropped += uint64(len(items) - n)
}

// next takes up to n records off the queue, as the bytes in which they cross. They stay as they are until the next
// call.
func (q *queue[T]) next(n int) ([]byte, int) {
	n = min(n, len(q.items))
	q.sent = append(q.sent[:0], q.items[:n]...)
	q.items = append(q.items[:0], q.items[n:]...)
	q.delivered += uint64(n)
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(q.sent))), n*int(unsafe.Sizeof(one))), n
}

func (q *queue[T]) clear() {
	q.dropped += uint64(len(q.items))
	q.items = q.items[:0]
}

// Tick has the module's wp_tick called with now. A tick that finds another waiting takes its place.
func (n *Notices) Tick(now time.Time) {
	if n.wants&abi.WantTick == 0 {
		return
	}
	n.mu.Lock()
	if n.tick != 0 {
		n.ticks.dropped++
	}
	n.tick = now.UnixNano()
	n.mu.Unlock()
	n.wake()
}

// FirstToken has the module's wp_on_first_token called with a copy of o.
func (n *Notices) FirstToken(o *abi.Outcome) {
	if n.wants&abi.WantFirstToken == 0 {
		return
	}
	n.mu.Lock()
	n.first.push(maxOutcomes, *o)
	n.mu.Unlock()
	n.wake()
}

// Complete has the module's wp_on_complete called with a copy of o.
func (n *Notices) Complete(o *abi.Outcome) {
	if n.wants&abi.WantComplete == 0 {
		return
	}
	n.mu.Lock()
	n.complete.push(maxOutcomes, *o)
	n.mu.Unlock()
	n.wake()
}

// KVEvents has the module's wp_on_kv_event called with copies of events.
func (n *Notices) KVEvents(events []abi.KVEvent) {
	if n.wants&abi.WantKVEvents == 0 || len(events) == 0 {
		return
	}
	n.mu.Lock()
	n.events.push(maxEvents, events...)
	n.mu.Unlock()
	n.wake()
}

// Wants returns the module's Want bits: WantCost and WantHeld ask for fields of the rows, the others for the calls
// above.
func (n *Notices) Wants() uint32 { return n.wants }

// due reports whether anything waits to be delivered.
func (n *Notices) due() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.deaf && time.Now().Before(n.hears) {
		n.clearLocked()
	}
	return n.tick != 0 || len(n.first.items)+len(n.complete.items)+len(n.events.items) > 0
}

// next takes the next notice, of as many records as fit into room bytes.
func (n *Notices) next(room int) (notice, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.tick != 0:
		now := n.tick
		n.tick = 0
		n.ticks.delivered++
		return notice{export: "wp_tick", argument: uint64(now)}, true
	case len(n.first.items) > 0:
		b, count := n.first.next(room / abi.OutcomeSize)
		return notice{export: "wp_on_first_token", records: b, argument: uint64(count)}, true
	case len(n.complete.items) > 0:
		b, count := n.complete.next(room / abi.OutcomeSize)
		return notice{export: "wp_on_complete", records: b, argument: uint64(count)}, true
	case len(n.events.items) > 0:
		b, count := n.events.next(room / abi.KVEventSize)
		return notice{export: "wp_on_kv_event", records: b, argument: uint64(count)}, true
	}
	return notice{}, false
}

// heard resets the count of failures in a row.
func (n *Notices) heard() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures, n.deaf = 0, false
}

// failed counts a call that did not end well, and reports whether the module gets no calls for a while. It gets none
// after so many failures in a row: a module that answers picks and fails at every notice would else lose an instance
// each time.
func (n *Notices) failed(most int, pause time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures++
	if n.failures < most {
		return false
	}
	before := n.deaf
	n.deaf, n.hears = true, time.Now().Add(pause)
	return !before
}

// clear drops what waits.
func (n *Notices) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clearLocked()
}

func (n *Notices) clearLocked() {
	if n.tick != 0 {
		n.tick = 0
		n.ticks.dropped++
	}
	n.first.clear()
	n.complete.clear()
	n.events.clear()
}

// stats gives the counts by the names of the exports, of those that the module wants.
func (n *Notices) stats() (delivered, dropped map[string]uint64) {
	delivered, dropped = map[string]uint64{}, map[string]uint64{}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range abi.Exports {
		if e.Want&abi.WantNotices&n.wants == 0 {
			continue
		}
		var c counted
		switch e.Want {
		case abi.WantTick:
			c = n.ticks
		case abi.WantFirstToken:
			c = n.first.counted
		case abi.WantComplete:
			c = n.complete.counted
		case abi.WantKVEvents:
			c = n.events.counted
		default:
			panic(fmt.Sprintf("BUG: host: no counts of %s", e.Name))
		}
		delivered[e.Name], dropped[e.Name] = c.delivered, c.dropped
	}
	return delivered, dropped
}
