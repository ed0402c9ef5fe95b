package roundrobin

import (
	"slices"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// Any run of requests over the same workers is even to within one, wherever it starts and however uneven the load is.
func TestEvenToWithinOne(t *testing.T) {
	seq := uint64(0)
	for _, n := range []int{5, 4, 5, 1, 7} {
		f, s, got := sdktest.NewFrame(n), []sdk.Strategy{New(), New(), New()}, make([]int, n)
		f.Rows[0].InFlight, f.Rows[0].Wait, f.Rows[0].State = 99, 9, abi.RowSlowStart
		for i := range 1003 {
			f.Header.Seq = seq
			seq++
			got[f.Run(t, s[i%len(s)]).Row]++
			if slices.Max(got)-slices.Min(got) > 1 {
				t.Fatalf("%d workers, after %d requests: %v", n, i+1, got)
			}
		}
	}
}

// Where some workers are left out the host has found the turn.
func TestTheHostsTurn(t *testing.T) {
	f := sdktest.NewFrame(5)
	f.Header.Seq, f.Header.LeftOut, f.Header.Next = 101, 95, 5
	if got := f.Run(t, New()); got.Row != 4 || !slices.Equal(got.Order, []int{0, 1, 2}) {
		t.Errorf("%d, then %v; want 4, then 0, 1, 2", got.Row, got.Order)
	}
}

func TestAlternativesAreTheNextTurns(t *testing.T) {
	f := sdktest.NewFrame(5)
	f.Header.Seq = 1<<63 + 3
	first := int(f.Header.Seq % 5)
	want := []int{(first + 1) % 5, (first + 2) % 5, (first + 3) % 5}
	if got := f.Run(t, New()); got.Row != first || !slices.Equal(got.Order, want) {
		t.Errorf("%d, then %v; want %d, then %v", got.Row, got.Order, first, want)
	}
}
