package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestFailedInstanceIsDiscarded: no instance serves again after an error. A module counts its picks in a global and
// traps on the first; were the instance given back, its next pick would count 2, and answer.
func TestFailedInstanceIsDiscarded(t *testing.T) {
	for _, fail := range []string{"unreachable", "i64.const 99 return", "loop br 0 end", "i32.const -4 i32.load drop"} {
		s := load(t, newHost(t, Config{Slots: 1, QuarantineAfter: 1000}), assemble(t, `(module
			(memory (export "memory") 1)
			(global $n (mut i64) (i64.const 0))
			(func (export "warmpath_abi_1_0"))
			(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
			(func (export "wp_pick") (result i64)
				i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
				global.get $n i64.const 1 i64.add global.set $n
				global.get $n i64.const 1 i64.eq if `+fail+` end
				i64.const 0))`), Options{})
		for range 3 {
			waittest.Until(t, "an instance", func() bool { return s.Stats().Instances == 1 })
			if r := s.Pick(frame(8, 5)); r.Fallback == "" {
				t.Errorf("after %q the instance that failed answered: %+v", fail, r)
			}
		}
		waittest.Until(t, "three discarded", func() bool { return s.Stats().Discarded == 3 })
	}
}

// TestDiscardedInstancesAreCounted: each is counted when it fails, also those that are not replaced since the strategy
// is set aside.
func TestDiscardedInstancesAreCounted(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 2, QuarantineAfter: 2}), wat(t, "trap"), Options{})
	waittest.Until(t, "two instances", func() bool { return s.Stats().Instances == 2 })
	s.Pick(frame(8, 5))
	s.Pick(frame(8, 5))
	if st := s.Stats(); st.Discarded != 2 || !st.Quarantined || st.Fallbacks["trap"] != 2 {
		t.Errorf("%d instances discarded in two picks that trapped: %+v", st.Discarded, st)
	}
}

// TestImportsCostFuel: each import costs what its call takes, and more for more bytes.
func TestImportsCostFuel(t *testing.T) {
	fr := frame(4, 1)
	fr.Session = strings.Repeat("s", 400)
	fr.Prefixes, fr.Chain = held{}, []uint64{11}
	used := func(name string, args ...uint64) int64 {
		t.Helper()
		h := newHost(t, Config{KV: &store{m: map[string]string{"m/kk": strings.Repeat("v", 4096)}, n: map[string]int64{}, most: 100}, Slots: 1,
			Log: slog.New(slog.DiscardHandler)})
		s, err := h.Load(ctx, "m", caller(t, importNamed(name), args, strings.Repeat("k", 512)+"\x02\x00\x00\x00kk"), Options{Allow: []string{"kv"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(ctx)
		r := s.Pick(fr)
		if r.Fallback != "" {
			t.Fatalf("%s: %s", name, s.Stats().LastError)
		}
		return r.Fuel
	}
	priced := map[string]bool{}
	f := func(least int64, name string, args ...uint64) {
		t.Helper()
		priced[name] = true
		if got := used(name, args...); got < least || got > least+20 {
			t.Errorf("%s%v costs %d; want %d and some for the code around it", name, args, got, least)
		}
	}
	const call, get, put = 50, 300, 800
	f(call+400/16, "str", uint64(abi.StrSession), 0, 1024, 400)
	f(call, "str", uint64(abi.StrSession), 0, 1024, 8)
	f(call, "prefix_match", 2)
	f(call, "prefix_hash", 0)
	f(call, "log_level")
	f(call+1500+20_000+4+24/16, "prefix_best", 2048, 24) // one for each row, and a stranger
	f(call+200+24/16, "prefix_worker", 1, 2048, 24)
	f(call+1500+8, "prefix_match_key", 1, 0, 16)
	f(call+1500+4096, "prefix_match_key", 1, 0, 8192)
	f(call+200+32/16, "cache_tiers", 1, 2048, 96)
	f(call+get+4096/16, "kv_get", 0, 2, 2048, 8192)
	f(call+get+480/16, "kv_get", 0, 480, 2048, 8192)
	f(call+get+2*4096/16, "kv_get_many", 512, 6, 2048, 8192) // its value is copied twice
	f(call+get+4096/16, "kv_get_many", 512, 6, 2048, 8)
	f(call+100, "own", 1, 2)
	f(call+100, "own_of", 1)
	f(call+100, "cache", uint64(abi.CacheKeep), 0, 5000, 0, 0)
	f(call+30_000, "zone_offset", 0, 3, 0)
	f(call+put, "kv_cas", 0, 3, 0, 0, 0, 0, 0)
	f(call+put+32000/16, "kv_cas", 0, 3, 0, 0, 2048, 32000, 0)
	f(call+put, "kv_incr", 0, 3, 1, 0)
	f(call+100, "metric", 0, 3, 0)
	f(call+100, "log", 3, 0, 512)
	f(call+512/16, "error", 0, 512)
	for _, imp := range abi.Imports {
		if !priced[imp.Name] {
			t.Errorf("%s has no price here", imp.Name)
		}
	}
}

// TestWASICostsFuel: those of WASI's functions whose work goes by an argument cost more for more.
func TestWASICostsFuel(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 1}), wat(t, "tiny"), Options{})
	in := s.instances.slots[0].in
	f := func(name string, want int64, args ...uint64) {
		t.Helper()
		in.fuel.Set(1 << 40)
		in.said = ""
		wasiFuncs[name].f(in, in.mem, append(args, 0, 0))
		if got := 1<<40 - int64(in.fuel.Get()); got != want {
			t.Errorf("%s%v costs %d beside its call; want %d", name, args, got, want)
		}
	}
	in.mem.WriteUint32Le(0, 4096) // an entry: 800 bytes at 4096
	in.mem.WriteUint32Le(4, 800)
	f("fd_write", 1+800/16, 1, 0, 1, 64)
	f("fd_write", 0, 7, 0, 1, 64)
	f("random_get", 480, 1024, 480)
	f("poll_oneoff", 3, 1024, 4096, 3, 64)
	f("clock_time_get", 0, 1, 0, 64)
}

