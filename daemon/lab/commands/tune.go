package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/lab"
	"github.com/warmpath/warmpath/daemon/lab/peers"
	figures "github.com/warmpath/warmpath/daemon/lab/report"
)

// labTuneCommand returns `warmpath lab tune`.
func labTuneCommand() *cobra.Command {
	f := labFlags{strategies: []string{}}
	var rules []string
	var json string
	c := &cobra.Command{
		Use:   "tune [SCENARIO | FILE.toml]...",
		Short: "Run the rules of others over their grids of constants, and print the best of each",
		Long: "Run the rules of others over their grids of constants, and print the best of each: the set with the\n" +
			"smallest geometric mean of TTFT, mean and P90, over the best of any set in each scenario. Tune on other\n" +
			"seeds than those that you compare with.",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"B", "E", "O", "T", "C", "D"}
			}
			return f.tune(c, args, rules, json)
		},
	}
	fl := c.Flags()
	fl.StringSliceVar(&rules, "rule", nil, "only these rules of others (default: all that have a grid)")
	fl.StringSliceVar(&f.strategies, "strategy", nil, "rank these strategies among them, as `warmpath lab` names them")
	fl.StringVar(&f.seeds, "seeds", "1-3", "seeds of the loads, as 1-8 or 1,5,9")
	fl.IntVar(&f.requests, "requests", 0, "requests of a run, where the scenario's number is not wanted")
	fl.IntVar(&f.jobs, "jobs", lab.Processors(), "runs at a time")
	fl.StringVar(&json, "json", "", "write every run and the comparison to this file")
	return c
}

// tune runs the grids and writes the standings.
func (f *labFlags) tune(c *cobra.Command, scenarios, rules []string, json string) error {
	grid, err := variants(rules)
	if err != nil {
		return err
	}
	f.strategies = append(grid, f.strategies...)
	config, err := f.config(scenarios)
	if err != nil {
		return err
	}
	r, err := compare(c, config)
	if err != nil {
		return err
	}
	if json != "" {
		if err := writeFile(json, r.WriteJSON); err != nil {
			return err
		}
	}
	return writeStandings(c.OutOrStdout(), &r)
}

// variants names the grids of rules; of all rules if none is named.
func variants(rules []string) (names []string, err error) {
	known := map[string]bool{}
	for _, p := range peers.All() {
		known[p.Name] = true
		for _, v := range p.Grid {
			if len(rules) == 0 || slices.Contains(rules, p.Name) {
				names = append(names, v.Name)
			}
		}
	}
	for _, r := range rules {
		if !known[r] {
			return nil, fmt.Errorf("lab: no rule %q has a grid; `warmpath lab --list` names the rules", r)
		}
	}
	return names, nil
}

// writeStandings writes a line for each set of constants, the best first, and marks the best of each rule with a star.
func writeStandings(w io.Writer, r *figures.Report) error {
	standings := figures.Standings(r)
	best := map[string]bool{}
	for _, s := range figures.Winners(standings) {
		best[s.Strategy] = true
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-50s %10s %8s  %s\n", "", "geo. mean", "worst", "in")
	for _, s := range standings {
		mark := " "
		if best[s.Strategy] {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %-48s %10.3f %8.2f  %s\n", mark, s.Strategy, s.Geometric, s.Worst, s.WorstCell)
	}
	b.WriteString("\nTTFT, mean and P90, over the smallest of any row in each scenario. *: the best set of its rule.\n")
	_, err := io.WriteString(w, b.String())
	return err
}
