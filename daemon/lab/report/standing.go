package report

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Standing is how a strategy did over all scenarios, by mean and P90 of TTFT.
type Standing struct {
	Strategy  string  `json:"strategy"`
	Geometric float64 `json:"geometric_mean"` // of its figures over the smallest of any strategy
	Worst     float64 `json:"worst"`
	WorstCell string  `json:"worst_cell"`
	Cells     int     `json:"cells"`
}

// Standings compares every strategy with the best of all in each cell, the best first. A strategy that served nothing
// in a cell counts as infinitely slow there. Seeds are not matched: run all strategies with the same ones.
func Standings(r *Report) []Standing {
	by := make(map[string]*Standing)
	ratios := make(map[string][]float64)
	for _, scenario := range r.Scenarios() {
		for _, key := range []string{ttftMean, ttftP90} {
			best, values := math.Inf(1), make(map[string]float64)
			for _, s := range r.strategies(scenario) {
				if v := r.estimate(scenario, s, figureByKey(key)).Value; v > 0 {
					values[s], best = v, min(best, v)
				} else {
					values[s] = math.Inf(1)
				}
			}
			for s, v := range values {
				if by[s] == nil {
					by[s] = &Standing{Strategy: s}
				}
				by[s].add(v/best, scenario+" "+short(key))
				ratios[s] = append(ratios[s], v/best)
			}
		}
	}
	var all []Standing
	for _, s := range r.strategies("") {
		by[s].Geometric = geometric(ratios[s])
		all = append(all, *by[s])
	}
	slices.SortStableFunc(all, func(a, b Standing) int {
		if c := cmp.Compare(b.Cells, a.Cells); c != 0 {
			return c // who ran less was not compared as often
		}
		return cmp.Compare(a.Geometric, b.Geometric)
	})
	return all
}

func (s *Standing) add(ratio float64, cell string) {
	s.Cells++
	if ratio > s.Worst {
		s.Worst, s.WorstCell = ratio, cell
	}
}

// Winners returns the first standing of each rule. The rule is the name up to the first space, its constants follow.
func Winners(standings []Standing) (winners []Standing) {
	seen := make(map[string]bool)
	for _, s := range standings {
		rule, _, _ := strings.Cut(s.Strategy, " ")
		if !seen[rule] {
			seen[rule] = true
			winners = append(winners, s)
		}
	}
	return winners
}
