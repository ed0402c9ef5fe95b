package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
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

// side is what one side measured.
type side struct {
	Hits float64 `json:"hit_rate"`
	P50  float64 `json:"ttft_p50"`
	P90  float64 `json:"ttft_p90"`
	Mean float64 `json:"ttft_mean"`
}

func sideOf(hits float64, ttft []float64) side {
	return side{Hits: hits, P50: trial.Quantile(ttft, .5), P90: trial.Quantile(ttft, .9), Mean: trial.Mean(ttft)}
}

func main() {
	strategies := flag.String("strategies", "prefixaware,roundrobin", "built-ins, with a comma between")
	seed := flag.Uint64("seed", 1, "of the load")
	flag.Parse()
	bad := false
	for _, name := range strings.Split(*strategies, ",") {
		ok, err := compare(context.Background(), name, *seed)
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
func compare(ctx context.Context, strategy string, seed uint64) (bool, error) {
	sc, err := read()
	if err != nil {
		return false, err
	}
	found, err := lab.Find(strategy)
	if err != nil {
		return false, err
	}
	runs, err := lab.Run(ctx, lab.Config{Scenarios: []*setup.Scenario{sc}, Strategies: found, Seeds: []uint64{seed}})
	if err != nil {
		return false, err
	}
	virtual := sideOf(runs[0].HitRate(), runs[0].Values((*trial.Outcome).TTFT))
	load, err := sc.Load(seed)
	if err != nil {
		return false, err
	}
	real, err := overHTTP(ctx, strategy, sc, load)
	if err != nil {
		return false, err
	}
	ok := math.Abs(real.Hits-virtual.Hits) <= hitPoints && math.Abs(real.P50-virtual.P50) <= ttftPart*real.P50
	return ok, json.NewEncoder(os.Stdout).Encode(struct {
		Strategy string `json:"strategy"`
		Lab      side   `json:"lab"`
		Daemon   side   `json:"daemon"`
		OK       bool   `json:"ok"`
	}{Strategy: strategy, Lab: virtual, Daemon: real, OK: ok})
}
