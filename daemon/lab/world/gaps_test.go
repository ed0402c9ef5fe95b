package world

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestGaps: quantiles are those of the sorted times, up to the width of a bucket.
func TestGaps(t *testing.T) {
	var g gaps
	if q := g.quantile(.99); q != 0 {
		t.Errorf("of nothing: %v", q)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var all []float64
	for range 5000 {
		x := math.Exp(3*r.NormFloat64() - 3) // from under a millisecond to hours
		all = append(all, x)
		g.add(time.Duration(x * float64(time.Second)))
	}
	slices.Sort(all)
	for _, q := range []float64{0, .25, .5, .9, .99, .999, 1} {
		want := max(gapsFrom, all[max(0, int(math.Ceil(q*5000))-1)])
		if got := g.quantile(q); got < want*.999 || got > want*gapsBy*1.001 {
			t.Errorf("%v: %v; want %v", q, got, want)
		}
	}
	g.add(math.MaxInt64)
	if got := g.quantile(1); got < 86400 {
		t.Errorf("of 292 years: %v", got)
	}
}
