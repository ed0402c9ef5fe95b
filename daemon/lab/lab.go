package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

// Config is what to compare.
type Config struct {
	Scenarios  []*setup.Scenario
	Strategies []Strategy
	Seeds      []uint64
	Processors int // runs at a time; default all

	// Progress is shown the requests that have ended in all runs, from several goroutines. It may be nil.
	Progress world.Progress
}

// job is one run.
type job struct {
	scenario *setup.Scenario
	strategy *Strategy
	seed     uint64
}

// Run runs each strategy on each scenario with each seed. The runs are in that order, scenarios first and seeds last,
// and the same however many run at a time.
func Run(ctx context.Context, c Config) ([]*trial.Run, error) {
	loader, err := served.NewLoader(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = loader.Close(context.WithoutCancel(ctx)) }()
	var jobs []job
	for _, sc := range c.Scenarios {
		for i := range c.Strategies {
			for _, seed := range c.Seeds {
				jobs = append(jobs, job{scenario: sc, strategy: &c.Strategies[i], seed: seed})
			}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := progress{to: c.Progress}
	runs, errs := make([]*trial.Run, len(jobs)), make([]error, len(jobs))
	queue := make(chan int)
	var workers sync.WaitGroup
	for range min(len(jobs), max(1, c.Processors)) {
		workers.Go(func() {
			for i := range queue {
				runs[i], errs[i] = jobs[i].run(ctx, loader, &p)
				if errs[i] != nil {
					cancel(errs[i])
				}
			}
		})
	}
	for i := range jobs {
		queue <- i
	}
	close(queue)
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return runs, errors.Join(errs...)
}

// Processors is the default of Config.Processors.
func Processors() int { return runtime.GOMAXPROCS(0) }

// run makes one run.
func (j *job) run(ctx context.Context, l *served.Loader, p *progress) (*trial.Run, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	sc := *j.scenario
	j.strategy.tier.cut(&sc.Engine)
	if j.strategy.queue {
		sc.Wait()
	}
	if j.strategy.routers > 0 {
		sc.Routers, sc.History = j.strategy.routers, j.strategy.history.Seconds()
	}
	load, err := sc.Load(j.seed)
	if err != nil {
		return nil, err
	}
	c, err := sc.World(load)
	if err != nil {
		return nil, err
	}
	c.Seed = j.seed
	c.Engine, err = c.Engine.Complete()
	if err != nil {
		return nil, err
	}
	kept, err := served.NewKept()
	if err != nil {
		return nil, err
	}
	make := func(number int) (world.Router, error) {
		return j.strategy.router(ctx, l, &sc, &c, member{number: number, kept: kept})
	}
	r, err := world.Run(ctx, c, make, p.of(load.Requests()))
	if err != nil {
		return nil, fmt.Errorf("lab: %s under %s with seed %d: %w", sc.Name, j.strategy.Name, j.seed, err)
	}
	r.Scenario, r.Strategy = sc.Name, j.strategy.Name
	return r, nil
}

// progress adds up that of all runs.
type progress struct {
	to          world.Progress
	done, total atomic.Int64
}

// of returns the progress of one run of so many requests.
func (p *progress) of(requests int) world.Progress {
	if p.to == nil {
		return nil
	}
	p.total.Add(int64(requests))
	return &runProgress{all: p}
}

// runProgress is the progress of one run.
type runProgress struct {
	all    *progress
	before int
}

// Show adds what has ended since the last call.
func (r *runProgress) Show(done, _ int) {
	now := r.all.done.Add(int64(done - r.before))
	r.before = done
	r.all.to.Show(int(now), int(r.all.total.Load()))
}
