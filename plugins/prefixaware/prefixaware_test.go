package prefixaware

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

// What other routers are known to get wrong, each as one situation.
func TestKnownFailuresOfPeers(t *testing.T) {
	f := func(what string, want int, change func(f *sdktest.Frame)) {
		t.Helper()
		fr := sdktest.NewFrame(4).Prompt(8000)
		for i := range fr.Rows {
			fr.Rows[i].InFlight, fr.Rows[i].Sent, fr.Rows[i].Load = 4, 100, .4
		}
		change(fr)
		if got := fr.Run(t, New()); got.Row != want {
			t.Errorf("%s: row %d because of %v; want %d", what, got.Row, got.Reason, want)
		}
	}
	f("a shared system prompt glues everybody to its first holder", 1, func(f *sdktest.Frame) {
		f.Hold(0, 200)
		f.Rows[0].InFlight, f.Rows[0].Wait = 12, 2
		f.Rows[1].InFlight = 3
	})
	f("the owner of the first chunk, not of the longest match", 2, func(f *sdktest.Frame) { f.Hold(0, 512).Hold(2, 7000) })
	f("a long chat loses its cache to a small difference in load", 3, func(f *sdktest.Frame) {
		f.Prompt(60_000).Hold(3, 58_000)
		f.Rows[3].InFlight = 7
		f.Rows[0].InFlight = 2
	})
	f("longest match without a load term", 0, func(f *sdktest.Frame) {
		f.Hold(1, 4000)
		f.Rows[1].Wait, f.Rows[2].Wait, f.Rows[3].Wait = 5, 1, 1
	})
	f("counting requests, blind to their work", 1, func(f *sdktest.Frame) {
		f.Rows[0].InFlight, f.Rows[0].Wait = 3, 6
		f.Rows[2].Wait, f.Rows[3].Wait = 1, 1
	})
	f("blind to what it evicts", 2, func(f *sdktest.Frame) {
		for i := range f.Rows {
			f.Rows[i].FreeGPU, f.Rows[i].ReuseGPU = 0, .9
		}
		f.Rows[2].ReuseGPU = .1
	})
	f("a wrong index holds on to a worker that is flooded", 3, func(f *sdktest.Frame) {
		f.Prompt(1000).Hold(0, 500)
		f.Rows[0].InFlight = 90
		f.Rows[3].InFlight = 0
	})
	f("a slow worker gets as much as the others", 1, func(f *sdktest.Frame) {
		f.Rows[0].Slow, f.Rows[2].Slow, f.Rows[3].Slow = 2, 2, 2
	})
	f("a hit in the CPU tier counts for nothing", 2, func(f *sdktest.Frame) {
		f.Header.InvBWL1 = 1e-6
		f.Rows[2].L1 = 300
	})
}
