package engine

import "sort"

// The bounds of the buckets, as recorded from vLLM 0.32.0, in seconds.
var (
	ttftBounds = []float64{
		.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	interTokenBounds = []float64{
		.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
	latencyBounds = []float64{
		.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
)

// tokenBounds returns vLLM's bounds for numbers of tokens: 1, 2, 5, 10 ... up to the model's length.
func tokenBounds(limit int) (bounds []float64) {
	for ten := 1; ; ten *= 10 {
		for _, n := range []int{ten, 2 * ten, 5 * ten} {
			if n > limit {
				return bounds
			}
			bounds = append(bounds, float64(n))
		}
	}
}

// stepBounds are those of the tokens of a step.
var stepBounds = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}

// Histogram is a Prometheus histogram with fixed bounds.
type Histogram struct {
	Bounds  []float64
	Buckets [24]int64 // one for each bound, not cumulative, and behind them one for +Inf
	Sum     float64
	Count   int64
}

func (h *Histogram) observe(v float64) {
	h.Buckets[sort.SearchFloat64s(h.Bounds, v)]++
	h.Sum += v
	h.Count++
}
