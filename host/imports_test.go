package host

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// store is a KV without expiry.
type store struct {
	mu sync.Mutex // guards m, n
	m  map[string]string
	n  map[string]int64

	most int // keys of m
}

func (s *store) Get(ns, key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.m[ns+"/"+key]
	return []byte(v), ok
}

func (s *store) CompareAndSwap(ns, key string, old, new []byte, _ time.Duration) int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.m[ns+"/"+key]; ok != (old != nil) || v != string(old) {
		return abi.ErrConflict
	}
	if old == nil && len(s.m) >= s.most {
		return abi.ErrLimit
	}
	s.m[ns+"/"+key] = string(new)
	return 0
}

func (s *store) Add(ns, key string, delta int64, _ time.Duration) (int64, int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[ns+"/"+key] += delta
	return s.n[ns+"/"+key], 0
}

// caller assembles a module whose wp_pick calls one import with the given arguments and leaves its result at 65,000.
func caller(t testing.TB, f abi.Func, args []uint64, data string) []byte {
	t.Helper()
	name := map[abi.Type]string{abi.I32: "i32", abi.I64: "i64", abi.F64: "f64"}
	var params, result, push, keep string
	for i, p := range f.Params {
		params += " " + name[p]
		push += fmt.Sprintf(" %s.const %d", name[p], int64(args[i]))
	}
	at := ""
	if len(f.Results) > 0 {
		result = "(result " + name[f.Results[0]] + ")"
		at, keep = "i32.const 65000", name[f.Results[0]]+".store"
	}
	b, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(import "warmpath_v1" %q (func $f (param%s) %s))
		(memory (export "memory") 1)
		(data (i32.const 0) "%s")
		(func (export "warmpath_abi_1_0"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
			%s %s call $f %s i64.const 0))`, f.Name, params, result, escaped(data), at, push, keep))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// escaped writes each byte of s as the text format has them in strings.
func escaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "\\%02x", s[i])
	}
	return b.String()
}

func importNamed(name string) abi.Func {
	return abi.Imports[slices.IndexFunc(abi.Imports, func(f abi.Func) bool { return f.Name == name })]
}

// TestImports: worked calls. The data "keyvalueNEWhits" stands at 0; buffers are at 512.
func TestImports(t *testing.T) {
	kv := &store{m: map[string]string{"m/key": "value"}, n: map[string]int64{}, most: 1}
	h := newHost(t, Config{KV: kv, Slots: 1, Log: slog.New(slog.DiscardHandler)})
	fr := frame(4, 1)
	fr.Session, fr.Model, fr.Tenant, fr.Chain = "session-7", "llama", "", []uint64{11, 22}
	fr.WorkerIDs[2], fr.Rows[2].GPU, fr.Rows[2].L1, fr.Rows[2].L2 = "worker-2", 5, 3, 1
	call := func(o Options, name string, args ...uint64) (uint64, string, *Strategy) {
		t.Helper()
		imp := importNamed(name)
		s, err := h.Load(ctx, "m", caller(t, imp, args, "keyvalueNEWhits"), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(ctx)
		if r := s.Pick(fr); r.Fallback != "" {
			t.Fatalf("%s%v: %q: %s", name, args, r.Fallback, s.Stats().LastError)
		}
		mem := s.instances.slots[0].in.mem
		v, _ := mem.ReadUint64Le(65000)
		if len(imp.Results) > 0 && imp.Results[0] == abi.I32 {
			v = uint64(int64(int32(v)))
		}
		b, _ := mem.Read(512, 32)
		text, _, _ := strings.Cut(string(b), "\x00")
		return v, text, s
	}
	f := func(want int64, wantText, name string, args ...uint64) {
		t.Helper()
		if got, text, _ := call(Options{Allow: []string{"kv"}}, name, args...); int64(got) != want || text != wantText {
			t.Errorf("%s%v = %d, %q; want %d, %q", name, args, int64(got), text, want, wantText)
		}
	}
	f(9, "session-7", "str", uint64(abi.StrSession), 0, 512, 100)
	f(9, "", "str", uint64(abi.StrSession), 0, 512, 8)
	f(5, "llama", "str", uint64(abi.StrModel), 0, 512, 5)
	f(8, "worker-2", "str", uint64(abi.StrWorker), 2, 512, 100)
	f(0, "", "str", uint64(abi.StrTenant), 0, 512, 100)
	f(-1, "", "str", uint64(abi.StrWorker), 4, 512, 100)
	f(-3, "", "str", 99, 0, 512, 100)
	f(-3, "", "str", 0, 0, 0xffff_fffa, 100)
	f(9, "", "prefix_match", 2)
	f(-1, "", "prefix_match", 4)
	f(22, "", "prefix_hash", 1)
	f(0, "", "prefix_hash", 2)
	f(5, "value", "kv_get", 0, 3, 512, 100)
	f(-1, "", "kv_get", 0, 2, 512, 100)
	f(-3, "", "kv_get", 0, 0, 512, 100)
	f(-2, "", "kv_cas", 0, 3, 0, 0, 8, 3, 0)
	f(0, "", "kv_cas", 0, 3, 3, 5, 8, 3, 0)
	f(-5, "", "kv_cas", 3, 5, 0, 0, 8, 3, 0)
	f(7, "", "kv_incr", 11, 4, 7, 0)
	f(6, "", "kv_incr", 11, 4, math.MaxUint64, 0)
	f(math.MinInt64, "", "kv_incr", 11, 4, 1, math.MaxUint64)
	f(int64(abi.LevelError)+1, "", "log_level")
	if kv.m["m/key"] != "NEW" {
		t.Errorf("kv_cas left %q; want NEW", kv.m["m/key"])
	}
	for name, args := range map[string][]uint64{"kv_get": {0, 3, 512, 9}, "kv_cas": {0, 3, 0, 0, 8, 3, 0}} {
		if got, _, _ := call(Options{}, name, args...); int64(got) != int64(abi.ErrForbidden) {
			t.Errorf("%s without allow = %d; want ErrForbidden", name, int64(got))
		}
	}
	if _, _, s := call(Options{}, "metric", 11, 4, math.Float64bits(2.5)); s.Stats().Metrics["hits"] != 2.5 {
		t.Errorf("metric: %v", s.Stats().Metrics)
	}
	_, _, s := call(Options{}, "metric", 8, 3, math.Float64bits(2.5)) // NEW
	if m := s.Stats().Metrics; len(m) != 0 {
		t.Errorf("a metric's name that is no label was taken: %v", m)
	}
}

// TestBadPointers: every import, WASI's too, with every combination of bad addresses and lengths: an errno or a trap of the
// guest, never a panic of ours, and nothing outside the guest's memory.
func TestBadPointers(t *testing.T) {
	bad := []uint64{0, 1, 65535, 65536, 1 << 31, 1<<32 - 8, 1<<32 - 1}
	h := newHost(t, Config{KV: &store{m: map[string]string{}, n: map[string]int64{}}})
	s := load(t, h, wat(t, "tiny"), Options{Allow: []string{"kv", "headers:x"}})
	in := s.instances.slots[0].in
	in.frame = frame(4, 1)
	in.frame.Prefixes, in.frame.Chain, in.frame.Headers = held{}, []uint64{11}, headers{"": "empty"}
	funcs := maps.Clone(importFuncs)
	for name, w := range wasiFuncs {
		if name != "proc_exit" {
			funcs["wasi "+name] = w.f
		}
	}
	for name, f := range funcs {
		for seed := range 4000 {
			var st [9]uint64
			for i, x := 0, seed; i < len(st); i++ {
				st[i] = bad[x%len(bad)]
				if x /= len(bad); x == 0 {
					x = seed + i
				}
			}
			args := st
			in.fuel.Set(1 << 40)
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Fatalf("%s%v: %v", name, args, p)
					}
				}()
				f(in, in.mem, st[:])
			}()
		}
	}
}

// TestContract: each import of the contract has its function, and none has none.
func TestContract(t *testing.T) {
	for _, f := range abi.Imports {
		if importFuncs[f.Name] == nil {
			t.Errorf("%s has no function", f.Name)
		}
	}
	if len(importFuncs) != len(abi.Imports) {
		t.Errorf("%d functions for %d imports", len(importFuncs), len(abi.Imports))
	}
}
