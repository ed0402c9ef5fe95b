package score_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/sdk/score"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// TestTermsAreTheFormula: what is shown of a decision is what decided it.
func TestTermsAreTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	f := sdktest.NewFrame(1)
	for range 2000 {
		f.Randomize(rng, 1+rng.IntN(20))
		s := score.NewScale(&f.Header, f.Rows)
		for i := range f.Rows {
			want, work := formula(&f.Header, f.Rows, i)
			got := s.Terms(&f.Rows[i])
			if math.Abs(got.Cost-want) > 1e-9*want || math.Abs(got.Prefill+got.Eviction-work) > 1e-9*work {
				t.Fatalf("row %d: cost %v, work %v; want %v, %v", i, got.Cost, got.Prefill+got.Eviction, want, work)
			}
		}
	}
}
