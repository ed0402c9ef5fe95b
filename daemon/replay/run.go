package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
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
	trip := newTransport(cfg.MaxInFlight)
	defer trip.CloseIdleConnections()

	report := Report{Trace: cfg.File, Speed: cfg.Speed}
	for _, model := range cfg.Models {
		res, err := play(ctx, &cfg, trip, model, trace)
		report.Results = append(report.Results, res)
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// run is one passage of the trace under one model.
type run struct {
	cfg     *Config
	send    *sender
	trace   []Request
	samples []sample // one a request that was sent; each written by its own goroutine
	slots   chan struct{}
	abort   context.CancelCauseFunc

	sent, begun, answered, failed atomic.Int64
	held                          atomic.Int64 // requests that had to wait for a slot
	peak                          int          // most open at once; by the arrival loop alone
}

var (
	errDeadline = errors.New("deadline")
	errGaveUp   = errors.New("no request succeeds")
)

// play runs the trace under one model.
func play(ctx context.Context, cfg *Config, trip http.RoundTripper, model string, trace []Request) (Result, error) {
	r := &run{
		cfg: cfg, trace: trace,
		send:    newSender(cfg, trip, model),
		samples: make([]sample, len(trace)),
		slots:   make(chan struct{}, cfg.MaxInFlight),
	}
	start := time.Now()
	ctx, stop := context.WithTimeoutCause(ctx, r.due(len(trace)-1)+cfg.Grace, errDeadline)
	defer stop()
	ctx, r.abort = context.WithCancelCause(ctx)
	defer r.abort(nil)

	shown := show(r, model)
	r.arrivals(ctx, start)
	wall := time.Since(start)
	shown()

	res := r.tally(model, wall)
	if cause := context.Cause(ctx); cause != nil && cause != errDeadline {
		return res, fmt.Errorf("replay: model %q: stopped after sending %d of %d requests: %w", model, r.sent.Load(), len(trace), cause)
	}
	return res, nil
}

// due is when request i is to be sent, in wall time since the start.
func (r *run) due(i int) time.Duration {
	return time.Duration(float64(r.trace[i].At) / r.cfg.Speed)
}

// arrivals sends every request when it is due and returns when all are
// answered, failed or dropped.
func (r *run) arrivals(ctx context.Context, start time.Time) {
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
		if !r.slot(ctx) {
			return
		}
		r.sent.Add(1)
		open.Go(func() {
			late := time.Since(start) - r.due(i)
			r.samples[i] = r.one(ctx, i)
			r.samples[i].late = late
			<-r.slots
		})
	}
}

// slot waits for one of the places for open requests.
func (r *run) slot(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case r.slots <- struct{}{}:
	default:
		r.held.Add(1)
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	r.peak = max(r.peak, len(r.slots))
	return true
}

// one sends request i and keeps the counters.
func (r *run) one(ctx context.Context, i int) sample {
	s := r.send.send(ctx, &r.trace[i], func() { r.begun.Add(1) })
	if s.err == nil {
		r.answered.Add(1)
		return s
	}
	failed := r.failed.Add(1)
	if r.begun.Load() == 0 && failed == int64(min(giveUpAfter, len(r.trace))) && ctx.Err() == nil {
		r.abort(fmt.Errorf("%w: %w; is the daemon at %s, and does its /v1/models list the model?", errGaveUp, s.err, r.cfg.URL))
	}
	return s
}
