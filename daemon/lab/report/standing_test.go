package report

import (
	"math"
	"testing"
)

func TestStandings(t *testing.T) {
	r := sample()
	r.Runs = append(r.Runs, Run{Scenario: "light", Strategy: "cold beta=2", Seed: 1, Figures: Figures{TTFTMean: .1, TTFTP90: .1}},
		Run{Scenario: "light", Strategy: "idle", Seed: 1})
	all := Standings(&r)
	order := make([]string, len(all))
	for i, s := range all {
		order[i] = s.Strategy
	}
	if order[0] != "cold" || order[len(order)-1] != "idle" || !math.IsInf(all[len(all)-1].Geometric, 1) {
		t.Errorf("the order is %v, the last %+v", order, all[len(all)-1])
	}
	r = sample()
	r.Runs = r.Runs[:len(r.Runs)-1]
	for _, s := range Standings(&r) {
		want := map[string]float64{"cold": 1, "warm": math.Sqrt(2.04 * 2.2), "session": math.Sqrt(2 * 3), "round robin": math.Sqrt(4 * 2)}
		if !near(s.Geometric, want[s.Strategy]) || s.Cells != 4 {
			t.Errorf("%+v; want a geometric mean of %v in 4 cells", s, want[s.Strategy])
		}
	}
}

func TestWinners(t *testing.T) {
	got := Winners([]Standing{{Strategy: "a x=2"}, {Strategy: "b"}, {Strategy: "a x=1"}, {Strategy: "c y=1"}, {Strategy: "c y=2"}})
	if len(got) != 3 || got[0].Strategy != "a x=2" || got[1].Strategy != "b" || got[2].Strategy != "c y=1" {
		t.Errorf("winners %v", got)
	}
}
