package order

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

// TestOrder plays random changes, and compares the first workers by each measure, and the means, with those of a sort.
func TestOrder(t *testing.T) {
	const n = 150
	r := rand.New(rand.NewPCG(1, 2))
	var x Set[int]
	seats, rows, able := make([]*Seat[int], n), make([]abi.Row, n), make([]bool, n)
	for i := range n {
		seats[i] = x.Join(i)
	}
	put := func(i int, now float64) {
		rows[i] = abi.Row{Worker: uint32(i), Weight: 1, Slow: 1, InFlight: r.Uint32N(9), Wait: max(0, r.NormFloat64()),
			KVTokens: 1000, HeldTokens: r.Uint32N(900), FlightTokens: 100, Sent: r.Uint64N(5)}
		able[i] = r.IntN(10) > 0
		seats[i].Put(&rows[i], able[i], now, 0)
	}
	for i := range n {
		put(i, 1)
	}
	keys := [Measures]func(i int) float64{
		func(i int) float64 { return float64(rows[i].InFlight) },
		func(i int) float64 { return rows[i].Wait },
		func(i int) float64 { return -rows[i].Room() },
	}
	for range 500 {
		put(r.IntN(n), 1)
		for measure, key := range keys {
			var all []float64
			for i := range n {
				if able[i] {
					all = append(all, key(i))
				}
			}
			slices.Sort(all)
			var got []float64
			x.Least(measure, func(i int) bool {
				got = append(got, key(i))
				return len(got) < 20
			})
			if !slices.Equal(got, all[:20]) {
				t.Fatalf("measure %d: %v; want %v", measure, got, all[:20])
			}
		}
	}
	count, flight := 0, uint32(0)
	for i := range n {
		if able[i] {
			count, flight = count+1, flight+rows[i].InFlight
		}
	}
	var h abi.Header
	x.Describe(&h, 40)
	if want := float32(flight) / float32(count); int(h.LeftOut) != count-40 || h.MeanFlight-want > 1e-5 || want-h.MeanFlight > 1e-5 ||
		h.Uneven != 0 {
		t.Errorf("%d left out, %v in flight, uneven %d; want %d and %v", h.LeftOut, h.MeanFlight, h.Uneven, count-40, want)
	}
	if x.Describe(&h, n); h.LeftOut != 0 || h.MeanFlight != 0 {
		t.Errorf("all have a row, and %+v", h)
	}
	visited := 0
	x.Least(ByFlight, func(int) bool { visited++; return true })
	if visited != n {
		t.Errorf("%d of %d are visited", visited, n)
	}
}
