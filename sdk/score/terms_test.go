package score_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// TestTermsAreTheFormula: what is shown of a decision is what decided it.
func TestTermsAreTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	f := sdktest.NewFrame(1)
	for n := range 2000 {
		f.Randomize(rng, 1+rng.IntN(140)) // Price works in parts
		if n%2 == 0 {
			adapt(rng, f)
		}
		s := score.NewScale(&f.Header, f.Rows)
		score.Price(&f.Header, f.Rows)
		for i := range f.Rows {
			want, work := formula(&f.Header, f.Rows, i)
			got := s.Terms(&f.Rows[i])
			if cost := f.Rows[i].Cost; math.Abs(cost-want) > 1e-9*want {
				t.Fatalf("row %d of %d: priced %v; want %v", i, len(f.Rows), cost, want)
			}
			if math.Abs(got.Cost-want) > 1e-9*want || math.Abs(got.Prefill+got.Eviction+got.Adapter-work) > 1e-9*work ||
				math.Abs(got.Overflow) > 0 && f.Rows[i].KVTokens == 0 {
				t.Fatalf("row %d: cost %v, work %v; want %v, %v", i, got.Cost, got.Prefill+got.Eviction+got.Adapter, want, work)
			}
		}
	}
}

// TestPriceDecides: the rule chooses by costs that it was given as it does by its own, also where rows have none.
func TestPriceDecides(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 2))
	f, given, own := sdktest.NewFrame(1), &strategy{}, &strategy{}
	given.rule.ByCost = true
	for n := range 5000 {
		f.Randomize(rng, 1+rng.IntN(100))
		if n%3 == 0 {
			f.Rows[rng.IntN(len(f.Rows))].Slow = math.NaN()
		}
		score.Price(&f.Header, f.Rows)
		got, want := f.Run(t, given), f.Run(t, own)
		if got.Row != want.Row || !slices.Equal(got.Order, want.Order) || got.Reason != want.Reason {
			t.Fatalf("%d rows: chose %+v by their costs; want %+v", len(f.Rows), got, want)
		}
	}
}

// adapt has the request name an adapter that runs at some of the workers.
func adapt(rng *rand.Rand, f *sdktest.Frame) {
	for i := range f.Rows {
		if r := &f.Rows[i]; rng.IntN(3) > 0 {
			r.State |= rng.Uint32N(3000) << abi.RowLoadShift
		}
	}
}
