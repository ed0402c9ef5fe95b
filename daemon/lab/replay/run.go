package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// giveUpAfter is how many requests may fail, before the first one is answered,
// until a run is given up: half a second of the trace, where a wrong port would
// otherwise be found out after 90.
const giveUpAfter = 20

// Run replays the trace once under each model, one after the other, and
// reports what it measured. If ctx ends, the requests under way are dropped and
// the report so far comes back with the error. Failed requests are counted in
// the report; they are an error of Run only when none succeeds at first.
func Run(ctx context.Context, c Config) (Report, error) {
	cfg, err := c.completed()
	if err != nil {
		return Report{}, err
	}
	trace, err := readTraceFile(cfg.File, cfg.Limit)
	if err != nil {
		return Report{}, err
	}
	spread(trace, cfg.Spread, cfg.Seed)
	a, err := newAccess(&cfg)
	if err != nil {
		return Report{}, err
	}
	trip := newTransport(cfg.MaxInFlight)
	trip.TLSClientConfig = a.trust
	defer trip.CloseIdleConnections()

	report := Report{Trace: cfg.File, Speed: cfg.Speed}
	for _, model := range cfg.Models {
		res, err := play(ctx, &cfg, keyed{trip, a.key}, model, trace)
		report.Results = append(report.Results, res)
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// errGaveUp ends a run of which nothing succeeds.
var errGaveUp = errors.New("no request succeeds")

// run is one passage of the trace under one model.
type run struct {
	cfg     *Config
	send    *sender
	trace   []Request
	samples []sample // one a request that was sent; each written by its own goroutine
	counts  *counts
	abort   context.CancelCauseFunc
}

// play runs the trace under one model.
func play(ctx context.Context, cfg *Config, trip http.RoundTripper, model string, trace []Request) (Result, error) {
	r := &run{
		cfg:     cfg,
		trace:   trace,
		send:    newSender(cfg, trip, model),
		samples: make([]sample, len(trace)),
		counts:  newCounts(len(trace), cfg.MaxInFlight),
	}
	start := time.Now()
	ctx, stop := context.WithTimeoutCause(ctx, r.due(len(trace)-1)+cfg.Grace, errDeadline)
	defer stop()
	ctx, r.abort = context.WithCancelCause(ctx)
	defer r.abort(nil)

	endProgress := showProgress(cfg.Progress, r.counts, model)
	r.sendAll(ctx, start)
	wall := time.Since(start)
	endProgress()

	res := tally(outcome{
		model:   model,
		speed:   cfg.Speed,
		wall:    wall,
		trace:   trace,
		samples: r.samples,
		counts:  r.counts,
	})
	if cause := context.Cause(ctx); cause != nil && cause != errDeadline {
		return res, fmt.Errorf("replay: model %q: stopped after sending %d of %d requests: %w",
			model, res.Sent, len(trace), cause)
	}
	return res, nil
}

// due returns when request i is to be sent, in wall time since the start.
func (r *run) due(i int) time.Duration {
	return time.Duration(float64(r.trace[i].At) / r.cfg.Speed)
}

// sendAll sends every request when it is due and returns when all are answered,
// failed or dropped.
func (r *run) sendAll(ctx context.Context, start time.Time) {
	var open sync.WaitGroup
	defer open.Wait()
	clock := time.NewTimer(0)
	defer clock.Stop()
	for i := range r.trace {
		if wait := r.due(i) - time.Since(start); wait > 0 {
			clock.Reset(wait)
			select {
			case <-clock.C:
			case <-ctx.Done():
				return
			}
		}
		if !r.counts.acquire(ctx) {
			return
		}
		r.counts.sent.Add(1)
		open.Go(func() {
			late := time.Since(start) - r.due(i)
			r.samples[i] = r.sendOne(ctx, i)
			r.samples[i].late = late
			r.counts.release()
		})
	}
}

// sendOne sends request i and counts what became of it.
func (r *run) sendOne(ctx context.Context, i int) sample {
	c := r.counts
	s := r.send.send(ctx, &r.trace[i], func() { c.begun.Add(1) })
	if s.err == nil {
		c.answered.Add(1)
		return s
	}
	failed := c.failed.Add(1)
	if c.begun.Load() == 0 && failed == int64(min(giveUpAfter, len(r.trace))) && ctx.Err() == nil {
		r.abort(fmt.Errorf("%w: %w; %s", errGaveUp, s.err, remedy(r.cfg, s.err)))
	}
	return s
}
