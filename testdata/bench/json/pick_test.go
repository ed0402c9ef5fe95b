package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/score"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// prompted returns a random fleet of n workers and a prompt of 8,000 tokens that no session binds.
func prompted(n int) *sdktest.Frame {
	f := sdktest.NewFrame(n)
	f.Randomize(rand.New(rand.NewPCG(1, uint64(n))), n)
	f.Header.Bound, f.Header.BlockTokens = -1, 16
	return f.Prompt(8000)
}

// idle returns a fleet of n workers that are equal but for what was sent to them, and a new prompt.
func idle(n int) *host.Frame {
	p := sdktest.NewFrame(n).Prompt(250)
	r := rand.New(rand.NewPCG(2, uint64(n)))
	for i := range p.Rows {
		p.Rows[i].Lately, p.Rows[i].Sent = r.Float32(), r.Uint64N(1000)
	}
	return &host.Frame{Header: p.Header, Rows: p.Rows}
}

// prefixaware loads the strategy into a sandbox of its own.
func prefixaware(b *testing.B) *host.Strategy {
	b.Helper()
	wasm, err := plugins.Builtin("prefixaware")
	if err != nil {
		b.Fatal(err)
	}
	h, err := host.New(b.Context(), host.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close(b.Context()) })
	s, err := h.Load(b.Context(), "prefixaware", wasm, host.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkPickTail times each pick by itself. A look at the clock is in each figure.
func BenchmarkPickTail(b *testing.B) {
	s, p := prefixaware(b), prompted(16)
	f := &host.Frame{Header: p.Header, Rows: p.Rows}
	price(f)
	var took []time.Duration
	for b.Loop() {
		f.Header.Seq++
		began := time.Now()
		r := s.Pick(f)
		took = append(took, time.Since(began))
		if r.Fallback != "" {
			b.Fatalf("fallback: %s", r.Fallback)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// price fills in the costs of the rows, as the daemon does for a strategy that wants them.
func price(f *host.Frame) { score.Price(&f.Header, f.Rows) }

// BenchmarkPick is prefixaware's whole pick, as the daemon calls it: in the sandbox with fuel and with the costs that
// it wants, the same without costs, and natively on the same frame. It stands here, as host and plugins are strangers
// to each other.
func BenchmarkPick(b *testing.B) {
	s := prefixaware(b)
	for _, n := range []int{16, 256} {
		b.Run(fmt.Sprintf("wasm/workers=%d", n), func(b *testing.B) {
			p := prompted(n)
			f := &host.Frame{Header: p.Header, Rows: p.Rows}
			b.ReportAllocs()
			for b.Loop() {
				f.Header.Seq++
				price(f)
				if r := s.Pick(f); r.Fallback != "" {
					b.Fatalf("fallback: %s", r.Fallback)
				}
			}
		})
		b.Run(fmt.Sprintf("idle/workers=%d", n), func(b *testing.B) {
			f := idle(n)
			for b.Loop() {
				f.Header.Seq++
				price(f)
				if r := s.Pick(f); r.Fallback != "" {
					b.Fatalf("fallback: %s", r.Fallback)
				}
			}
		})
		b.Run(fmt.Sprintf("uncosted/workers=%d", n), func(b *testing.B) {
			p := prompted(n)
			f := &host.Frame{Header: p.Header, Rows: p.Rows}
			for i := range f.Rows {
				f.Rows[i].Cost = 0
			}
			for b.Loop() {
				f.Header.Seq++
				s.Pick(f)
			}
		})
		b.Run(fmt.Sprintf("native/workers=%d", n), func(b *testing.B) {
			p, native := prompted(n), plugins.Native("prefixaware")
			for i := range p.Rows {
				p.Rows[i].Cost = 0 // it computes them itself
			}
			r := sdk.NewRequest(&p.Header, make([]uint32, n))
			for b.Loop() {
				r.Seq++
				r.OrderLen = 0
				native.Route(r, p.Rows)
			}
		})
	}
}
