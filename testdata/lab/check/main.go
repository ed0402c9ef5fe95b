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
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// The loads that are compared, by their names.
var (
	//go:embed check.toml
	chats string
	//go:embed agents.toml
	agents string
	//go:embed gallery.toml
	kinds string
	//go:embed rolling.toml
	rolling string

	loads = map[string]string{"chats": chats, "agents": agents, "gallery": kinds, "rolling": rolling}
)

// slowness is that of check.toml's engine against the default one.
const slowness = 10

// The marks.
const (
	hitPoints = .01
	ttftPart  = .10

	agentPoints = .02 // of agents' hit rate: which of two sessions begins first is chance, and each has few turns

	galleryPoints, galleryMean = .02, .15 // of strategies that draw lots
)

// The lab's runs of one load. In real time it is chance which of two turns comes first; steps that take some ten
// thousandths longer change it in the lab.
const (
	variants = 16
	nudge    = 2e-4
)

// side is the figures of one side, over all seeds.
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
	strategies := flag.String("strategies", "prefixaware,roundrobin", "built-ins, with a comma between; all at once")
	load := flag.String("load", "chats", "chats; agents, by the strategies' order, not TTFT; or gallery: its strategies")
	first := flag.Uint64("seed", 1, "of the first load")
	n := flag.Uint64("seeds", 8, "loads, each of a seed of its own, at the same time on a daemon of its own")
	tiers := flag.String("tiers", "", "instead, what the tier's rows are worth in these scenarios, as G,L")
	trace := flag.String("trace", "", "of -tiers: the file of a scenario that plays a trace")
	speed := flag.Float64("speed", 4, "of -tiers, -adapters and -syncs: simulated seconds in a second")
	seconds := flag.Int("for", 600, "of -tiers: simulated seconds in which requests begin")
	queues := flag.String("queues", "", "instead, what each key sees in these scenarios of a queue, as flood,keys")
	adapters := flag.Bool("adapters", false, "instead, 200 LoRA adapters over 8 workers with 8 places each")
	demand := flag.Bool("demand", false, "of -adapters: the daemon loads them when they are asked for")
	modes := flag.String("syncs", "", "instead, a hundred updates of the weights by each of these modes of a pause: "+
		"still,abort,wait,keep,keep-reset")
	between := flag.Duration("between", 20*time.Second, "of -syncs: from one update to the next, in simulated time")
	flag.Parse()
	if *modes != "" {
		if err := checkSyncs(context.Background(), *modes, *between, *first, *speed); err != nil {
			fmt.Fprintln(os.Stderr, "labcheck:", err)
			os.Exit(1)
		}
		return
	}
	if *adapters {
		if err := checkAdapters(context.Background(), *demand, *speed, *first); err != nil {
			fmt.Fprintln(os.Stderr, "labcheck:", err)
			os.Exit(1)
		}
		return
	}
	if *queues != "" {
		for _, name := range strings.Split(*queues, ",") {
			t := queueTest{scenario: name, seed: *first}
			if err := t.run(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, "labcheck:", name, err)
				defer os.Exit(1)
			}
		}
		return
	}
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
	rules, err := rulesOf(context.Background(), *load, strings.Split(*strategies, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "labcheck:", err)
		os.Exit(1)
	}
	if !agree(*load, rules, *first, *n) {
		os.Exit(1)
	}
}

// agree compares the lab with the daemon, prints a line a strategy and reports whether the marks are kept.
func agree(load string, rules []rule, first, n uint64) bool {
	var seeds []uint64
	for k := range n {
		seeds = append(seeds, first+k)
	}
	found, errs := make([]finding, len(rules)), make([]error, len(rules))
	var all sync.WaitGroup
	for i := range rules {
		all.Go(func() { found[i], errs[i] = compare(context.Background(), load, &rules[i], seeds) })
	}
	all.Wait()
	err, ok := errors.Join(errs...), true
	for i := range found {
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(&found[i])
		}
		ok = ok && found[i].OK
	}
	if err == nil && load != "chats" && !sameOrder(found) {
		fmt.Fprintln(os.Stderr, "labcheck: by their mean TTFT the strategies have another order over HTTP than in the lab")
		ok = false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "labcheck:", err)
	}
	return ok && err == nil
}

