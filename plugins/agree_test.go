package plugins

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// A million frames in all: the built-ins as wasm answer as the same code does natively, in the row, the reason, the
// flags and the alternatives.
func TestWasmAgreesWithNative(t *testing.T) {
	frames := 1_000_000 / len(Names())
	if testing.Short() {
		frames /= 50
	}
	for i, name := range Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rows = 24
			g := instantiate(t, build(t, module(name)), rows)
			s, f, order := Native(name), sdktest.NewFrame(1), make([]uint32, rows)
			rng := rand.New(rand.NewPCG(2026, uint64(i)))
			for n := range frames {
				f.Randomize(rng, 1+rng.IntN(rows))
				g.write(&f.Header, f.Rows)
				want := sdk.PickNative(s, &f.Header, f.Rows, order)
				if got := sdk.Decision(g.run(t)); got != want {
					t.Fatalf("frame %d: wasm answers %#x, native %#x; header %+v, rows %+v", n, got, want, f.Header, f.Rows)
				}
				if got, want := g.order(), order[:f.Header.OrderLen]; !slices.Equal(got, want) {
					t.Fatalf("frame %d: wasm names alternatives %v, native %v", n, got, want)
				}
			}
		})
	}
}
