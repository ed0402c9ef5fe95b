package route

import (
	"math"
	"testing"
)

func TestTurnsAreCountedByModelAndBounded(t *testing.T) {
	var c turns
	for i := range uint64(3) {
		if a, b := c.next(1), c.next(2); a != i || b != i {
			t.Fatalf("turn %d: %d, %d", i, a, b)
		}
	}
	for i := range uint64(3 * maxModels) {
		c.next(i)
	}
	if len(c.of) > maxModels+1 {
		t.Fatalf("%d counts kept", len(c.of))
	}
}

func TestScaleFollowsWhatWorkersCount(t *testing.T) {
	var s scale
	for range 300 {
		s.correct(3000, 10000)
		s.correct(5, 10)         // too short to count
		s.correct(100000, 10000) // no text
	}
	if got := s.tokensPerByte(); math.Abs(got-0.3) > 0.001 {
		t.Fatalf("%v tokens a byte; want 0.3", got)
	}
}

// The first samples outweigh the guess that the scale begins with; later ones count a thirty-second.
func TestScaleLearnsFastAtFirst(t *testing.T) {
	var s scale
	f := func(samples int, x, want, tolerance float64) {
		t.Helper()
		for range samples {
			s.correct(int(100_000*x), 100_000)
		}
		if got := s.tokensPerByte(); math.Abs(got-want) > tolerance {
			t.Errorf("after %d more of %v: %v tokens a byte; want %v", samples, x, got, want)
		}
	}
	f(1, .178, .178, 1e-6)
	f(1, .188, .183, 1e-6)
	f(30, .18, .18, .001)
	f(1, 1.14, .18+.96/32, .001)
}

func TestInBlocks(t *testing.T) {
	f := func(held float64, length, size, want int) {
		t.Helper()
		if got := inBlocks(held, length, size); got != want {
			t.Errorf("inBlocks(%v, %d, %d) = %d; want %d", held, length, size, got, want)
		}
	}
	f(95.9, 200, 32, 64)
	f(96, 200, 32, 96)
	f(128, 128, 32, 96) // the last token is always computed
	f(128, 129, 32, 128)
	f(130, 120, 32, 96)
	f(100.5, 200, 0, 100) // size unknown
	f(200, 200, 0, 199)
	f(0, 0, 16, 0)
}

func TestCapacityIsLearntOnlyWhileUnknown(t *testing.T) {
	c := newCapacities()
	for range 2000 {
		c.correct(1, 9000, 1000, 10000) // it holds more than believed
		c.correct(2, 1000, 9000, 10000) // it holds less
		c.correct(3, 101, 100, 10000)   // as believed
	}
	f := func(slot uint32, want int, known bool) {
		t.Helper()
		if n, k := c.tokens(slot); n != want || k != known {
			t.Errorf("slot %d: %d tokens, known %v; want %d, %v", slot, n, k, want, known)
		}
	}
	f(4, unknownTokens, false)
	c.correct(4, 5000, 4000, 10000)
	f(4, unknownTokens*10075/10000, false)
	c.correct(5, 4000, 5000, 10000)
	f(5, unknownTokens*9975/10000, false)
	c.correct(6, 5, 1, 0) // of no prompt
	f(6, unknownTokens, false)
	f(1, 4*unknownTokens, false)
	f(2, unknownTokens/4, false)
	f(3, unknownTokens, false)
	c.set(1, 777)
	c.correct(1, 9000, 1000, 10000)
	f(1, 777, true)
	c.set(1, 0)
	f(1, 4*unknownTokens, false)
}