// sameOrder reports whether both sides order the strategies alike by their mean TTFT. Two that are within a tenth of
// each other on either side have no order.
func sameOrder(found []finding) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= ttftPart*max(a, b) }
	for i := range found {
		for k := range i {
			a, b := &found[i], &found[k]
			if !near(a.Lab.Mean, b.Lab.Mean) && !near(a.Daemon.Mean, b.Daemon.Mean) &&
				(a.Lab.Mean < b.Lab.Mean) != (a.Daemon.Mean < b.Daemon.Mean) {
				return false
			}
		}
	}
	return true
}

// read reads the scenario of a load.
func read(load string) (*setup.Scenario, error) {
	text, known := loads[load]
	if !known {
		return nil, fmt.Errorf("there is no load %q; give chats, agents or gallery", load)
	}
	dir, err := os.MkdirTemp("", "labcheck")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "check.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return setup.Read(path)
}

// finding is what is known of one strategy.
type finding struct {
	Strategy string `json:"strategy"`
	Seeds    int    `json:"seeds"`
	Lab      side   `json:"lab"`
	Chance   side   `json:"chance"` // standard deviation of the lab's figures, from one run of all seeds to the next
	Daemon   side   `json:"daemon"`
	OK       bool   `json:"ok"`
}

// compare measures one strategy on both sides and reports whether they agree.
func compare(ctx context.Context, load string, r *rule, seeds []uint64) (finding, error) {
	f := finding{Strategy: r.name, Seeds: len(seeds)}
	sc, err := read(load)
	if err != nil {
		return f, err
	}
	f.Lab, f.Chance, err = inLab(ctx, r, sc, seeds)
	if err != nil {
		return f, err
	}
	parts, errs := make([]sums, len(seeds)), make([]error, len(seeds))
	var fleets sync.WaitGroup
	for i, seed := range seeds {
		fleets.Go(func() {
			load, err := sc.Load(seed)
			if err == nil {
				err = overHTTP(ctx, &parts[i], site{rule: r, workers: sc.Workers, each: workerLines(sc), sim: vllmsim.Config{
					Models: []string{"m"}, KVTokens: sc.Engine.KVTokens, Slowness: slowness}}, load)
			}
			errs[i] = err
		})
	}
	fleets.Wait()
	if err := errors.Join(errs...); err != nil {
		return f, err
	}
	var byHTTP sums
	for i := range parts {
		byHTTP.add(&parts[i])
	}
	f.Daemon = byHTTP.side()
	switch load {
	case "agents":
		f.OK = math.Abs(f.Daemon.Hits-f.Lab.Hits) <= agentPoints
		return f, nil
	case "gallery":
		f.OK = math.Abs(f.Daemon.Hits-f.Lab.Hits) <= galleryPoints &&
			math.Abs(f.Daemon.Mean-f.Lab.Mean) <= galleryMean*f.Daemon.Mean
		return f, nil
	}
	f.OK = math.Abs(f.Daemon.Hits-f.Lab.Hits) <= hitPoints &&
		math.Abs(f.Daemon.P50-f.Lab.P50) <= ttftPart*f.Daemon.P50
	return f, nil
}

// inLab runs all seeds several times, each time with steps that take a little longer, and returns the figures of all
// these runs together and how far those of one are from those of another.
func inLab(ctx context.Context, r *rule, sc *setup.Scenario, seeds []uint64) (all, chance side, err error) {
	found, err := r.find()
	if err != nil {
		return all, chance, err
	}
	var sum sums
	var each []side
	for k := range variants {
		varied := *sc
		varied.Engine.Step *= 1 + float64(k)*nudge
		runs, err := lab.Run(ctx, lab.Config{Scenarios: []*setup.Scenario{&varied}, Strategies: found, Seeds: seeds})
		if err != nil {
			return all, chance, err
		}
		var one sums
		for _, r := range runs {
			one.ttft = append(one.ttft, r.Values((*trial.Outcome).TTFT)...)
			for i := range r.Outcomes {
				one.cached += r.Outcomes[i].Cached
				one.prompt += r.Outcomes[i].Prompt
			}
		}
		sum.add(&one)
		each = append(each, one.side())
	}
	of := func(figure func(*side) float64) float64 {
		sum, squares := 0., 0.
		for i := range each {
			v := figure(&each[i])
			sum, squares = sum+v, squares+v*v
		}
		n := float64(len(each))
		return math.Sqrt(max(0, squares/n-sum/n*sum/n) * n / (n - 1))
	}
	chance = side{Hits: of(func(s *side) float64 { return s.Hits }), P50: of(func(s *side) float64 { return s.P50 }),
		P90: of(func(s *side) float64 { return s.P90 }), Mean: of(func(s *side) float64 { return s.Mean })}
	return sum.side(), chance, nil
}
