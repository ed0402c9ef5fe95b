package score

import (
	"math/rand/v2"
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

// What a strategy predicts is what the score reckons with: the prefill of each row, and what is queued before it.
func TestPredictionIsTheScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		var f sdktest.Frame
		f.Randomize(rng, 1+rng.IntN(20))
		scale := NewScale(&f.Header, f.Rows)
		for i := range f.Rows {
			w := &f.Rows[i]
			terms := scale.Terms(w)
			if got := f.Header.Prefill(w); got != terms.Prefill || f.Header.TTFT(w) != w.Wait+got {
				t.Fatalf("%v and %v; the score has %v after %v", got, f.Header.TTFT(w), terms.Prefill, terms.Wait/2)
			}
		}
	}
	f := sdktest.NewFrame(2).Prompt(16000).Hold(1, 8000)
	f.Header.C1, f.Header.C2, f.Rows[1].Slow, f.Rows[1].Wait = .0001, 0, 2, .5
	if a, b := f.Header.TTFT(&f.Rows[0]), f.Header.TTFT(&f.Rows[1]); a < 1.59 || a > 1.61 || b < 2.09 || b > 2.11 {
		t.Errorf("%v and %v; want 1.6 and, by half of it at half the speed and a queue of half a second, 2.1", a, b)
	}
}
