package redecide

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/transport/packed"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// module asks the host for something, whose result it drops, and chooses row 0.
const module = `(module
	(import "warmpath_v1" "str" (func $str (param i32 i32 i32 i32) (result i32)))
	(import "warmpath_v1" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
	(memory (export "memory") 1) (data (i32.const 0) "x-tier")
	(func (export "warmpath_abi_1_1"))
	(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
	(func (export "wp_pick") (result i64) %s i64.const 0))`

// TestWhatRecordsLackIsNotJudged: a strategy that asks for what a record does not hold chooses by nothing.
func TestWhatRecordsLackIsNotJudged(t *testing.T) {
	line := func(labels uint32) string {
		f := host.Frame{}
		f.Reset()
		f.Header.Version, f.Header.Labels = abi.Version, labels
		f.Rows = []abi.Row{{Key: worker.KeyOf("a"), Slow: 1, Weight: 1}, {Key: worker.KeyOf("b"), Slow: 1, Weight: 1}}
		return fmt.Sprintf(`{"id":"x","key":"acme","packed_frame":%q,"candidates":[{"worker":"a"},{"worker":"b"}]}`+"\n",
			frameText(&f))
	}
	const ask = "i32.const %d i32.const 6 i32.const 0 i32.const 0 call $str drop"
	for _, c := range []struct {
		call  string
		lines string
		lacks []string
	}{
		{fmt.Sprintf(ask, abi.StrHeader), line(0), []string{"header x-tier"}},
		{fmt.Sprintf(ask, abi.StrLabel), line(2), []string{"the workers' labels"}},
		{"i32.const 0 i32.const 6 i32.const 0 i32.const 0 call $kv_get drop", line(0) + line(0), []string{"the store"}},
		{fmt.Sprintf(ask, abi.StrCaller), line(0), nil},
		{"", line(0), nil},
	} {
		ctx := context.Background()
		store := &Store{}
		h, err := host.New(ctx, host.Config{Stepped: true, KV: store})
		if err != nil {
			t.Fatal(err)
		}
		wasm, err := wasmtest.Assemble(fmt.Sprintf(module, c.call))
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Load(ctx, "asks", wasm, host.Options{Allow: []string{"kv", "headers:x-tier"}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(ctx, s, store, strings.NewReader(c.lines))
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(c.lines, "\n")
		unfit, decided := 0, n
		if c.lacks != nil {
			unfit, decided = n, 0
		}
		if r.Unfit != unfit || r.Decided != decided || !slices.Equal(r.Lacks, c.lacks) {
			t.Errorf("%s: %+v; want %d not judged for lack of %q", c.call, r, unfit, c.lacks)
		}
		s.Close(ctx)
		h.Close(ctx)
	}
}

// TestWhoseOwn: numbers that another strategy has learnt are named, for a strategy that uses them.
func TestWhoseOwn(t *testing.T) {
	f := host.Frame{}
	f.Reset()
	f.Header.Version = abi.Version
	f.Rows = []abi.Row{{Key: worker.KeyOf("a"), Slow: 1, Weight: 1, Own: 3}}
	line := func(strategy, sum string) string {
		return fmt.Sprintf(`{"strategy":%q,"module_sha256":%q,"packed_frame":%q,"candidates":[{"worker":"a"}]}`+"\n", strategy, sum,
			frameText(&f))
	}
	for _, own := range []string{"", `(import "warmpath_v1" "own_of" (func (param i64) (result f64)))`} {
		h, err := host.New(t.Context(), host.Config{Stepped: true})
		if err != nil {
			t.Fatal(err)
		}
		wasm, err := wasmtest.Assemble(`(module ` + own + `(memory (export "memory") 1) (func (export "warmpath_abi_1_2"))
			(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
			(func (export "wp_pick") (result i64) i64.const 0))`)
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Load(t.Context(), "mine", wasm, host.Options{})
		if err != nil {
			t.Fatal(err)
		}
		lines := line("mine", "") + line("named otherwise", s.SHA256()) + line("prefixaware", "0") + line("bandit", "1")
		r, err := Run(t.Context(), s, &Store{}, strings.NewReader(lines))
		others, other := 0, ""
		if own != "" {
			others, other = 2, "bandit"
		}
		if err != nil || r.Decided != 4 || r.Others != others || r.Other != other {
			t.Errorf("%q: %v, %d decided, %d of others, %q; want %d, %q", own, err, r.Decided, r.Others, r.Other, others, other)
		}
		s.Close(t.Context())
		h.Close(t.Context())
	}
}

// frameText returns a frame as an access log has it.
func frameText(f *host.Frame) string {
	return base64.StdEncoding.EncodeToString(packed.AppendTable(nil, f.AppendTo(nil), abi.HeaderSize, abi.RowSize))
}
