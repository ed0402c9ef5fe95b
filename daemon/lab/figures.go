package lab

import (
	"fmt"
	"maps"
	"slices"
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
	r.Conditions = append(r.Conditions, remarks(runs)...)
	return r
}

// remarks returns lines on each strategy in whose place the host chose, whose figures are those of the host's rule,
// that turned requests away, or that asked for what it may not have.
func remarks(runs []*trial.Run) (lines []string) {
	type row struct{ scenario, strategy string }
	said, requests := map[row]*trial.Remarks{}, map[row]int{}
	pieces, computed := map[row]int{}, map[row]int64{}
	var rows []row
	for _, run := range runs {
		at := row{run.Scenario, run.Strategy}
		if said[at] == nil {
			rows = append(rows, at)
			said[at] = &trial.Remarks{}
		}
		said[at].Add(run.Remarks)
		requests[at] += len(run.Outcomes)
		pieces[at] += run.Moves
		computed[at] += run.MoveTokens
	}
	for _, at := range rows {
		of, who := said[at], at.scenario+": "+at.strategy
		if of.Fallbacks > 0 {
			lines = append(lines, fmt.Sprintf("%s failed or declined, and the host chose in its place, on %d of %d requests; "+
				"warmpath plugin check says why", who, of.Fallbacks, requests[at]))
		}
		if of.Rejected > 0 {
			lines = append(lines, fmt.Sprintf("%s turned %d of %d requests away, the last with: %s", who, of.Rejected,
				requests[at], of.Rejection))
		}
		if m := &of.Left; m.Moved+m.Failed > 0 {
			lines = append(lines, fmt.Sprintf("%s moved %d conversations of %d tokens, and %d moves failed; workers computed "+
				"%d tokens for that in %d requests; the next turns of %d found their %d tokens where they had been moved", who,
				m.Moved, m.TokensMoved, m.Failed, computed[at], pieces[at], m.Used, m.TokensUsed))
		}
		for _, entry := range slices.Sorted(maps.Keys(of.Refused)) {
			lines = append(lines, fmt.Sprintf("%s asked for %q %d times and may not: --allow %s", who, entry,
				of.Refused[entry], entry))
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
