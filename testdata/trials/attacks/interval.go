package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// resamples is how many draws of rounds an interval is made of.
const resamples = 400

// parts is what the other pool's requests took in the three parts of a round: without the slow strategy, with it, and
// without it.
type parts [3][]time.Duration

// p99Ratio is the p99 of the parts with the slow strategy over the p99 of all the parts without it, and the interval
// that holds 95 % of what the ratio is over rounds drawn from these with replacement (the percentile bootstrap). The
// rounds are drawn and not the requests, since what disturbs one request disturbs those around it.
func p99Ratio(all []parts) (at, low, high float64) {
	at = p99Over(all)
	rnd := rand.New(rand.NewPCG(1, 99))
	drawn, many := make([]parts, len(all)), make([]float64, resamples)
	for i := range many {
		for k := range drawn {
			drawn[k] = all[rnd.IntN(len(all))]
		}
		many[i] = p99Over(drawn)
	}
	return at, wire.Quantile(many, .025), wire.Quantile(many, .975)
}

func p99Over(all []parts) float64 {
	var with, without []time.Duration
	for i := range all {
		with = append(with, all[i][1]...)
		without = slices.Concat(without, all[i][0], all[i][2])
	}
	return ratio(wire.Quantile(with, .99), wire.Quantile(without, .99))
}

// tenPercent puts into words what a ratio and its interval say of a target of 1.1.
func tenPercent(at, low, high float64) string {
	switch {
	case high <= 1.1:
		return "within 10 %"
	case low > 1.1:
		return "not within 10 %"
	case at <= 1.1:
		return "within 10 %, but too few rounds to be sure"
	}
	return "over 10 %, but too few rounds to be sure"
}
