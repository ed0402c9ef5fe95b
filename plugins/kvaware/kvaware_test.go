package kvaware

import (
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/plugins/prefixaware"
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestFollowsEventsAndSaysWhenItCannot(t *testing.T) {
	h := &sdktest.Host{}
	h.Use(t)
	s, f := New(), sdktest.NewFrame(3).Prompt(8000)
	f.Rows[1].GPU, f.Rows[2].Predicted = 400, 400
	run := func(flags uint32, row int, reason sdk.Reason, lines int) {
		t.Helper()
		f.Header.Flags = flags
		if got := f.Run(t, s); got.Row != row || got.Reason != reason || len(h.Lines) != lines {
			t.Errorf("row %d, %v, %d lines; want %d, %v, %d", got.Row, got.Reason, len(h.Lines), row, reason, lines)
		}
	}
	run(abi.HeaderEvents, 1, sdk.ReasonPrefix, 0)
	run(0, 2, sdk.ReasonPredicted, 1)
	run(0, 2, sdk.ReasonPredicted, 1)
	run(abi.HeaderEvents, 1, sdk.ReasonPrefix, 2)
	if h.Lines[0].Level != sdk.Warn || h.Lines[1].Level != sdk.Info {
		t.Errorf("lines %v", h.Lines)
	}
}

// Without events it is prefixaware, whose view then is the routed history too.
func TestWithoutEventsIsPrefixaware(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	a, b, f := New(), prefixaware.New(), sdktest.NewFrame(1)
	for range 5000 {
		f.Randomize(rng, 1+rng.IntN(16))
		f.Header.Flags = 0
		for i := range f.Rows {
			f.Rows[i].GPU, f.Rows[i].L1, f.Rows[i].L2 = f.Rows[i].Predicted, 0, 0
		}
		if x, y := f.Run(t, a).Row, f.Run(t, b).Row; x != y {
			t.Fatalf("kvaware chooses row %d, prefixaware %d", x, y)
		}
	}
}
