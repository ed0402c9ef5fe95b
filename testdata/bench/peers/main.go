package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/replay"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/testdata/rig"
)

type options struct {
	bin      string
	beside   string
	workers  int
	kv       int
	speed    float64
	requests int
	trace    string
	limit    int
	spread   time.Duration
	fault    string
	share    int
	scene    string
	only     string
	seed     uint64
	cost     bool
	routers  string
	rate     float64
	seconds  int
	profile  string
	dir      string // of configurations and logs
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/warmpath", "the router")
	flag.StringVar(&o.beside, "beside", "", "-cost: another router, which takes turns with the first: a second row")
	flag.IntVar(&o.workers, "workers", 4, "simulated workers")
	flag.IntVar(&o.kv, "kv", 128<<10, "tokens of KV of each")
	flag.Float64Var(&o.speed, "speed", 4, "seconds of the workers' time in one of ours")
	flag.IntVar(&o.requests, "requests", 600, "of each generator")
	flag.StringVar(&o.trace, "trace", "", "replay this trace instead")
	flag.DurationVar(&o.spread, "spread", 0, "as of warmpath replay")
	flag.IntVar(&o.limit, "limit", 2000, "requests of the trace")
	flag.StringVar(&o.fault, "fault", "", "kill, state, redis or none: break something in the middle of the tenants")
	flag.IntVar(&o.share, "share", 4, "routers of the scenes with several")
	flag.StringVar(&o.scene, "scene", "", "this scene alone, as \"4 that share\"")
	flag.StringVar(&o.only, "only", "", "this generator alone")
	flag.Uint64Var(&o.seed, "seed", 1, "of the generators")
	flag.BoolVar(&o.cost, "cost", false, "print what history costs, as a table")
	flag.StringVar(&o.routers, "routers", "2,3,4,16", "-cost: a row for each number of routers")
	flag.Float64Var(&o.rate, "rate", 1000, "-cost: requests a second in all")
	flag.IntVar(&o.seconds, "seconds", 12, "-cost: of requests, for those with history and for those without")
	flag.StringVar(&o.profile, "profile", "", "-cost: write a CPU profile of a router that shares into this folder")
	flag.Parse()
	rig.Main("peersbench", "", func(ctx context.Context, dir string) (bool, error) {
		o.dir = dir
		for _, bin := range []*string{&o.bin, &o.beside} {
			if path, err := filepath.Abs(*bin); err != nil {
				return false, err
			} else if *bin != "" {
				*bin = path
			}
		}
		return true, run(ctx, &o)
	})
}

// scene is the routers of one run.
type scene struct {
	name    string
	routers int
	share   bool
}

func scenes(o *options) []scene {
	return []scene{{"one router", 1, false}, {fmt.Sprint(o.share, " that share"), o.share, true},
		{fmt.Sprint(o.share, " that share nothing"), o.share, false}}
}

func run(ctx context.Context, o *options) error {
	switch {
	case o.fault != "":
		return faults(ctx, o)
	case o.cost:
		o.speed = 1000
		return costs(ctx, o)
	}
	traffics := generators(o)
	if o.trace != "" {
		traffics = []traffic{{name: "trace"}}
	}
	for _, tr := range traffics {
		if o.only != "" && tr.name != o.only {
			continue
		}
		for _, s := range scenes(o) {
			if o.scene != "" && s.name != o.scene {
				continue
			}
			if err := measure(ctx, o, s, tr); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure plays one traffic against one scene and prints the figures.
func measure(ctx context.Context, o *options, s scene, tr traffic) error {
	st, err := newStage(o, s)
	if err != nil {
		return err
	}
	defer st.close()
	if o.trace != "" {
		front, err := st.spread()
		if err != nil {
			return err
		}
		report, err := replay.Run(ctx, replay.Config{URL: front, Models: []string{"sim"}, File: o.trace, Speed: o.speed,
			Limit: o.limit, Spread: o.spread, Seed: o.seed})
		if err != nil {
			return err
		}
		r := report.Results[0]
		return tell(map[string]any{"traffic": tr.name, "scene": s.name, "requests": r.Answered, "errors": len(r.Errors),
			"mean_ttft": r.TTFT.Mean, "p90_ttft": r.TTFT.P90, "hit_rate": r.TokenHitRate, "late_max": r.LateSecondsMax})
	}
	all := play(ctx, st, tr, o.speed, nil)
	return tell(figures(all, map[string]any{"traffic": tr.name, "scene": s.name, "lag": st.lag()}))
}

func tell(figures map[string]any) error {
	figures["at"] = time.Now().Format("15:04:05")
	line, err := json.Marshal(figures)
	fmt.Println(string(line))
	return err
}

func newFleet(o *options) (vllmsim.Fleet, error) {
	return vllmsim.StartFleet("127.0.0.1:0", o.workers, vllmsim.Config{Speed: o.speed, KVTokens: o.kv, ReplyTokens: 64})
}
