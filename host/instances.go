package host

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// slot holds one instance. Whoever changes state from idle to taken owns the instance until the next change of state.
// Only the owner reads and writes in.
type slot struct {
	state atomic.Uint32
	n     int // of the slot
	in    *instance
	due   atomic.Bool   // wp_maint is due
	used  bool          // had an instance before; the keeper's
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

// spins bounds the wait for an instance when all are taken. A taken one belongs to a goroutine that is running, or was
// preempted between two instructions; yielding lets that one go on.
const spins = 64

// instances are those of strategies with the same code, name, options and permissions, whichever pools they serve. An
// instance works for the program of the strategy that has taken it.
type instances struct {
	of     instancesKey
	module introduction
	slots  []slot
	wanted atomic.Int32 // the keepers fill so many slots: two at first, and one more when all were taken
	upkeep sync.Mutex   // one at a time is at its upkeep, and the others serve

	users int // strategies; guarded by shared.mu
}

// instancesKey is what the memory of an instance depends on.
type instancesKey struct {
	code                 *code
	name, options, allow string
	store, shadow        bool
}

func keyOf(p *program) instancesKey {
	headers := slices.Sorted(slices.Values(p.headers))
	return instancesKey{code: p.code, name: p.name, options: string(p.options), allow: strings.Join(headers, "\n"),
		store: p.kv != nil, shadow: p.shadow}
}

// introduction is what a module has said about itself at its start.
type introduction struct {
	wants   uint32 // bits of abi
	reasons map[uint16]string
	binds   bool // its self-test has bound a session
}

// newInstances has room for so many instances. The first is in.
func newInstances(of instancesKey, room int, in *instance, says introduction) *instances {
	s := &instances{of: of, module: says, slots: make([]slot, room), users: 1}
	for i := range s.slots {
		s.slots[i].n = i
	}
	s.wanted.Store(int32(min(2, room)))
	s.slots[0].put(in)
	s.slots[0].state.Store(idle)
	return s
}

// shared finds the instances of a strategy by what their memory depends on. Safe for concurrent use.
type shared struct {
	mu sync.Mutex
	of map[instancesKey]*instances
}

// find returns instances that are there, nil if there are none. Each find needs a leave.
func (h *shared) find(of instancesKey) *instances {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.of[of]
	if s != nil {
		s.users++
	}
	return s
}

// offer lets later strategies find s, unless they find others already.
func (h *shared) offer(s *instances) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[s.of] == nil {
		h.of[s.of] = s
	}
}

// leave ends one use of s, and all of its instances after the last.
func (h *shared) leave(s *instances) {
	h.mu.Lock()
	s.users--
	last := s.users == 0
	if last && h.of[s.of] == s {
		delete(h.of, s.of)
	}
	h.mu.Unlock()
	if last {
		s.shut()
	}
}

// put gives the slot an instance. The caller owns the slot.
func (sl *slot) put(in *instance) {
	sl.in, sl.used = in, true
	sl.bytes.Store(uint64(in.mem.Size()))
	sl.due.Store(false)
}

// own takes the slot's instance for p, and reports whether it was idle.
func (sl *slot) own(p *program) bool {
	if !sl.state.CompareAndSwap(idle, taken) {
		return false
	}
	sl.in.program, sl.in.kv = p, p.kv
	return true
}

// borrow takes the slot's instance for p from between its picks, and reports whether there is one. The keeper may have
// it for a moment, for a tick or to clean it.
func (sl *slot) borrow(p *program) bool {
	for range 1000 {
		if sl.own(p) {
			return true
		}
		if now := sl.state.Load(); now == empty || now == gone {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// take borrows an instance for p, and reports whether it waited. It returns nil if none becomes free within a moment.
func (s *instances) take(p *program) (sl *slot, waited bool) {
	for i := range spins {
		sl, waiting := s.try(p)
		switch {
		case sl != nil:
			return sl, i > 0
		case !waiting:
			return nil, true // all are being made: that takes milliseconds
		}
		runtime.Gosched()
	}
	return nil, true
}

// try borrows an instance that is idle. waiting reports that there are others, at picks.
func (s *instances) try(p *program) (sl *slot, waiting bool) {
	n := uint32(len(s.slots))
	at := rand.Uint32() % n
	for range n {
		sl := &s.slots[at]
		switch now := sl.state.Load(); {
		case now == idle && sl.own(p):
			return sl, false
		case now == idle || now == taken:
			waiting = true
		}
		at++
		if at == n {
			at = 0
		}
	}
	return nil, waiting
}

// patience is how long a pick waits for an instance that is being made: a Go guest of 2 MB takes 5 ms.
const patience = 100 * time.Millisecond

// more asks for one more instance if all are at picks, and waits for it. It returns nil if there is none within
// patience.
func (s *instances) more(p *program, ask func()) *slot {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(patience / 1000) {
		n, _ := s.alive()
		if sl, _ := s.try(p); sl != nil || n == len(s.slots) {
			return sl
		}
		s.wanted.CompareAndSwap(int32(n), int32(n+1))
		ask()
	}
	return nil
}

// alive returns the number of instances, and the bytes of their memories.
func (s *instances) alive() (instances int, bytes uint64) {
	for i := range s.slots {
		if now := s.slots[i].state.Load(); now == idle || now == taken {
			instances++
			bytes += s.slots[i].bytes.Load()
		}
	}
	return instances, bytes
}

// shut waits for the picks that run, and ends all instances.
func (s *instances) shut() {
	for i := range s.slots {
		sl := &s.slots[i]
		for !sl.state.CompareAndSwap(idle, gone) && !sl.state.CompareAndSwap(empty, gone) {
			time.Sleep(50 * time.Microsecond) // a pick ends within its fuel
		}
		if sl.in != nil {
			sl.in.close()
			sl.in = nil
		}
	}
}
