package host

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// steps is a clock that goes on by a step with each look at it. The keeper looks too, while it replaces an instance.
type steps struct {
	by    time.Duration
	looks atomic.Int64
}

func (s *steps) look() time.Duration { return time.Duration(s.looks.Add(1)) * s.by }
func (s *steps) now() time.Duration  { return time.Duration(s.looks.Load()) * s.by }

// TestTimeEndsAPick: the clock ends a pick that fuel would let run, and the error names the limit and the knob.
func TestTimeEndsAPick(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	s := load(t, h, wat(t, "denormals"), Options{Fuel: 1e12})
	c := &steps{by: 500 * time.Microsecond} // for each slice
	s.clock = c.look
	r := s.Pick(frame(8, 5))
	if now := c.now(); r.Fallback != "time" || r.Row != 5 || now > 10*time.Millisecond || now < 3*time.Millisecond {
		t.Errorf("got %+v after %v; want the fallback by time after 5 ms", r, now)
	}
	if e := s.Stats().LastError; !strings.Contains(e, "not done after 5ms") || !strings.Contains(e, "raise pick_timeout") {
		t.Errorf("%s: want the limit and the knob", e)
	}
}

// TestABusyMachineIsNotTheModulesFault: a machine that runs something else for 3 ms in the middle of a pick does not end it.
func TestABusyMachineIsNotTheModulesFault(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 1}), wat(t, "hostcalls"), Options{})
	c := &steps{by: time.Microsecond}
	s.clock = func() time.Duration {
		now := c.look()
		if c.looks.Load() >= 7 {
			now += 300 * time.Millisecond
		}
		return now
	}
	if r := s.Pick(frame(8, 5)); r.Fallback != "fuel" || c.looks.Load() < 20 {
		t.Errorf("got %+v after %d looks; want it ended by fuel", r, c.looks.Load())
	}
}

// TestABusyMachineLeavesAGrowingFrameItsPick: a fleet that outgrows the frame while the machine runs something else for 30 ms is
// answered by the module all the same.
func TestABusyMachineLeavesAGrowingFrameItsPick(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 1}), wat(t, "order"), Options{})
	c := &steps{by: 30 * time.Millisecond}
	s.clock = c.look
	f := frame(100, 5) // an instance begins with room for 64
	f.Began = epoch.Add(c.look())
	if r := s.Pick(f); r.Fallback != "" {
		t.Errorf("fallback %q: %s; want the module's choice", r.Fallback, s.Stats().LastError)
	}
}

// TestTimeOfAPick: whatever the module does, a pick is over after 5 ms, give or take what a busy machine does. The quickest of
// five counts; go test -v shows it.
func TestTimeOfAPick(t *testing.T) {
	for _, name := range []string{"denormals", "chase", "loop", "recursion", "stack", "flood", "straight", "sqrt", "hostcalls", "indirect"} {
		s := load(t, newHost(t, Config{Slots: 1, QuarantineAfter: 1000}), wat(t, name), Options{Fuel: 1e12})
		best := time.Hour
		for range 5 {
			waittest.Until(t, "an instance", func() bool { return s.Stats().Instances == 1 })
			f := frame(8, 5)
			began := time.Now()
			f.Began = began
			r := s.Pick(f)
			if took := time.Since(began); took < best {
				best = took
			}
			if r.Fallback == "" || r.Row != 5 {
				t.Errorf("%s: got %+v; want the fallback", name, r)
			}
		}
		t.Logf("%-10s %v: %s", name, best, s.Stats().LastError)
		if best > time.Second { // with this fuel, and without the clock, it would run for a day
			t.Errorf("%s took %v; want 5 ms", name, best)
		}
	}
}

// TestSlowStrategyIsSetAside: a strategy that is ended by the clock in one pick of ten, never twice in a row, is set aside; in
// one pick of a hundred it is not.
func TestSlowStrategyIsSetAside(t *testing.T) {
	f := func(every int, want bool) {
		t.Helper()
		s := load(t, newHost(t, Config{Slots: 1}), wat(t, "denormals"), Options{Fuel: 1e12})
		s.clock = (&steps{by: time.Millisecond}).look
		slow, quick := frame(8, 5), frame(2, 1) // the module loops over 4 rows and more
		for i := 0; i < 1000 && !s.Stats().Quarantined; i++ {
			fr := quick
			if i%every == 0 {
				fr = slow
			}
			waittest.Until(t, "an instance", func() bool { return s.Stats().Instances == 1 })
			s.Pick(fr)
		}
		if got := s.Stats().Quarantined; got != want {
			t.Errorf("slow in one pick of %d: set aside is %v; want %v", every, got, want)
		}
	}
	f(10, true)
	f(100, false)
}

// TestLongPicksSetAStrategyAside: a strategy whose every pick takes 2.4 ms of its 5, and answers, is set aside, and the picks that
// try it again do not bring it back. One that takes 0.8 ms stays, and
// one whose slices take longer than a module can make of them: that is a busy machine.
func TestLongPicksSetAStrategyAside(t *testing.T) {
	// It burns 4,000 fuel and answers: four slices, or one of an instance that is trusted.
	wasm, err := wasmtest.Assemble(`(module (memory (export "memory") 1) (func (export "warmpath_abi_1_0"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64) (local $i i32)
			loop local.get $i i32.const 1 i32.add local.tee $i i32.const 4000 i32.lt_u br_if 0 end i64.const 0))`)
	if err != nil {
		t.Fatal(err)
	}
	f := func(first, then time.Duration, want bool) { // what a slice takes
		t.Helper()
		s := load(t, newHost(t, Config{Slots: 1, QuarantineFor: time.Nanosecond}), wasm, Options{})
		c := &steps{by: first}
		s.clock = c.look
		for i := range 3000 {
			if i == 1500 {
				c = &steps{by: then}
				s.clock = c.look
			}
			fr := frame(8, 5)
			fr.Began = epoch.Add(s.clock())
			if r := s.Pick(fr); r.Fallback != "" && r.Fallback != "quarantined" {
				t.Fatalf("got %+v; want an answer", r)
			}
		}
		st := s.Stats()
		if st.Quarantined != want || strings.Contains(st.LastError, "raise pick_timeout") != want {
			t.Errorf("slices of %v, then %v: set aside is %v, after %d picks (%q); want %v", first, then, st.Quarantined, st.Picks, st.LastError, want)
		}
	}
	f(600*time.Microsecond, 600*time.Microsecond, true)
	f(200*time.Microsecond, 200*time.Microsecond, false)
	f(time.Microsecond, 900*time.Microsecond, false)
	f(time.Microsecond, 1500*time.Microsecond, true)
	f(time.Microsecond, 4100*time.Microsecond, false)
}

// TestTimeOfUpkeep: start, configure, frame and maint have limits of their own.
func TestTimeOfUpkeep(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	var now time.Duration
	h.clock = func() time.Duration { now += time.Millisecond; return now }
	if _, err := h.Load(ctx, "start", wat(t, "start"), Options{Fuel: 1e12}); err == nil || !strings.Contains(err.Error(), "in 2s: out of time") {
		t.Errorf("start: %v", err)
	}
	if now > 3*time.Second {
		t.Errorf("start was ended after %v; want 2 s", now)
	}
}
