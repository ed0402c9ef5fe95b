package report

import (
	"cmp"
	"math"
	"slices"
)

// Within is how much slower than the best peer a strategy may be to count as equal to it.
const Within = 1.05

// Report is the runs of one command, and what a reader must know of them.
type Report struct {
	Title      string
	Conditions []string // workers, engines, workloads, seeds: a line each
	Price      float64  // of a GPU hour, in units of the reader's own
	Runs       []Run
}

// Cell compares the strategies with the best peer, in one scenario by one figure.
type Cell struct {
	Scenario string             `json:"scenario"`
	Figure   string             `json:"figure"`
	Seeds    int                `json:"seeds"` // that all strategies have
	BestPeer string             `json:"best_peer"`
	Best     Estimate           `json:"best"`
	Ratios   map[string]Ratioed `json:"ratios"` // of the strategies that are no peers
}

// Ratioed is how a strategy stands to the best peer.
type Ratioed struct {
	Estimate
	Within bool `json:"within"` // at most 5 % worse
	Sure   bool `json:"sure"`   // the whole interval lies on that side
}

// Tally sums up a strategy over all cells.
type Tally struct {
	Strategy  string  `json:"strategy"`
	Within    int     `json:"within"` // cells within 5 % of the best peer
	Cells     int     `json:"cells"`
	Geometric float64 `json:"geometric_mean"` // of the ratios
	Worst     float64 `json:"worst"`
	WorstCell string  `json:"worst_cell"`
}

// Scenarios returns the scenarios in the order of their first run.
func (r *Report) Scenarios() []string {
	return distinct(r.Runs, func(u *Run) (string, bool) { return u.Scenario, true })
}

// strategies returns those that ran in a scenario, "" for any, in the order of their first run.
func (r *Report) strategies(scenario string) []string {
	return distinct(r.Runs, func(u *Run) (string, bool) { return u.Strategy, scenario == "" || u.Scenario == scenario })
}

func distinct(runs []Run, name func(*Run) (string, bool)) (names []string) {
	seen := make(map[string]bool)
	for i := range runs {
		if s, ok := name(&runs[i]); ok && !seen[s] {
			seen[s] = true
			names = append(names, s)
		}
	}
	return names
}

// isPeer reports whether a strategy is a baseline.
func (r *Report) isPeer(strategy string) bool {
	i := slices.IndexFunc(r.Runs, func(u Run) bool { return u.Strategy == strategy })
	return i >= 0 && r.Runs[i].Peer
}

// split returns the strategies of a scenario that are peers and those that are not.
func (r *Report) split(scenario string) (peers, ours []string) {
	for _, s := range r.strategies(scenario) {
		if r.isPeer(s) {
			peers = append(peers, s)
		} else {
			ours = append(ours, s)
		}
	}
	return peers, ours
}

// values returns a figure of each seed that a strategy ran in a scenario.
func (r *Report) values(scenario, strategy string, f *figure) map[uint64]float64 {
	v := make(map[uint64]float64)
	for i := range r.Runs {
		if u := &r.Runs[i]; u.Scenario == scenario && u.Strategy == strategy {
			v[u.Seed] = f.value(&u.Figures, r.Price)
		}
	}
	return v
}

// estimate returns the mean of a figure over all seeds of a strategy in a scenario.
func (r *Report) estimate(scenario, strategy string, f *figure) Estimate {
	by := r.values(scenario, strategy, f)
	return Mean(pick(by, seedsOf(by)))
}

func seedsOf(by map[uint64]float64) []uint64 {
	seeds := make([]uint64, 0, len(by))
	for s := range by {
		seeds = append(seeds, s)
	}
	slices.Sort(seeds)
	return seeds
}

func pick(by map[uint64]float64, seeds []uint64) []float64 {
	v := make([]float64, len(seeds))
	for i, s := range seeds {
		v[i] = by[s]
	}
	return v
}

// Cells compares all that are no peers with the best peer: a cell for the mean and one for the P90 of TTFT in each
// scenario that has both kinds. Only seeds that every strategy of the scenario ran are compared.
func (r *Report) Cells() (cells []Cell) {
	for _, scenario := range r.Scenarios() {
		peers, ours := r.split(scenario)
		if len(peers) == 0 || len(ours) == 0 {
			continue
		}
		for _, key := range []string{ttftMean, ttftP90} {
			if c, ok := r.cell(scenario, figureByKey(key), peers, ours); ok {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

func (r *Report) cell(scenario string, f *figure, peers, ours []string) (Cell, bool) {
	by := make(map[string]map[uint64]float64)
	for _, s := range slices.Concat(peers, ours) {
		by[s] = r.values(scenario, s, f)
	}
	seeds := slices.DeleteFunc(seedsOf(by[ours[0]]), func(seed uint64) bool {
		for _, v := range by {
			if _, ok := v[seed]; !ok {
				return true
			}
		}
		return false
	})
	if len(seeds) == 0 {
		return Cell{}, false
	}
	best := slices.MinFunc(peers, func(a, b string) int {
		return cmp.Compare(Mean(pick(by[a], seeds)).Value, Mean(pick(by[b], seeds)).Value)
	})
	if Mean(pick(by[best], seeds)).Value <= 0 { // nothing was served: no ratio means anything
		return Cell{}, false
	}
	c := Cell{Scenario: scenario, Figure: f.Key, Seeds: len(seeds), BestPeer: best, Best: Mean(pick(by[best], seeds)),
		Ratios: make(map[string]Ratioed)}
	for _, s := range ours {
		e := Ratio(pick(by[s], seeds), pick(by[best], seeds))
		c.Ratios[s] = Ratioed{Estimate: e, Within: e.Value <= Within, Sure: math.Abs(e.Value-Within) > e.Error}
	}
	return c, true
}

// names returns the strategies that the cells compare, in the order of their first run.
func (r *Report) names(cells []Cell) (names []string) {
	for _, s := range r.strategies("") {
		for i := range cells {
			if _, ok := cells[i].Ratios[s]; ok {
				names = append(names, s)
				break
			}
		}
	}
	return names
}

// Tallies sums up each strategy that is no peer over the cells.
func Tallies(cells []Cell) (tallies []Tally) {
	ratios := make(map[string][]float64)
	at := make(map[string]int)
	for i := range cells {
		c := &cells[i]
		for s, ratio := range c.Ratios {
			if _, ok := at[s]; !ok {
				at[s] = len(tallies)
				tallies = append(tallies, Tally{Strategy: s})
			}
			t := &tallies[at[s]]
			t.Cells++
			if ratio.Within {
				t.Within++
			}
			if ratio.Value > t.Worst {
				t.Worst, t.WorstCell = ratio.Value, c.Scenario+" "+short(c.Figure)
			}
			ratios[s] = append(ratios[s], ratio.Value)
		}
	}
	for i := range tallies {
		tallies[i].Geometric = geometric(ratios[tallies[i].Strategy])
	}
	slices.SortFunc(tallies, func(a, b Tally) int { return cmp.Compare(a.Strategy, b.Strategy) })
	return tallies
}

// short names the figure of a cell.
func short(key string) string {
	if key == ttftMean {
		return "mean"
	}
	return "p90"
}
