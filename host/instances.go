package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
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

// maintEvery is the number of picks of an instance between two wp_maint. A Go guest collects garbage only while an
// export runs; at 1 KiB a pick this keeps it below 8 MiB. If the keeper does not come, the pick itself does it after
// four times as many.
const maintEvery = 256

// spins bounds the wait for an instance when all are taken. Slots are as many as processors, so a taken one belongs to
// a goroutine that is running, or was preempted between two instructions; yielding lets that one go on.
const spins = 64

// start makes the first instance, tries it, and starts the keeper, which makes the others.
func (s *Strategy) start(ctx context.Context) error {
	in, err := s.newInstance(ctx)
	if err != nil {
		return err
	}
	s.started = time.Now()
	s.slots = make([]slot, s.cfg.Slots)
	s.slots[0].put(in)
	s.slots[0].state.Store(taken)
	err = s.introduce(in)
	if err == nil {
		err = s.selfTest(&s.slots[0])
	}
	if err != nil {
		in.close()
		return err
	}
	s.slots[0].state.Store(idle)
	s.wake, s.stop, s.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	s.wake <- struct{}{}
	go s.keep(context.WithoutCancel(ctx))
	return nil
}

// introduce asks the module what it wants and what its reasons are called.
func (s *Strategy) introduce(in *instance) (err error) {
	s.notices.wake = s.call
	s.notices.wants, err = readWants(in)
	if err == nil {
		s.reasons, err = readReasons(in)
	}
	return err
}

func (sl *slot) put(in *instance) {
	sl.in, sl.used = in, true
	sl.bytes.Store(uint64(in.mem.Size()))
	sl.due.Store(false)
}

// selfTest has the module judge made-up requests, without the store. To decline or to reject is an answer.
func (s *Strategy) selfTest(sl *slot) error {
	in := sl.in
	kv := in.kv
	in.kv = nil
	f := &Frame{Rows: make([]abi.Row, 3), WorkerIDs: []string{"a", "b", "c"}, Model: "self-test"}
	for i := range f.Rows {
		f.Rows[i] = abi.Row{Worker: uint32(i), Weight: 1, Slow: 1, Key: uint64(i) + 1, MetricsAge: -1}
	}
	for n := 1; n <= len(f.Rows); n++ {
		g := Frame{Rows: f.Rows[:n], WorkerIDs: f.WorkerIDs[:n], Model: f.Model,
			Header: abi.Header{Bound: -1, BestRow: -1, Now: time.Now().UnixNano(), C1: abi.PrefillSeconds}}
		g.prepare()
		if _, why, err := in.run(&g); why != ok && why != decline {
			return fmt.Errorf("host: module %q fails its self-test on %d workers: %s: %w%s", s.name, n, reasonNames[why], cause(err), in.words())
		}
	}
	if err := in.maintain(); err != nil {
		return err
	}
	in.kv = kv
	return nil
}

// take borrows an instance, and reports whether it waited. It returns nil if none becomes free within a moment.
func (s *Strategy) take() (sl *slot, waited bool) {
	n := uint32(len(s.slots))
	for i := range spins {
		waiting := false
		at := rand.Uint32() % n
		for range n {
			sl := &s.slots[at]
			switch st := sl.state.Load(); {
			case st == idle && sl.state.CompareAndSwap(idle, taken):
				return sl, i > 0
			case st == idle || st == taken:
				waiting = true
			}
			if at++; at == n {
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

// give returns a slot whose instance is well.
func (s *Strategy) give(sl *slot) {
	in := sl.in
	if in.calls++; in.maint != nil && in.calls >= maintEvery {
		if in.calls >= 4*maintEvery {
			if err := in.maintain(); err != nil {
				s.discard(sl, in.blame(), err)
				return
			}
		} else if !sl.due.Swap(true) {
			s.call()
		}
	}
	sl.state.Store(idle)
}

// call wakes the keeper.
func (s *Strategy) call() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// maintain lets the guest's runtime collect garbage.
func (in *instance) maintain() error {
	in.calls = 0
	if in.maint == nil {
		return nil
	}
	return in.call(in.maint, maintTime, "wp_maint")
}
