package plugins

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

var sizes = []int{16, 256}

// BenchmarkNative is a strategy as Go code: what the sandbox is compared with.
func BenchmarkNative(b *testing.B) {
	for _, name := range Names() {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/workers=%d", name, n), func(b *testing.B) {
				s, f := Native(name), frame(n)
				r := sdk.NewRequest(&f.Header, make([]uint32, n))
				b.ReportAllocs()
				for b.Loop() {
					r.Seq++
					r.OrderLen = 0
					s.Route(r, f.Rows)
				}
			})
		}
	}
}

// BenchmarkWasm is the call of wp_pick alone, frame already written, without fuel.
func BenchmarkWasm(b *testing.B) {
	for _, name := range Names() {
		wasm := build(b, module(name))
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/workers=%d", name, n), func(b *testing.B) {
				g, f := instantiate(b, wasm, n), frame(n)
				b.ReportAllocs()
				for b.Loop() {
					g.write(&f.Header, f.Rows)
					g.run(b)
				}
			})
		}
	}
}

func module(name string) string { return "github.com/warmpath/warmpath/plugins/" + name + "/module" }

func frame(n int) *sdktest.Frame {
	f := sdktest.NewFrame(n)
	f.Randomize(rand.New(rand.NewPCG(1, uint64(n))), n)
	f.Prompt(8000)
	f.Header.Bound, f.Header.InvBWL1, f.Header.InvBWL2 = -1, 0, 0
	for i := range f.Rows {
		f.Rows[i].Weight, f.Rows[i].State = 1, 0
	}
	return f
}
