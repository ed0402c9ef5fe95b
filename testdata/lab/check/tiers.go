package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// tierTest plays one scenario with tiers behind the GPU to daemons over HTTP, at the same time to each.
type tierTest struct {
	scenario, trace string
	speed           float64
	until           time.Duration
	seed            uint64
}

// The marks: as good as with the whole tier configured as one cache, and better than round robin.
const (
	asGood = 1.05
	better = 1.0
)

// tierLine is what one scenario printed.
type tierLine struct {
	Scenario   string  `json:"scenario"`
	Requests   int     `json:"requests"`
	Tiers      side    `json:"prefixaware"`           // cpu_kv_tokens and shared_kv_tokens are configured
	One        side    `json:"prefixaware_kv_tokens"` // kv_tokens is the CPU tier's size
	RoundRobin side    `json:"roundrobin"`            //
	OverOne    float64 `json:"mean_over_kv_tokens"`   // at most 1.05
	OverOneP90 float64 `json:"p90_over_kv_tokens"`    //
	Robin      float64 `json:"roundrobin_over_mean"`  // over 1
	RobinP90   float64 `json:"roundrobin_over_p90"`   //
	OK         bool    `json:"ok"`
}

// run prints the line of one scenario and reports whether its marks are kept.
func (t *tierTest) run(ctx context.Context) (bool, error) {
	sc, err := setup.Read(t.scenario)
	if err != nil {
		return false, err
	}
	if sc.Engine.CPUTokens == 0 {
		return false, errors.New("the scenario has no CPU tier")
	}
	sc.Trace.File = cmp.Or(t.trace, sc.Trace.File)
	load, err := sc.Load(t.seed)
	if err != nil {
		return false, err
	}
	worker := fmt.Sprintf("kv_tokens = %d\n", sc.Engine.CPUTokens)
	sites := []site{
		{rule: &rule{name: "prefixaware"}, worker: fmt.Sprintf("cpu_kv_tokens = %d\n", sc.Engine.CPUTokens),
			pool: fmt.Sprintf("shared_kv_tokens = %d\ncpu_kv_rate = %g\nshared_kv_rate = %g\n",
				cmp.Or(sc.Engine.SharedTokens, -1), sc.Engine.CPURate*t.speed, sc.Engine.SharedRate*t.speed)},
		{rule: &rule{name: "prefixaware"}, worker: worker},
		{rule: &rule{name: "roundrobin"}, worker: worker},
	}
	seen, errs := make([]sums, len(sites)), make([]error, len(sites))
	var all sync.WaitGroup
	for i := range sites {
		at := sites[i]
		at.workers, at.until = sc.Workers, t.until
		at.sim = vllmsim.Config{Models: []string{"m"}, KVTokens: sc.Engine.KVTokens, Speed: t.speed,
			CPUTokens: sc.Engine.CPUTokens}
		if sc.Engine.SharedTokens > 0 {
			at.sim.Shared = vllmsim.NewTier(sc.Engine.SharedTokens, at.sim)
		}
		all.Go(func() { errs[i] = overHTTP(ctx, &seen[i], at, load) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	l := tierLine{Scenario: t.scenario, Requests: len(seen[0].ttft),
		Tiers: seen[0].side(), One: seen[1].side(), RoundRobin: seen[2].side()}
	l.OverOne, l.OverOneP90 = l.Tiers.Mean/l.One.Mean, l.Tiers.P90/l.One.P90
	l.Robin, l.RobinP90 = l.RoundRobin.Mean/l.Tiers.Mean, l.RoundRobin.P90/l.Tiers.P90
	l.OK = l.OverOne <= asGood && l.OverOneP90 <= asGood && l.Robin > better && l.RobinP90 > better
	return l.OK, json.NewEncoder(os.Stdout).Encode(l)
}
