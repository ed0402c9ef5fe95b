package host

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

const modules = "../testdata/modules"

func wat(t testing.TB, name string) []byte {
	t.Helper()
	b, err := wasmtest.File(filepath.Join(modules, name+".wat"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// TestFaultyPick: every failure of wp_pick is answered by the fallback, in the same request.
func TestFaultyPick(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	h.clock = func() time.Duration { return 1 } // it stands, or a busy machine would end by time what is here to end by fuel
	f := func(name, reason string) {
		t.Helper()
		s, err := h.Load(ctx, name, wat(t, name), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		defer s.Close(ctx)
		fr := frame(8, 5)
		r := s.Pick(fr)
		if r.Fallback != reason || r.Row != 5 || len(r.Order) != 8 || r.Order[0] != 5 {
			t.Errorf("%s: got row %d of order %v by %q (%s); want row 5 by %q", name, r.Row, r.Order, r.Fallback, s.Stats().LastError, reason)
		}
		if n := s.Stats().Fallbacks[reason]; n != 1 {
			t.Errorf("%s: counted %d fallbacks by %q; want 1", name, n, reason)
		}
		t.Logf("%-10s fuel %8d: %s", name, r.Fuel, s.Stats().LastError)
	}
	f("loop", "fuel")
	f("recursion", "fuel")
	f("flood", "fuel")
	f("straight", "fuel")
	f("sqrt", "fuel")
	f("hostcalls", "fuel")
	f("indirect", "fuel")
	f("grow", "memory")
	f("stack", "memory")
	f("trap", "trap")
	f("index", "bad_index")
	f("negative", "bad_index")
	f("decline", "decline")
}

// TestRefused: what is refused at load, and what the error must name: thing and remedy.
func TestRefused(t *testing.T) {
	h := newHost(t, Config{})
	h.clock = func() time.Duration { return 1 } // as in TestFaultyPick
	f := func(name string, want ...string) {
		t.Helper()
		var o Options
		if name == "tiny" || name == "configure" {
			o.Values = map[string]string{"k": "v"}
		}
		s, err := h.Load(ctx, name, wat(t, name), o)
		if err == nil {
			s.Close(ctx)
			t.Errorf("%s: loaded; want an error", name)
			return
		}
		for _, w := range append(want, "host: ", `"`+name+`"`) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %q in it", name, err, w)
			}
		}
	}
	f("selftest", "self-test on a fleet of 1: trap", "unreachable")
	f("long_prompts", "self-test on a fleet of 1 with a prompt of 8192 tokens: trap", "unreachable")
	f("start", "with a fuel of 100000000 in 2s: out of fuel")
	f("initialize", "with a fuel of 100000000 in 2s", "out of fuel")
	f("startcalls", "with a fuel of 100000000 in 2s", "out of fuel")
	f("frame_outside", "wp_frame(64) gives address 65528", "want 8576 bytes at a multiple of 8")
	f("configure", "errno -3", `it says "no such knob"`)
	f("tiny", "takes no options", "remove them")
	f("signature", "wrong signature for func[wp_pick]: (i32) -> (i64); want () -> (i64)")
	f("tick_signature", "wrong signature for func[wp_tick]: (i32) -> (); want (i64) -> ()")
	f("wants_missing", "wp_wants asks for 0x8, but func[wp_on_complete] is not exported", "leave the bit out")
	f("wants_unknown", "wp_wants asks for 0x100000, which ABI 1.1 does not have", "leave these bits out")
	f("reasons_cut", `wp_reasons names the code "256" after 0 others`)
	f("no_pick", "exports no func[wp_pick]; want () -> (i64)")
	f("no_marker", "func[warmpath_abi_1_3]", "build it against")
	f("no_memory", `no memory named "memory"`)
	f("import_unknown", "wasi_snapshot_preview1.sock_accept", "no strategy may use: sockets do not work here")
	f("import_signature", "warmpath_v1.prefix_hash as (i64) -> (i64); want (i32) -> (i64)")
	f("big", "starts at 512; the limit is 256 pages", "memory_mb")
	f("simd", "SIMD")
	f("threads", "threads")
	f("tailcall", "tail call")
	f("refuel", "names global 0 of 0")
	f("reserved", "warmpath:fuel", "rename it")
	f("invalid", "cannot use i32 as result")

	_, err := h.Load(ctx, "text", []byte("(module)"), Options{})
	if err == nil || !strings.Contains(err.Error(), "not a core wasm module") {
		t.Errorf("text: %v", err)
	}
	_, err = h.Load(ctx, "greedy", wat(t, "tiny"), Options{Allow: []string{"files"}})
	if err == nil || !strings.Contains(err.Error(), `allow has "files"`) {
		t.Errorf("greedy: %v", err)
	}
}

// TestForgedOrder: indexes out of range and repeats are dropped, the missing rows are appended.
func TestForgedOrder(t *testing.T) {
	s := load(t, newHost(t, Config{}), wat(t, "order"), Options{})
	fr := frame(4, 0)
	r := s.Pick(fr)
	if r.Fallback != "" || r.Row != 1 || len(r.Order) != 4 || r.Order[0] != 1 || r.Order[1] != 2 || r.Order[2] != 0 || r.Order[3] != 3 {
		t.Errorf("got %+v; want order 1 2 0 3", r)
	}
}

// TestReject: the row is the fallback's, for a caller that will not reject.
func TestReject(t *testing.T) {
	s := load(t, newHost(t, Config{}), wat(t, "reject"), Options{})
	if r := s.Pick(frame(4, 2)); r.Reject == nil || r.Row != 2 || r.Fallback != "" || len(r.Order) != 4 {
		t.Errorf("got %+v; want a reject with row 2", r)
	}
}

// TestFrameOutgrown: a module whose frame cannot grow answers small fleets, and the fallback the large ones.
func TestFrameOutgrown(t *testing.T) {
	s := load(t, newHost(t, Config{}), wat(t, "frame_shrinks"), Options{})
	if r := s.Pick(frame(64, 3)); r.Fallback != "" || r.Row != 0 {
		t.Errorf("64 workers: %+v", r)
	}
	if r := s.Pick(frame(65, 3)); r.Fallback != "trap" || r.Row != 3 {
		t.Errorf("65 workers: %+v", r)
	}
}

// TestQuarantine: set aside after five errors in a row, tried again by one pick after the pause, back when that succeeds.
func TestQuarantine(t *testing.T) {
	const pause = 50 * time.Millisecond
	h := newHost(t, Config{Slots: 2, QuarantineFor: pause})
	s := load(t, h, wat(t, "trap"), Options{})
	bad, good := frame(8, 5), frame(2, 1)
	for range 5 {
		waittest.Until(t, "an instance to fail", func() bool { return s.Pick(bad).Fallback == "trap" })
	}
	if st := s.Stats(); !st.Quarantined || st.Fallbacks["trap"] != 5 {
		t.Fatalf("after 5 traps: %+v; want it quarantined", st)
	}
	if r := s.Pick(good); r.Fallback != "quarantined" || r.Row != 1 {
		t.Errorf("got %+v; want the fallback", r)
	}
	waittest.Until(t, "the try that fails", func() bool { return s.Pick(bad).Fallback == "trap" })
	if !s.Stats().Quarantined {
		t.Error("a failed try ended the quarantine")
	}
	waittest.Until(t, "the try that succeeds", func() bool { return s.Pick(good).Fallback == "" })
	if s.Stats().Quarantined {
		t.Error("a good answer did not end the quarantine")
	}
	waittest.Until(t, "all instances", func() bool { return s.Stats().Instances == 2 })
}

// TestMaintFails: an instance whose upkeep fails is replaced, and picks go on.
func TestMaintFails(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 2}), wat(t, "maint"), Options{})
	f := frame(4, 1)
	waittest.Until(t, "a replaced instance", func() bool {
		s.Pick(f)
		return s.Stats().Discarded > 0
	})
	waittest.Until(t, "a good answer", func() bool { return s.Pick(f).Fallback == "" })
}
