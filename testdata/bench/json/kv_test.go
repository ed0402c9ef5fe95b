package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// eachPick is how many calls a pick of the benchmark makes.
const eachPick = 100

// BenchmarkKV is a call of the store from within a module, to the store that the daemon gives it: a look at a value of 8
// bytes, and a compare-and-swap that changes it.
func BenchmarkKV(b *testing.B) {
	for _, c := range []struct{ name, call string }{
		{"get", `i32.const 0 i32.const 8 i32.const 512 i32.const 8 call $get drop`},
		{"cas", `i32.const 0 i32.const 8 i32.const 512 i32.const 8 i32.const 520 i32.const 8 i32.const 0 call $cas
			if unreachable end
			i32.const 512 i32.const 520 i64.load i64.store
			i32.const 520 i32.const 520 i64.load i64.const 1 i64.add i64.store`},
	} {
		b.Run(c.name, func(b *testing.B) { benchKV(b, c.call) })
	}
}

func benchKV(b *testing.B, call string) {
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(import "warmpath_v1" "kv_get" (func $get (param i32 i32 i32 i32) (result i32)))
		(import "warmpath_v1" "kv_cas" (func $cas (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(data (i32.const 0) "the key.")
		(func (export "warmpath_abi_1_1"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64) (local $i i32)
			i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end ;; the self-test has no store
			i32.const 0 i32.const 8 i32.const 0 i32.const 0 i32.const 512 i32.const 8 i32.const 0 call $cas drop
			loop
				%s
				local.get $i i32.const 1 i32.add local.tee $i i32.const %d i32.lt_u br_if 0
			end
			i64.const 0))`, call, eachPick))
	if err != nil {
		b.Fatal(err)
	}
	store, err := tier.New(tier.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	h, err := host.New(ctx, host.Config{KV: store.Local(10_000, 8<<20), PickTime: time.Second, Fuel: 1e9, Slots: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close(ctx)
	s, err := h.Load(ctx, "kv", wasm, host.Options{Allow: []string{"kv"}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(ctx)
	f := &host.Frame{}
	f.Reset()
	f.Rows, f.WorkerIDs = make([]abi.Row, 4), make([]string, 4)
	for b.Loop() {
		if r := s.Pick(f); r.Fallback != "" {
			b.Fatal(r.Fallback, s.Stats().LastError)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/eachPick, "ns/call")
}
