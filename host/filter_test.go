package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// filtering assembles a module that chooses row 0, and filters by what its wp_filter does. max_tokens is at 1076, the
// order area behind 64 rows at 13072.
func filtering(t *testing.T, marker, filter string) []byte {
	t.Helper()
	b, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(memory (export "memory") 1)
		(func (export "%s"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_filter") (result i64) %s)
		(func (export "wp_pick") (result i64) i64.const 0))`, marker, filter))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a filter may answer, and what becomes of each failure.
func TestFilter(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	h.clock = func() time.Duration { return 1 }
	f := func(filter string, o Options, kept string, reject int, fallback, words string) {
		t.Helper()
		early := "i32.const 1076 i32.load i32.eqz if i64.const 0xffff_ffff return end " // the self-test
		s := load(t, h, filtering(t, abi.Marker, early+filter), o)
		fr := frame(4, 2)
		fr.Header.MaxTokens = 1
		r := s.Filter(fr)
		status := 0
		if r.Reject != nil {
			status = r.Reject.Status
		}
		slices.Sort(r.Order)
		if got := fmt.Sprint(r.Order); got != kept || status != reject || r.Fallback != fallback ||
			!strings.Contains(s.Stats().LastError, words) {
			t.Errorf("%s: %s, %d, %q (%s); want %s, %d, %q (%s)", filter, got, status, r.Fallback, s.Stats().LastError,
				kept, reject, fallback, words)
		}
	}
	both := "i32.const 13072 i32.const 3 i32.store i32.const 13076 i32.const 1 i32.store "
	f(both+"i64.const 0x0007_0000_0002", Options{}, "[1 3]", 0, "", "")
	f(both+"i64.const 1", Options{}, "[3]", 0, "", "")
	f("i64.const 0", Options{}, "[]", 0, "", "")
	f("i64.const 0xffff_ffff", Options{}, "[0 1 2 3]", 0, "", "")
	f("i32.const 1176 i32.const 403 i32.store i64.const 0xffff_fffe", Options{Fallback: true}, "[0 1 2 3]", 403, "", "")
	f("unreachable", Options{}, "[0 1 2 3]", 503, "trap", "wp_filter: wasm error: unreachable")
	f("unreachable", Options{Fallback: true}, "[0 1 2 3]", 0, "trap", "wp_filter")
	f("unreachable", Options{Fallback: true, Reject: true}, "[0 1 2 3]", 503, "trap", "wp_filter")
	f("loop br 0 end unreachable", Options{}, "[0 1 2 3]", 503, "fuel", "fuel")
	f("i64.const 5", Options{}, "[0 1 2 3]", 503, "bad_index", "keeps 5 of 4 rows")
	f("i64.const 0xffff_fffd", Options{}, "[0 1 2 3]", 503, "bad_index", "keeps -3 of 4 rows")
	f("i32.const 13072 i32.const 4 i32.store i64.const 1", Options{}, "[0 1 2 3]", 503, "bad_index", "keeps row 4 of 4")
}

// A chain is the filters and then the strategy itself, if it filters too. An older module's wp_filter means nothing.
func TestFilters(t *testing.T) {
	h := newHost(t, Config{})
	names := func(s *Strategy) (all string) {
		for _, f := range s.Filters() {
			all += f.Name() + " "
		}
		return all
	}
	named := func(name, marker string) *Strategy {
		t.Helper()
		s, err := h.Load(ctx, name, filtering(t, marker, "i64.const 0xffff_ffff"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close(ctx) })
		return s
	}
	a, b, old := named("a", abi.Marker), named("b", abi.Marker), named("old", "warmpath_abi_1_1")
	if got := names(a) + "|" + names(old); got != "a |" || old.Wants(abi.WantFilter) || !a.Wants(abi.WantFilter) {
		t.Error(got)
	}
	b.Behind([]*Strategy{a})
	old.Behind([]*Strategy{a})
	if got := names(b) + "|" + names(old); got != "a b |a " {
		t.Error(got)
	}
}

// The failures of a filter count by caller, so that the requests of one client do not lock out the others.
func TestFilterIsSetAsideByCaller(t *testing.T) {
	h := newHost(t, Config{Slots: 2, QuarantineAfter: 2, QuarantineFor: time.Hour})
	s := load(t, h, filtering(t, abi.Marker, "i32.const 1076 i32.load if unreachable end i64.const 0xffff_ffff"), Options{})
	ask := func(caller string, maxTokens uint32) Result {
		fr := frame(3, 0)
		fr.Caller, fr.Header.MaxTokens = caller, maxTokens
		r := s.Filter(fr)
		for r.Fallback == "busy" {
			time.Sleep(time.Millisecond)
			r = s.Filter(fr)
		}
		return r
	}
	for range 3 {
		ask("bad", 1)
	}
	if r := ask("bad", 0); r.Fallback != "quarantined" || r.Reject == nil || r.Reject.Status != 503 {
		t.Errorf("%+v; want 503 to the caller whose requests fail", r)
	}
	if r := ask("good", 0); r.Fallback != "" || len(r.Order) != 3 {
		t.Errorf("%+v; want other callers to be served", r)
	}
}
