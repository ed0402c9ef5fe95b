package score_test

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// TestAnIdleJoinerIsFilled: in a busy fleet a hit is worth far more than its seconds, but not more than the queue
// before it where a worker that joins has nothing to do.
func TestAnIdleJoinerIsFilled(t *testing.T) {
	f := func(what string, want int, state, pending uint32, wait float64) {
		t.Helper()
		fr := sdktest.NewFrame(4).Prompt(6600).Hold(0, 6000).Hold(1, 6000).Hold(2, 6000)
		fr.Header.Lambda = 15
		for i := range fr.Rows {
			fr.Rows[i].InFlight, fr.Rows[i].Sent, fr.Rows[i].Load, fr.Rows[i].Wait = 20, 100, .8, wait
		}
		r := &fr.Rows[3]
		r.InFlight, r.Load, r.Wait, r.State, r.PendingTokens = 0, 0, 0, state, pending
		if got := fr.Run(t, new(strategy)); got.Row != want {
			t.Errorf("%s: row %d because of %v; want %d", what, got.Row, got.Reason, want)
		}
	}
	f("a queue at the others", 3, abi.RowJoins, 0, .5)
	f("no queue at the others", 0, abi.RowJoins, 0, 0)
	f("it has a prompt to compute", 0, abi.RowJoins, 6600, .5)
	f("a worker as any", 0, 0, 0, .5)
}
