// Package commands has the commands of warmpath that run the lab: lab, sim and replay.
package commands

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/lab"
	figures "github.com/warmpath/warmpath/daemon/lab/report"
	"github.com/warmpath/warmpath/daemon/lab/setup"
)

// labFlags holds the flags of a comparison.
type labFlags struct {
	strategies []string
	allow      []string
	seeds      string
	workers    int
	requests   int
	trace      string
	price      float64
	jobs       int
	asJSON     bool
	html       string
	list       bool
}

// All returns the commands. wrong makes an error about the command line, before which nothing was done.
func All(wrong func(error) error) []*cobra.Command {
	return []*cobra.Command{simCommand(), replayCommand(), labCommand(wrong)}
}

func labCommand(wrong func(error) error) *cobra.Command {
	var f labFlags
	c := &cobra.Command{
		Use:   "lab [SCENARIO | FILE.toml | TRACE]...",
		Short: "Compare strategies on a simulated fleet, in virtual time",
		Long: "Compare strategies on a simulated fleet, in virtual time. A scenario is one of those that come with\n" +
			"the lab (--list), a file like them, or a trace. A strategy is a built-in, the path of a module, or a rule\n" +
			"of others.",
		RunE: func(c *cobra.Command, args []string) error {
			if f.list {
				return f.writeList(c.OutOrStdout())
			}
			if len(args) == 0 {
				args = []string{"A"}
			}
			if err := positive(c, "workers", "requests", "jobs"); err != nil {
				return wrong(err)
			}
			return f.run(c, args)
		},
	}
	fl := c.Flags()
	fl.StringSliceVar(&f.strategies, "strategy", []string{"prefixaware", "roundrobin"},
		"what to compare: built-ins, native:NAME, paths of modules, rules of others (peers = all); "+
			"NAME@gpu without tiers, \"mine.wasm each=.02\" with options, \"tenants.wasm > prefixaware\" behind a filter")
	fl.StringSliceVar(&f.allow, "allow", nil, "what modules may use, as strategies.NAME.allow: kv,headers:x-tier")
	fl.StringVar(&f.seeds, "seeds", "1-4", "seeds of the loads, as 1-8 or 1,5,9")
	fl.IntVar(&f.workers, "workers", 0, "workers, where the scenario's number is not wanted")
	fl.IntVar(&f.requests, "requests", 0, "requests of a run, where the scenario's number is not wanted")
	fl.StringVar(&f.trace, "trace", "", "file of the trace that a scenario plays")
	fl.Float64Var(&f.price, "price", 0, "price of one GPU for an hour; 0 = as the scenario's model has it")
	fl.IntVar(&f.jobs, "jobs", lab.Processors(), "runs at a time")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	fl.StringVar(&f.html, "html", "", "write a page with charts to this file too")
	fl.BoolVar(&f.list, "list", false, "list the scenarios and the rules of others")
	c.AddCommand(labTuneCommand())
	return c
}

// positive returns an error if one of these flags was given, and is below 1.
func positive(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if n, err := c.Flags().GetInt(name); err == nil && n < 1 && c.Flags().Changed(name) {
			return fmt.Errorf("--%s %d is below 1; give 1 or more, or leave it out", name, n)
		}
	}
	return nil
}

// writeList lists the lab's scenarios and rules.
func (f *labFlags) writeList(w io.Writer) error {
	for _, name := range setup.Names() {
		sc, err := setup.Read(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%-14s %s\n", name, sc.About)
	}
	_, err := fmt.Fprintf(w, "\nrules of others: %s\n", strings.Join(lab.PeerNames(), ", "))
	return err
}

// run compares, and writes the results.
func (f *labFlags) run(c *cobra.Command, scenarios []string) error {
	config, err := f.config(scenarios)
	if err != nil {
		return err
	}
	r, err := compare(c, config)
	if err != nil {
		return err
	}
	if f.price > 0 {
		r.Price = f.price
	}
	if f.html != "" {
		if err := writeFile(f.html, r.WriteHTML); err != nil {
			return err
		}
	}
	if f.asJSON {
		return r.WriteJSON(c.OutOrStdout())
	}
	return r.WriteText(c.OutOrStdout())
}

// compare runs a comparison, with a progress bar.
func compare(c *cobra.Command, config lab.Config) (r figures.Report, err error) {
	bar := lab.NewBar(c.ErrOrStderr())
	config.Progress = bar
	runs, err := lab.Run(c.Context(), config)
	bar.Close()
	if err != nil {
		return r, err
	}
	return lab.Report(&config, runs), nil
}

// config makes the configuration of a comparison from the flags.
func (f *labFlags) config(scenarios []string) (c lab.Config, err error) {
	c.Processors = f.jobs
	for _, name := range scenarios {
		sc, err := setup.Read(name)
		if err != nil {
			return c, err
		}
		if f.workers > 0 {
			sc.Workers = f.workers
		}
		if f.requests > 0 {
			sc.Requests = f.requests
		}
		if f.trace != "" && sc.Trace.File != "" {
			sc.Trace.File = f.trace
		}
		if slices.ContainsFunc(c.Scenarios, func(has *setup.Scenario) bool { return has.Name == sc.Name }) {
			sc.Name = name // mine.toml of two folders, or A.toml beside A: each has its table
		}
		c.Scenarios = append(c.Scenarios, sc)
	}
	for _, name := range f.strategies {
		found, err := lab.Find(name)
		if err != nil {
			return c, err
		}
		for i := range found {
			found[i].Allow(f.allow)
		}
		c.Strategies = append(c.Strategies, found...)
	}
	c.Seeds, err = readSeeds(f.seeds)
	return c, err
}

// maxSeeds bounds the seeds of a comparison.
const maxSeeds = 1000

// readSeeds parses 1-8 or 1,5,9.
func readSeeds(text string) (seeds []uint64, err error) {
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		lo, err1 := strconv.ParseUint(strings.TrimSpace(from), 10, 32)
		hi := lo
		var err2 error
		if isRange {
			hi, err2 = strconv.ParseUint(strings.TrimSpace(to), 10, 32)
		}
		if err1 != nil || err2 != nil || hi < lo || hi-lo >= maxSeeds || len(seeds) > maxSeeds {
			return nil, fmt.Errorf("lab: seeds %q cannot be read; write 1-8 or 1,5,9, up to %d of them", text, maxSeeds)
		}
		for s := lo; s <= hi; s++ {
			seeds = append(seeds, s)
		}
	}
	return seeds, nil
}

// writeFile creates a file and lets write fill it.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
