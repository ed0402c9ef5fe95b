package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// growth is a size of the daemon's surroundings: CPU a request of 1 KB is measured in each.
type growth struct {
	workers, pools, conns int
	limit                 float64 // of the CPU of a request, over that of the first; 0 = none
}

// growths differ from the first in one number each. 9,000 connections are what a limit of 20,000 files lets through.
var growths = []growth{
	{workers: 4, pools: 1, conns: 32},
	{workers: 64, pools: 1, conns: 32, limit: 1.1},
	{workers: 256, pools: 1, conns: 32, limit: 1.2},
	{workers: 1000, pools: 1, conns: 32, limit: 1.4},
	{workers: 10_000, pools: 1, conns: 32, limit: 2},
	{workers: 4, pools: 16, conns: 32},
	{workers: 4, pools: 1, conns: 10},
	{workers: 4, pools: 1, conns: 1000},
	{workers: 4, pools: 1, conns: 9000},
}

// printGrowth measures how the daemon's cost grows with workers, pools and connections, and prints a figure each: all
// of them, or a part. What needs more than this machine, or another tool, is a figure that is missing.
func (b *bench) printGrowth(part string) error {
	workers, err := plainWorkers(10_000)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		part    string
		measure func([]string) error
	}{{"requests", b.growRequests}, {"strategies", b.growStrategies}, {"idle", b.growIdle}, {"shared", b.growShared},
		{"pools", b.growPools}, {"metrics", b.growMetrics}} {
		if part != "" && part != m.part {
			continue
		}
		if err := m.measure(workers); err != nil {
			return err
		}
	}
	if part != "" {
		return nil
	}
	for _, name := range []string{
		"another pool, 16 cores", // this machine has two
		"CPU over 4c87583: -run cpu -beside",
		"agents without names: make labcells",
		"four routers over one, held-out conversation trace: make labcells",
	} {
		if err := printFigure("growth/"+name, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// printFigure prints the median of what was measured; a limit of 0 is none.
func printFigure(name, unit string, limit float64, samples ...float64) error {
	f := figure{Name: name, Unit: unit}
	if limit > 0 {
		f.Target = &limit
	}
	f.judge(samples, true)
	return json.NewEncoder(os.Stdout).Encode(f)
}

// growRequests measures the CPU of a request at each size, and over that of the first, alone and over nginx's growth.
func (b *bench) growRequests(workers []string) error {
	first, nginx := 0., 0.
	for _, g := range growths {
		r := g.router(workers)
		r.Pool += seldomAsked // probes do not count: see growIdle
		name := fmt.Sprintf("growth/%d workers, %d pools, %d connections", g.workers, g.pools, g.conns)
		v, err := b.growOne(name, "warmpath", r, g)
		if err != nil {
			return err
		}
		base := 0.
		if g.workers <= 1000 && g.limit > 0 || first == 0 {
			base, err = b.growNginx(name, g, workers)
			if err != nil {
				return err
			}
		}
		if first == 0 {
			first, nginx = v, base
		}
		if g.limit == 0 {
			continue
		}
		err = printFigure(name+" over 4 workers", "ratio", g.limit, v/first)
		if base > 0 {
			err = errors.Join(err, printFigure(name+" over 4 workers, nginx", "ratio", 0, base/nginx),
				printFigure(name+" over 4 workers, over nginx's", "ratio", g.limit, v/first/(base/nginx)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// growOne measures the CPU of a request of a build, and prints it.
func (b *bench) growOne(name, build string, r rig.Router, g growth) (float64, error) {
	p, err := r.Start(b.dir, b.bin[build])
	if err != nil {
		return 0, err
	}
	settle(p)
	err = b.grown(p, name, g)
	p.Stop()
	if err != nil {
		return 0, fmt.Errorf("%s: %w; its log ends %q", name, err, p.Log(300))
	}
	samples := b.samples[[2]string{name, p.Name}]
	return median(samples), printFigure(name, "us/request", 0, samples...)
}

// growStrategies measures the built-in strategies with many workers over few, with -beside those of the other build
// too.
func (b *bench) growStrategies(workers []string) error {
	for _, strategy := range []string{"prefixaware", "session", "roundrobin"} {
		for _, build := range []string{"beside", "warmpath"} {
			if build == "beside" && !b.compare {
				continue
			}
			var v [2]float64
			for i, n := range []int{4, 1000} {
				g := growth{workers: n, pools: 1, conns: 32}
				r := g.router(workers)
				r.Pool += seldomAsked + fmt.Sprintf("\nstrategy = %q", strategy)
				var err error
				v[i], err = b.growOne(fmt.Sprintf("growth/%s, %s, %d workers", strategy, build, n), build, r, g)
				if err != nil {
					return err
				}
			}
			name := fmt.Sprintf("growth/%s, %s, 1000 workers over 4", strategy, build)
			if err := printFigure(name, "ratio", 1.4, v[1]/v[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

func median(samples []float64) float64 { return slices.Sorted(slices.Values(samples))[len(samples)/2] }

// growNginx measures nginx in front of as many workers. It keeps nothing of a worker but connections: what a request
// costs more there, more sockets cost on this machine.
func (b *bench) growNginx(name string, g growth, workers []string) (float64, error) {
	var addrs []string
	for _, w := range workers[:g.workers] {
		addr, _, _ := strings.Cut(w, "/")
		addrs = append(addrs, addr)
	}
	p, err := rig.Nginx(b.dir, addrs...)
	if err != nil {
		return 0, err
	}
	defer p.Stop()
	if err := b.grown(p, name, g); err != nil {
		return 0, fmt.Errorf("%s: nginx: %w", name, err)
	}
	return median(b.samples[[2]string{name, p.Name}]), nil
}

// settle waits until the daemon has heard all workers, and none of them is in slow start: 12 s at least, a minute at
// most.
func settle(p *rig.Proc) {
	for began := time.Now(); time.Since(began) < time.Minute; {
		before := p.CPU()
		time.Sleep(time.Second)
		if p.CPU()-before < 50*time.Millisecond && time.Since(began) > 12*time.Second {
			return
		}
	}
}

// seldomAsked has a pool's workers not be probed while something else is measured.
const seldomAsked = "\nhealth_interval = \"5m\"\nscrape_interval = \"5m\""

// idleShare is the daemon's CPU in ms a second while nobody asks it.
func idleShare(p *rig.Proc) float64 {
	const seconds = 10
	settle(p)
	before := p.CPU()
	time.Sleep(seconds * time.Second)
	return float64((p.CPU() - before).Microseconds()) / 1e3 / seconds
}

// growIdle measures the CPU of a daemon that is not asked, which probes its workers.
func (b *bench) growIdle(workers []string) error {
	for n, limit := range map[int]float64{64: 8, 256: 15, 1000: 30} {
		p, err := growth{workers: n, pools: 1}.router(workers).Start(b.dir, b.bin["warmpath"])
		if err != nil {
			return err
		}
		v := idleShare(p)
		p.Stop()
		if err := printFigure(fmt.Sprintf("growth/idle, %d workers", n), "ms/s", limit, v); err != nil {
			return err
		}
	}
	return nil
}

// growShared measures the same of each of four daemons that share a history and so the questions.
func (b *bench) growShared(workers []string) error {
	addr := rig.FreeAddr()
	redis, err := rig.Redis(b.dir, addr)
	if err != nil {
		return err
	}
	defer redis.Stop()
	var routers []*rig.Proc
	for i := range 4 {
		r := growth{workers: 1000, pools: 1}.router(workers)
		r.Strategies += fmt.Sprintf("[history]\nredis = \"redis://%s/0\"\nname = \"r%d\"\n", addr, i)
		p, err := r.Start(b.dir, b.bin["warmpath"])
		if err != nil {
			return err
		}
		defer p.Stop()
		routers = append(routers, p)
	}
	var shares []float64
	for _, p := range routers {
		shares = append(shares, idleShare(p))
	}
	return printFigure("growth/idle of each of four sharing routers, 1000 workers", "ms/s", 12, shares...)
}

// growPools measures what a pool of one worker costs in memory, the start of 100 pools, and reloads that change
// nothing.
func (b *bench) growPools(workers []string) error {
	const many, few = 100, 20
	rss := map[int]float64{}
	for _, n := range []int{few, many} {
		r := growth{workers: 1, pools: n}.router(workers)
		began := time.Now()
		p, err := r.Start(b.dir, b.bin["warmpath"])
		if err != nil {
			return err
		}
		started := time.Since(began).Seconds()
		settle(p)
		rss[n] = float64(p.RSS()) / (1 << 20)
		if n == few {
			p.Stop()
			continue
		}
		var reloads []float64
		for range 5 {
			began = time.Now()
			out, err := exec.CommandContext(b.ctx, b.bin["warmpath"], "reload", "--admin", p.Admin).CombinedOutput()
			if err != nil {
				p.Stop()
				return fmt.Errorf("reload: %w: %s", err, out)
			}
			reloads = append(reloads, time.Since(began).Seconds())
		}
		after := float64(p.RSS()) / (1 << 20)
		p.Stop()
		if err := errors.Join(
			printFigure("growth/another pool, 2 cores", "MB", .5, (rss[many]-rss[few])/(many-few)),
			printFigure("growth/start of 100 pools", "s", 2, started),
			printFigure("growth/unchanged reload of 100 pools", "s", .3, reloads...),
			printFigure("growth/RSS after five reloads of 100 pools", "ratio", 1.1, after/rss[many])); err != nil {
			return err
		}
	}
	return nil
}

// growMetrics measures /metrics at 1,000 workers with worker_metrics = "gauges".
func (b *bench) growMetrics(workers []string) error {
	r := growth{workers: 1000, pools: 1}.router(workers)
	r.Server = "worker_metrics = \"gauges\""
	r.Pool += seldomAsked
	p, err := r.Start(b.dir, b.bin["warmpath"])
	if err != nil {
		return err
	}
	defer p.Stop()
	settle(p)
	const scrapes = 10
	series, before := 0, p.CPU()
	for range scrapes {
		answer, err := http.Get("http://" + p.Admin + "/metrics")
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
		series = 0
		for line := range strings.Lines(string(text)) {
			if line[0] != '#' {
				series++
			}
		}
	}
	used := float64((p.CPU() - before).Microseconds()) / 1e3 / scrapes
	return errors.Join(printFigure("growth/series of /metrics, 1000 workers", "series", 3000, float64(series)),
		printFigure("growth/a scrape of /metrics, 1000 workers", "ms", 20, used))
}

// grown measures five turns. The requests go over the connections in turn. Before the first turn each connection has
// been used, and twice as many requests have gone out as there are workers: the daemon opens its connections then.
func (b *bench) grown(p *rig.Proc, name string, g growth) error {
	conns := g.conns
	drivers := min(busy, conns)
	clients, next := make([][]*wire.Client, drivers), make([]func() []byte, drivers)
	request := sized(1<<10, chatPath, false)
	var all sync.WaitGroup
	errs := make([]error, drivers)
	for i := range drivers {
		next[i] = renew(request)
		for n := i; n < conns; n += drivers {
			clients[i] = append(clients[i], &wire.Client{Addr: p.Addr})
		}
		all.Go(func() {
			for n := range max(len(clients[i]), 2*g.workers/drivers) {
				errs[i] = ask(clients[i][n%len(clients[i])], next[i]())
				if errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	defer func() {
		for _, mine := range clients {
			for _, c := range mine {
				c.Close()
			}
		}
	}()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	turn := make([]int, drivers)
	for range 5 {
		v, err := b.perRequest(p, drivers, func(_ *wire.Client, i int) (int, error) {
			turn[i]++
			return 1, ask(clients[i][turn[i]%len(clients[i])], next[i]())
		})
		if err != nil {
			return err
		}
		b.note(name, p.Name, v)
	}
	return nil
}

// router is the daemon of that size. The pool that serves comes last.
func (g growth) router(workers []string) rig.Router {
	var others strings.Builder
	for i := 1; i < g.pools; i++ {
		model := fmt.Sprint("other-", i)
		if i == g.pools-1 {
			model = "sim"
		}
		fmt.Fprintf(&others, "[[pools]]\nname = \"p%d\"\nmodels = [%q]\n%s", i, model,
			rig.Tables("pools.workers", workers[i*g.workers:(i+1)*g.workers]))
	}
	first := "sim"
	if g.pools > 1 {
		first = "other-0"
	}
	return rig.Router{Pool: fmt.Sprintf("models = [%q]", first), Workers: workers[:g.workers],
		Strategies: others.String()}
}

// apart is how many workers have a port of their own. Further ones share them, each under a path: 10,000 ports would
// take all files that this process may open.
const apart = 256

// plainWorkers starts n workers in this process, whose CPU is not measured, and returns their addresses.
func plainWorkers(n int) (addrs []string, err error) {
	for i := range n {
		if i >= apart {
			addrs = append(addrs, fmt.Sprintf("%s/w%d", addrs[i%apart], i))
			continue
		}
		addr := rig.FreeAddr()
		w := wire.Worker{Handle: func(c *wire.Call) bool {
			if rest, is := strings.CutPrefix(c.Path, "/w"); is {
				_, c.Path, _ = strings.Cut(rest, "/")
				c.Path = "/" + c.Path
			}
			return c.Answer()
		}}
		if err := w.Start(addr); err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}