// TestLogLimit: of a thousand lines that a module writes, ten stand in the log, and those that are written cost more.
func TestLogLimit(t *testing.T) {
	var log bytes.Buffer
	h := newHost(t, Config{Slots: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s := load(t, h, caller(t, importNamed("log"), []uint64{uint64(abi.LevelWarn), 0, 5}, "hello"), Options{})
	f := frame(4, 1)
	first := s.Pick(f).Fuel
	for range 999 {
		s.Pick(f)
	}
	// Ten at once, and one a second: a busy machine takes seconds for this.
	if n := strings.Count(log.String(), "hello"); n < linesBurst || n > linesBurst+50 {
		t.Errorf("%d of 1,000 lines are in the log; want %d", n, linesBurst)
	}
	if last := s.Pick(f).Fuel; first < last+3000 {
		t.Errorf("a line that is written costs %d, one that is not %d; want %d more", first, last, 3000)
	}
}

// TestPoolInTheLog: the line of a strategy that fails names the pool, the limit and the knob.
func TestPoolInTheLog(t *testing.T) {
	var log bytes.Buffer
	h := newHost(t, Config{Slots: 1, QuarantineAfter: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s := load(t, h, wat(t, "loop"), Options{Pool: "chat", Fuel: 12345})
	s.Pick(frame(8, 5))
	for _, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
		for _, want := range []string{"pool=chat", "strategy=TestPoolInTheLog", "fuel of 12345", "raise fuel"} {
			if !strings.Contains(line, want) {
				t.Errorf("%s\nwant %q in it", line, want)
			}
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines; want one of the failure and one of the quarantine:\n%s", n, log.String())
	}
}

func assemble(t testing.TB, src string) []byte {
	t.Helper()
	b, err := wasmtest.Assemble(src)
	if err != nil {
		t.Fatal(fmt.Errorf("%w in %s", err, src))
	}
	return b
}

// What a strategy prints in a pick that ends well is a line at debug with the request's id, and is not carried over.
func TestPrintsAreLogged(t *testing.T) {
	for _, c := range []struct {
		level slog.Level
		want  int
	}{{slog.LevelDebug, linesBurst}, {slog.LevelInfo, 0}} {
		var log bytes.Buffer
		h := newHost(t, Config{Slots: 1, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: c.level}))})
		s := load(t, h, assemble(t, `(module
			(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
			(memory (export "memory") 1)
			(data (i32.const 0) "\10\00\00\00\06\00\00\00")
			(data (i32.const 16) "hello\n")
			(func (export "warmpath_abi_1_1"))
			(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
			(func (export "wp_pick") (result i64)
				i32.const 1 i32.const 0 i32.const 1 i32.const 8 call $write drop
				i64.const 0))`), Options{})
		f := frame(2, 1)
		f.Request = "req-7"
		for range 30 {
			s.Pick(f)
		}
		if n := strings.Count(log.String(), `msg="strategy prints"`); n > c.want || c.want > 0 && n == 0 {
			t.Errorf("at %v %d lines; want %d\n%s", c.level, n, c.want, log.String())
		}
		if c.want > 0 && !strings.Contains(log.String(), "id=req-7 text=hello\n") {
			t.Errorf("no line with request and text:\n%s", log.String())
		}
	}
}
