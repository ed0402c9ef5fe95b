package host

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// slot holds one instance. Whoever changes state from idle to taken owns the instance until the next change of state.
// Only the owner reads and writes in.
type slot struct {
	state atomic.Uint32
	in    *instance
	due   atomic.Bool   // wp_maint is due
	used  bool          // had an instance before; the keeper's
	picks atomic.Uint64 // here and not in Strategy: one counter for all slots would bounce between the cores
	bytes atomic.Uint64 // of in's memory
	_     [80]byte      // a cache line and its neighbour for each slot
}

// States of a slot.
const (
	empty   uint32 = iota // waits for the keeper
	filling               // the keeper makes an instance
	idle
	taken
	gone // closed
)

// spins bounds the wait for an instance when all are taken. Slots are as many as processors, so a taken one belongs to
// a goroutine that is running, or was preempted between two instructions; yielding lets that one go on.
const spins = 64

// instances are those of a strategy.
type instances []slot

// put gives the slot an instance. The caller owns the slot.
func (sl *slot) put(in *instance) {
	sl.in, sl.used = in, true
	sl.bytes.Store(uint64(in.mem.Size()))
	sl.due.Store(false)
}

// borrow takes the slot's instance from between its picks, and reports whether there is one. The keeper may have it for
// a moment, for a tick or to clean it.
func (sl *slot) borrow() bool {
	for range 1000 {
		switch now := sl.state.Load(); {
		case now == idle && sl.state.CompareAndSwap(idle, taken):
			return true
		case now == empty || now == gone:
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// take borrows an instance, and reports whether it waited. It returns nil if none becomes free within a moment.
func (s instances) take() (sl *slot, waited bool) {
	n := uint32(len(s))
	for i := range spins {
		waiting := false
		at := rand.Uint32() % n
		for range n {
			sl := &s[at]
			switch now := sl.state.Load(); {
			case now == idle && sl.state.CompareAndSwap(idle, taken):
				return sl, i > 0
			case now == idle || now == taken:
				waiting = true
			}
			at++
			if at == n {
				at = 0
			}
		}
		if !waiting {
			return nil, true // all are being made: that takes milliseconds
		}
		runtime.Gosched()
	}
	return nil, true
}

// alive returns the number of instances, and the bytes of their memories.
func (s instances) alive() (instances int, bytes uint64) {
	for i := range s {
		if now := s[i].state.Load(); now == idle || now == taken {
			instances++
			bytes += s[i].bytes.Load()
		}
	}
	return instances, bytes
}

// shut waits for the picks that run, and ends all instances.
func (s instances) shut() {
	for i := range s {
		sl := &s[i]
		for !sl.state.CompareAndSwap(idle, gone) && !sl.state.CompareAndSwap(empty, gone) {
			time.Sleep(50 * time.Microsecond) // a pick ends within its fuel
		}
		if sl.in != nil {
			sl.in.close()
			sl.in = nil
		}
	}
}
