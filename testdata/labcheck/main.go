package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/vllmsim"
)

//go:embed check.toml
var scenario string

// slowness is that of check.toml's engine against the default one.
const slowness = 10

// The marks.
const (
	hitPoints = .01
	ttftPart  = .10
)

// side is what one side measured, over all seeds.
type side struct {
	Hits float64 `json:"hit_rate"`
	P50  float64 `json:"ttft_p50"`
	P90  float64 `json:"ttft_p90"`
	Mean float64 `json:"ttft_mean"`
}

// sums is what clients saw of one seed's load, or of several.
type sums struct {
	ttft           []float64
	cached, prompt int
}

func (s *sums) add(o *sums) {
	s.ttft = append(s.ttft, o.ttft...)
	s.cached += o.cached
	s.prompt += o.prompt
}

func (s *sums) side() side {
	return side{Hits: float64(s.cached) / float64(max(1, s.prompt)), P50: trial.Quantile(s.ttft, .5),
		P90: trial.Quantile(s.ttft, .9), Mean: trial.Mean(s.ttft)}
}

func main() {
	strategies := flag.String("strategies", "prefixaware,roundrobin", "built-ins, with a comma between")
	first := flag.Uint64("seed", 1, "of the first load")
	n := flag.Uint64("seeds", 4, "loads, each of a seed of its own, at the same time on a daemon of its own")
	tiers := flag.String("tiers", "", "instead, what the tier's rows are worth in these scenarios, as G,L")
	trace := flag.String("trace", "", "of -tiers: the file of a scenario that plays a trace")
	speed := flag.Float64("speed", 4, "of -tiers: simulated seconds in a second")
	seconds := flag.Int("for", 600, "of -tiers: simulated seconds in which requests begin")
	flag.Parse()
	if *tiers != "" {
		for _, name := range strings.Split(*tiers, ",") {
			t := tierTest{scenario: name, trace: *trace, speed: *speed, seed: *first,
				until: time.Duration(*seconds) * time.Second}
			ok, err := t.run(context.Background())
			if err != nil || !ok {
				fmt.Fprintln(os.Stderr, "labcheck:", name, err)
				defer os.Exit(1)
			}
		}
		return
	}
	var seeds []uint64
	for k := range *n {
		seeds = append(seeds, *first+k)
	}
	bad := false
	for _, name := range strings.Split(*strategies, ",") {
		ok, err := compare(context.Background(), name, seeds)
		if err != nil {
			fmt.Fprintln(os.Stderr, "labcheck:", err)
			os.Exit(1)
		}
		bad = bad || !ok
	}
	if bad {
		os.Exit(1)
	}
}

// read reads the scenario.
func read() (*setup.Scenario, error) {
	dir, err := os.MkdirTemp("", "labcheck")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "check.toml")
	if err := os.WriteFile(path, []byte(scenario), 0o600); err != nil {
		return nil, err
	}
	return setup.Read(path)
}

// compare measures one strategy on both sides and reports whether they agree.
func compare(ctx context.Context, strategy string, seeds []uint64) (bool, error) {
	sc, err := read()
	if err != nil {
		return false, err
	}
	found, err := lab.Find(strategy)
	if err != nil {
		return false, err
	}
	runs, err := lab.Run(ctx, lab.Config{Scenarios: []*setup.Scenario{sc}, Strategies: found, Seeds: seeds})
	if err != nil {
		return false, err
	}
	var inLab, byHTTP sums
	for _, r := range runs {
		inLab.ttft = append(inLab.ttft, r.Values((*trial.Outcome).TTFT)...)
		for i := range r.Outcomes {
			inLab.cached += r.Outcomes[i].Cached
			inLab.prompt += r.Outcomes[i].Prompt
		}
	}
	parts, errs := make([]sums, len(seeds)), make([]error, len(seeds))
	var fleets sync.WaitGroup
	for i, seed := range seeds {
		fleets.Go(func() {
			load, err := sc.Load(seed)
			if err == nil {
				err = overHTTP(ctx, &parts[i], site{strategy: strategy, workers: sc.Workers, sim: vllmsim.Config{
					Models: []string{"m"}, KVTokens: sc.Engine.KVTokens, Slowness: slowness}}, load)
			}
			errs[i] = err
		})
	}
	fleets.Wait()
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	for i := range parts {
		byHTTP.add(&parts[i])
	}
	virtual, real := inLab.side(), byHTTP.side()
	ok := math.Abs(real.Hits-virtual.Hits) <= hitPoints && math.Abs(real.P50-virtual.P50) <= ttftPart*real.P50
	return ok, json.NewEncoder(os.Stdout).Encode(struct {
		Strategy string `json:"strategy"`
		Seeds    int    `json:"seeds"`
		Lab      side   `json:"lab"`
		Daemon   side   `json:"daemon"`
		OK       bool   `json:"ok"`
	}{Strategy: strategy, Seeds: len(seeds), Lab: virtual, Daemon: real, OK: ok})
}
