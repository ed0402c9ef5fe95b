package order

import (
	"math"
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
	at := Now{Time: 1, Slow: 2, Back: .5}
	put := func(i int) {
		rows[i] = abi.Row{Worker: uint32(i), Weight: 1, Slow: 1 + r.Float64(), Load: r.Float64(), InFlight: r.Uint32N(9),
			Wait: max(0, r.NormFloat64()), KVTokens: 1000, HeldTokens: r.Uint32N(900), FlightTokens: 100, Sent: r.Uint64N(5)}
		able[i] = r.IntN(10) > 0
		seats[i].Put(&rows[i], able[i], at, 0)
	}
	for i := range n {
		put(i)
	}
	keys := [Measures]func(i int) float64{
		func(i int) float64 { return float64(rows[i].InFlight) },
		func(i int) float64 { return rows[i].Wait },
		func(i int) float64 { return -rows[i].Room() },
	}
	for range 500 {
		put(r.IntN(n))
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
	// Later the fleet is slower, loads have faded, and queues are shorter.
	x.Fade(.9)
	later := Now{Time: 1.001, Slow: 3, Back: .25}
	var want [5]float64
	for i := range n {
		if r := &rows[i]; able[i] {
			for k, v := range []float64{1, float64(r.InFlight), max(0, r.Wait-.001), r.Slow * 3 / 2, r.Load * .9 * .25 / .5} {
				want[k] += v
			}
		}
	}
	var h abi.Header
	x.Describe(&h, 40, later)
	for k, got := range []float32{float32(h.LeftOut) + 40, h.MeanFlight, h.MeanWait, h.MeanSlow, h.MeanLoad} {
		if k > 0 {
			want[k] /= want[0]
		}
		if math.Abs(float64(got)-want[k]) > 1e-3*want[k] {
			t.Errorf("mean %d is %v; want %v", k, got, want[k])
		}
	}
	if h.Uneven != 0 {
		t.Error("the workers are uneven")
	}
	if x.Describe(&h, n, later); h.LeftOut != 0 || h.MeanFlight != 0 {
		t.Errorf("all have a row, and %+v", h)
	}
	visited := 0
	x.Least(ByFlight, func(int) bool { visited++; return true })
	if visited != n {
		t.Errorf("%d of %d are visited", visited, n)
	}
}
