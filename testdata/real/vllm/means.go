package main

import (
	"errors"
	"fmt"
	"math"
)

// result is what the strategies reached in one situation, by seed.
type result [][]sum

// estimate is the mean of some figures, and how far the true one may be from it: 95 times in 100 it is nearer.
type estimate struct{ mean, within float64 }

// students are the factors of that interval, by one less than the number of figures.
var students = [...]float64{0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26}

func estimateOf(figures []float64) (e estimate) {
	n := float64(len(figures))
	for _, f := range figures {
		e.mean += f / n
	}
	if len(figures) < 2 {
		return e
	}
	square := 0.
	for _, f := range figures {
		square += (f - e.mean) * (f - e.mean)
	}
	factor := 2.
	if len(figures) <= len(students) {
		factor = students[len(figures)-1]
	}
	e.within = factor * math.Sqrt(square/(n-1)/n)
	return e
}

func (e estimate) String() string { return fmt.Sprintf("%.1f ± %.1f", e.mean, e.within) }

// rates are the hit rates of one strategy, percent.
func (r result) rates(strategy int) (all []float64) {
	for _, sums := range r {
		all = append(all, 100*sums[strategy].hitRate())
	}
	return all
}

// gains are what the last strategy has more than the first, in points, seed by seed.
func (r result) gains() (all []float64) {
	last := len(r[0]) - 1
	for _, sums := range r {
		all = append(all, 100*(sums[last].hitRate()-sums[0].hitRate()))
	}
	return all
}

// conclude prints the means of several seeds, and returns an error for each situation in which a strategy that follows
// events must find more than the first, and in the mean does not.
func conclude(strategies []string, results []result) (lost error) {
	last := len(strategies) - 1
	if len(results[0]) > 1 {
		head, line := "| 100 x tokens cached / tokens of the prompts, mean of seeds |", "|---|"
		for _, s := range strategies {
			head, line = head+" "+s+" |", line+"---|"
		}
		fmt.Printf("\n%s gain, points |\n%s---|\n", head, line)
	}
	for i, r := range results {
		gain := estimateOf(r.gains())
		if len(r) > 1 {
			row := "| " + situations[i].name + " |"
			for s := range strategies {
				row += fmt.Sprintf(" %.1f |", estimateOf(r.rates(s)).mean)
			}
			fmt.Printf("%s %+.1f ± %.1f |\n", row, gain.mean, gain.within)
		}
		if situations[i].wins && last > 0 && follows(strategies[last]) && gain.mean <= 0 {
			lost = errors.Join(lost, fmt.Errorf("%s: %s finds no more than %s", situations[i].name, strategies[last],
				strategies[0]))
		}
	}
	return lost
}
