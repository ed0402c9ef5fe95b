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
	before  []int   // of each request the one before it in its session, -1 = none
	after   [][]int // the reverse
	start   time.Time
	grace   *grace
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
	r.link()
	ctx, r.abort = context.WithCancelCause(ctx)
	defer r.abort(nil)
	r.start = time.Now()
	r.grace = newGrace(cfg.Grace, r.abort)
	defer r.grace.stop()
	r.grace.extend(r.start.Add(r.due(len(trace) - 1)))

	endProgress := showProgress(cfg.Progress, r.counts, model)
	r.sendAll(ctx)
	wall := time.Since(r.start)
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

// link finds which requests wait for which.
func (r *run) link() {
	r.before = before(r.trace)
	r.after = make([][]int, len(r.trace))
	for i, k := range r.before {
		if k >= 0 {
			r.after[k] = append(r.after[k], i)
		}
	}
}

// due returns when request i is to be sent, in wall time since the start.
func (r *run) due(i int) time.Duration {
	return time.Duration(float64(r.trace[i].At) / r.cfg.Speed)
}

// sendAll sends every request when it is due and returns when all are answered,
// failed or dropped.
func (r *run) sendAll(ctx context.Context) {
	var open sync.WaitGroup
	defer open.Wait()
	for i := range r.trace {
		if r.before[i] >= 0 {
			continue // it follows that one
		}
		if !r.await(ctx, r.due(i)) {
			return
		}
		open.Go(func() { r.follow(ctx, i, r.due(i), &open) })
	}
}

// await waits until so long after the start, and for a place among the open requests. It returns false if ctx ends.
func (r *run) await(ctx context.Context, due time.Duration) bool {
	r.grace.extend(r.start.Add(due))
	if wait := due - time.Since(r.start); wait > 0 {
		clock := time.NewTimer(wait)
		defer clock.Stop()
		select {
		case <-clock.C:
		case <-ctx.Done():
			return false
		}
	}
	return r.counts.acquire(ctx)
}

// follow sends request i, for which there is a place, and then those that come after it in its session.
func (r *run) follow(ctx context.Context, i int, due time.Duration, open *sync.WaitGroup) {
	r.counts.sent.Add(1)
	late := time.Since(r.start) - due
	r.samples[i] = r.sendOne(ctx, i)
	r.samples[i].late, r.samples[i].sent = late, true
	r.counts.release()
	for _, next := range r.after[i] {
		delay := time.Duration(float64(r.trace[next].Delay) / r.cfg.Speed)
		due := max(r.due(next), time.Since(r.start)+delay)
		open.Go(func() {
			if r.await(ctx, due) {
				r.follow(ctx, next, due, open)
			}
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
