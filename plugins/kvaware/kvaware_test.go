package kvaware

import (
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/plugins/prefixaware"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// A row is judged by its events while they are live, beside others that are judged by history.
func TestFallsBackWorkerByWorker(t *testing.T) {
	f := sdktest.NewFrame(3).Prompt(8000)
	live := func(row int, gpu, l1 uint32) {
		f.Rows[row].State, f.Rows[row].GPU, f.Rows[row].L1 = abi.RowLive, gpu, l1
	}
	history := func(row int, blocks uint32) {
		f.Rows[row] = abi.Row{Worker: f.Rows[row].Worker, Key: f.Rows[row].Key, Weight: 1, Slow: f.Rows[row].Slow,
			FreeGPU: f.Rows[row].FreeGPU, GPU: blocks, Predicted: blocks}
	}
	want := func(row int, reason sdk.Reason) {
		t.Helper()
		if got := f.Run(t, New()); got.Row != row || got.Reason != reason {
			t.Errorf("row %d, %v; want %d, %v", got.Row, got.Reason, row, reason)
		}
	}
	live(0, 0, 0)
	live(1, 400, 0)
	live(2, 0, 0)
	f.Rows[2].Predicted = 480 // what was routed there is gone, by its events
	want(1, sdk.ReasonPrefix)
	live(0, 300, 180) // more in all, a part of it to be brought from the CPU
	f.Header.InvBWL1 = 1e-6
	want(0, sdk.ReasonPrefix)
	history(2, 490) // its events are cut
	want(2, sdk.ReasonPredicted)
	history(2, 0)
	want(0, sdk.ReasonPrefix)
}

// Without events it is prefixaware, whose view then is the routed history too.
func TestWithoutEventsIsPrefixaware(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	a, b, f := New(), prefixaware.New(), sdktest.NewFrame(1)
	for range 5000 {
		f.Randomize(rng, 1+rng.IntN(16))
		f.Header.Flags = 0
		for i := range f.Rows {
			r := &f.Rows[i]
			r.GPU, r.L1, r.L2, r.State = r.Predicted, 0, 0, r.State&^abi.RowLive
		}
		x, y := f.Run(t, a), f.Run(t, b)
		if x.Row != y.Row || x.Reason != sdk.ReasonPredicted {
			t.Fatalf("kvaware chooses row %d (%v), prefixaware %d", x.Row, x.Reason, y.Row)
		}
	}
}
