package host

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// A stepped strategy gets its notices by Settle, at once and in their order, and nothing by itself.
func TestSteppedNotices(t *testing.T) {
	kv := &store{m: map[string]string{}, n: map[string]int64{}}
	s := load(t, newHost(t, Config{KV: kv, Stepped: true}), wat(t, "notices"), Options{Allow: []string{"kv"}})
	sum := func(key string) int64 {
		v, _ := kv.Add(t.Name(), key, 0, 0)
		return v
	}
	for i := range 500 {
		s.Notices().Complete(&abi.Outcome{Seq: uint64(i), OutputTokens: int32(i), CachedTokens: -1})
	}
	if got := sum("complete"); got != 0 {
		t.Errorf("%d notices came by themselves", got)
	}
	s.Settle(t.Context())
	if got := sum("complete"); got != 500*499/2 {
		t.Errorf("the outcomes' tokens add up to %d; want %d", got, 500*499/2)
	}
	if n := s.Stats().Instances; n != 1 {
		t.Errorf("%d instances; want one", n)
	}
}

// A stepped module that traps is replaced by Settle, and never set aside, however slow the machine is.
func TestSteppedInstanceIsReplaced(t *testing.T) {
	s := load(t, newHost(t, Config{Stepped: true, QuarantineAfter: 1, PickTime: time.Nanosecond}), wat(t, "notice_traps"),
		Options{Fuel: 100_000})
	f := frame(4, 1)
	for range 50 {
		s.Notices().FirstToken(&abi.Outcome{})
		s.Settle(t.Context())
		if r := s.Pick(f); r.Fallback != "" {
			t.Fatalf("the pick fell back: %s", r.Fallback)
		}
	}
	if got := s.Stats().Discarded; got != 50 {
		t.Errorf("%d instances replaced; want 50", got)
	}
}

// The same seed gives a module the same chance, another one another.
func TestSteppedChance(t *testing.T) {
	numbers := func(seed uint64) string {
		p, err := newHost(t, Config{Stepped: true}).newProgram("p", nil, Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(p.random(), p.random())
	}
	if a, b, c := numbers(1), numbers(1), numbers(2); a != b || a == c {
		t.Errorf("%s, %s and %s; want the first two alike", a, b, c)
	}
}

func TestNative(t *testing.T) {
	f := func(what string, decision uint64, want Result, alternatives ...uint32) {
		t.Helper()
		s := Native("own", abi.WantHeld|abi.WantTick, func(h *abi.Header, rows []abi.Row, order []uint32) uint64 {
			h.OrderLen = uint32(copy(order, alternatives))
			return decision
		})
		defer s.Close(t.Context())
		s.Settle(t.Context())
		fr := frame(4, 1)
		fr.Header.Seq = 0
		got := s.Pick(fr)
		if got.Row != want.Row || got.Reason != want.Reason || got.Flags != want.Flags || got.Fallback != want.Fallback ||
			!slices.Equal(got.Order, want.Order) || (got.Reject == nil) != (want.Reject == nil) {
			t.Errorf("%s: %+v; want %+v", what, got, want)
		}
		if s.Name() != "own" || s.Notices().Wants() != abi.WantHeld {
			t.Errorf("%s wants %#x", s.Name(), s.Notices().Wants())
		}
	}
	f("a row", 2|7<<32|uint64(abi.FlagBind)<<48, Result{Row: 2, Reason: 7, Flags: abi.FlagBind, Order: []int32{2, 0, 1, 3}})
	f("alternatives", 2, Result{Row: 2, Order: []int32{2, 3, 1, 0}}, 3, 9, 1)
	f("no such row", 4, Result{Row: 1, Fallback: "bad_index", Order: []int32{1, 0, 2, 3}})
	f("declined", 0xffff_ffff, Result{Row: 1, Fallback: "decline", Order: []int32{1, 0, 2, 3}})
	f("rejected", 0xffff_fffe, Result{Row: 1, Order: []int32{1, 0, 2, 3}, Reject: &Rejection{}})
}
