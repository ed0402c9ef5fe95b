package host

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// holding assembles a module of a version that holds each request for some milliseconds, and classifies it by what its
// wp_classify does.
func holding(t *testing.T, marker string, millis int, classify string) []byte {
	t.Helper()
	b, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(memory (export "memory") 1)
		(func (export "%s"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_classify") (result i64) %s)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
			i32.const 1244 i32.const %d i32.store i64.const 0x0007_ffff_fffd))`, marker, classify, millis))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// To hold is an answer: the fallback's row stands beside it. An older module has no such row, and 0 ms are none.
func TestHold(t *testing.T) {
	h := newHost(t, Config{})
	f := func(marker string, millis int, want time.Duration, fallback string) {
		t.Helper()
		s := load(t, h, holding(t, marker, millis, "i64.const 0"), Options{})
		fr := frame(5, 3)
		fr.Header.HoldMillis = 99 // of the pick before
		r := s.Pick(fr)
		if r.Hold != want || r.Row != 3 || r.Fallback != fallback || len(r.Order) != 5 || r.Reject != nil {
			t.Errorf("%s, %d ms: %+v (%s)", marker, millis, r, s.Stats().LastError)
		}
	}
	f("warmpath_abi_1_2", 1500, 1500*time.Millisecond, "")
	f("warmpath_abi_1_2", 0, 0, "decline")
	f("warmpath_abi_1_1", 1500, 0, "bad_index")
	f("warmpath_abi_1_0", 1500, 0, "bad_index")
	native := Native("n", 0, func(h *abi.Header, _ []abi.Row, _ []uint32) uint64 {
		h.HoldMillis = 20
		return abi.Pack(abi.Hold, 0, 0)
	})
	if r := native.Pick(frame(3, 1)); r.Hold != 20*time.Millisecond || r.Row != 1 || len(r.Order) != 3 {
		t.Errorf("%+v", r)
	}
}

// A module says how urgent a request is by its header. One that fails there, or has no such call, says nothing, and is
// set aside as for a pick.
func TestClassify(t *testing.T) {
	h := newHost(t, Config{QuarantineAfter: 3, Slots: 1, QuarantineFor: time.Hour})
	fr := &Frame{}
	fr.Reset()
	fr.Header.Priority, fr.Header.PromptTokens, fr.Header.QueueDepth = -7, 8000, 3
	f := func(what, marker, classify string, class int, weight float64, ok bool) *Strategy {
		t.Helper()
		s := load(t, h, holding(t, marker, 1, classify), Options{})
		c, w, known := s.Classify(fr)
		if c != class || w != weight || known != ok {
			t.Errorf("%s: %d, %v, %v; want %d, %v, %v (%s)", what, c, w, known, class, weight, ok, s.Stats().LastError)
		}
		return s
	}
	f("by the body's priority", "warmpath_abi_1_2", "i32.const 1080 i32.load i64.extend_i32_u", -7, 0, true)
	f("by the depth", "warmpath_abi_1_2", "i32.const 1232 i32.load i64.extend_i32_u i64.const 0x3f00_0000_0000_0000 i64.or", 3, .5, true)
	f("the lowest", "warmpath_abi_1_2", "i64.const 0x8000_0000", -1<<31, 0, true)
	f("of an older module", "warmpath_abi_1_1", "i64.const 5", 0, 0, false)
	s := f("that traps", "warmpath_abi_1_2", "unreachable", 0, 0, false)
	for range 5 {
		for s.Stats().Instances == 0 && !s.Stats().Quarantined { // the keeper makes another one
			s.wake.ring()
			time.Sleep(time.Millisecond)
		}
		s.Classify(fr)
	}
	if !s.Stats().Quarantined {
		t.Errorf("%+v; want a module that fails to be set aside", s.Stats())
	}
	f("without an end", "warmpath_abi_1_2", "loop br 0 end unreachable", 0, 0, false)
	if _, _, ok := load(t, h, wat(t, "tiny"), Options{}).Classify(fr); ok {
		t.Error("a module without wp_classify classifies")
	}
}

// TestPlan: a module sets the values of conversations. One that traps, or was made for an older version, sets none, and
// its picks go on.
func TestPlan(t *testing.T) {
	h := newHost(t, Config{})
	f := func(what, marker, plan string, want bool, value float64) {
		t.Helper()
		b, err := wasmtest.Assemble(fmt.Sprintf(`(module
			(memory (export "memory") 1)
			(func (export "%s"))
			(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
			(func (export "wp_plan") (param i32) %s)
			(func (export "wp_pick") (result i64) i64.const 0))`, marker, plan))
		if err != nil {
			t.Fatal(err)
		}
		s := load(t, h, b, Options{})
		talks := []abi.Talk{{Value: .5, Tokens: 7}}
		if ok := s.Plan(talks); ok != want || talks[0].Value != value {
			t.Errorf("%s: %v, %+v; want %v and a value of %v (%s)", what, ok, talks, want, value, s.Stats().LastError)
		}
		for range 2 * s.cfg.QuarantineAfter { // no pick comes between
			s.Plan(talks)
			waittest.Until(t, what+": an instance", func() bool { return s.Stats().Instances > 0 })
		}
		if r := s.Pick(frame(2, 0)); r.Fallback != "" || s.Stats().Quarantined {
			t.Errorf("%s: the next pick is %+v", what, r)
		}
	}
	tokens := "i32.const 1024 i32.const 1064 i32.load f64.convert_i32_s f64.store"
	f("by the tokens", "warmpath_abi_1_3", tokens, true, 7)
	f("an older module", "warmpath_abi_1_2", tokens, false, .5)
	f("a trap on what the self-test has not", "warmpath_abi_1_3",
		"i32.const 1064 i32.load i32.const 7 i32.eq if unreachable end", false, .5)
	if load(t, h, wat(t, "tiny"), Options{}).Plan([]abi.Talk{{}}) {
		t.Error("a module without wp_plan plans")
	}
}
