package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// made is rounds of which the part with the slow strategy is factor times as slow, and now and then a round is
// disturbed as a whole.
func made(n int, factor float64) (all []parts) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range n {
		var p parts
		for i := range p {
			scale := 1.0
			if i == 1 {
				scale = factor
			}
			if rnd.IntN(10) == 0 {
				scale *= 1.5
			}
			for range 240 {
				p[i] = append(p[i], time.Duration(scale*(400+100*rnd.ExpFloat64())*float64(time.Microsecond)))
			}
		}
		all = append(all, p)
	}
	return all
}

func TestP99Ratio(t *testing.T) {
	for _, c := range []struct {
		factor   float64
		min, max float64
		word     string
	}{
		{1, .9, 1.1, "within 10 %"},
		{1.5, 1.35, 1.65, "not within 10 %"},
		{.7, .6, .8, "within 10 %"},
	} {
		at, low, high := p99Ratio(made(60, c.factor))
		if at < c.min || at > c.max || low > at || high < at {
			t.Errorf("factor %v: %.2f, %.2f to %.2f", c.factor, at, low, high)
		}
		if got := tenPercent(at, low, high); got != c.word {
			t.Errorf("factor %v: %q (%.2f to %.2f); want %q", c.factor, got, low, high, c.word)
		}
	}
	_, low, high := p99Ratio(made(3, 1.1))
	if word := tenPercent(1.05, low, high); high-low < .01 || word == "not within 10 %" {
		t.Errorf("three rounds show %q (%.2f to %.2f)", word, low, high)
	}
}
