package lab

import (
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab/report"
	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// Report returns what runs of a comparison measured, at the price of the first scenario's GPUs.
func Report(c *Config, runs []*trial.Run) report.Report {
	var names []string
	for _, sc := range c.Scenarios {
		names = append(names, sc.Name)
	}
	r := report.Report{Title: "warmpath lab: " + strings.Join(names, ", "), Price: c.Scenarios[0].Engine.Hourly,
		Conditions: conditions(c)}
	peer := map[string]bool{}
	for i := range c.Strategies {
		peer[c.Strategies[i].Name] = c.Strategies[i].Peer
	}
	for _, run := range runs {
		r.Runs = append(r.Runs, report.FromTrial(run, peer[run.Strategy]))
	}
	r.Conditions = append(r.Conditions, fallbacks(runs)...)
	return r
}

// fallbacks returns a line for each strategy in whose place the host chose: its figures are those of the host's rule.
func fallbacks(runs []*trial.Run) (lines []string) {
	type row struct{ scenario, strategy string }
	chosen, requests := map[row]int{}, map[row]int{}
	var rows []row
	for _, run := range runs {
		at := row{run.Scenario, run.Strategy}
		if _, known := chosen[at]; !known {
			rows = append(rows, at)
		}
		chosen[at] += run.Fallbacks
		requests[at] += len(run.Outcomes)
	}
	for _, at := range rows {
		if n := chosen[at]; n > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s failed or declined, and the host chose in its place, on %d of %d "+
				"requests; warmpath plugin check says why", at.scenario, at.strategy, n, requests[at]))
		}
	}
	return lines
}

// conditions returns lines that describe what a comparison ran on, for whoever reads its figures.
func conditions(c *Config) (lines []string) {
	for _, sc := range c.Scenarios {
		e := sc.Engine.Config()
		line := fmt.Sprintf("%s: %s; %d workers", sc.Name, sc.About, sc.Workers)
		if full, err := e.Complete(); err == nil {
			line += fmt.Sprintf(" of %g GPUs, %d tokens of KV each", max(1, sc.Engine.GPUs), full.KVTokens)
		}
		if sc.Engine.CPUTokens > 0 {
			line += fmt.Sprintf(", %d in CPU memory", sc.Engine.CPUTokens)
		}
		if sc.Engine.SharedTokens > 0 {
			line += fmt.Sprintf(", %d shared", sc.Engine.SharedTokens)
		}
		lines = append(lines, line)
	}
	return append(lines, fmt.Sprintf("seeds: %v", c.Seeds))
}
