package worker

import (
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Status says why Snapshot gave no rows.
type Status uint8

// The values of Status.
const (
	OK           Status = iota
	NoneUp              // no worker that may have the model is up: 503
	UnknownModel        // every worker's models are known and none lists it: 404
)

// Snapshot appends a row for each worker that can take a request for model as of now, and the workers beside them, in order
// of slot: up, not draining, not ejected, and listing the model. An empty model fits every worker, and so does any model
// until the worker was first heard on what it has. The rows lack what depends on the prompt: Predicted, GPU, L1, L2,
// FreeGPU, FreeL1, ReuseGPU and ReuseL1 are the prefix index's, by the row's slot.
//
// It does not allocate if rows and ws have the capacity.
func (p *Pool) Snapshot(model string, now time.Time, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Status) {
	at := p.sec(now)
	stale := 3 * p.conf.ScrapeInterval.Seconds()
	status := UnknownModel
	var list *listing // of the worker before: a fleet mostly shares one, then the name is looked up once
	has := true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.age(at)
	weight := p.weight(at) / window
	for _, w := range p.workers {
		if w.listing != list {
			list = w.listing
			has = list == nil || list.has(model)
		}
		if !has && model != "" {
			continue
		}
		if status == UnknownModel {
			status = NoneUp
		}
		if !w.takes(at) {
			continue
		}
		status = OK
		p.settle(w, at)
		rows = append(rows, abi.Row{})
		w.fill(&rows[len(rows)-1], at, stale, p.fleet, weight)
		ws = append(ws, w)
	}
	if len(p.workers) == 0 {
		status = NoneUp
	}
	return rows, ws, status
}

func (w *Worker) fill(r *abi.Row, now, stale, fleet, weight float64) {
	m := fleet * w.rel
	r.Worker, r.Key = w.slot, w.key
	r.Weight = float32(w.weight)
	r.InFlight = uint32(w.inFlight)
	r.PendingTokens = uint32(max(0, w.queue.tokens))
	r.Sent = w.sent
	r.Slow = m
	r.Wait = w.queue.wait(now, m)
	r.Load = w.load * weight
	r.TTFT, r.TPOT = float32(w.ttft.value), float32(w.tpot.value)
	r.MetricsAge = -1
	if w.scraped > 0 {
		r.MetricsAge = float32(max(0, now-w.scraped))
		r.Running, r.Waiting = uint32(w.metrics.running), uint32(w.metrics.waiting)
		r.KVUsage = float32(w.metrics.usage)
	}
	if w.scraped == 0 || now-w.scraped > stale {
		r.State |= abi.RowStale
	}
	if now < w.health.slow {
		r.State |= abi.RowSlowStart
	}
}

// Lambda is the requests sent per second and worker that is up, averaged over 30 s.
func (p *Pool) Lambda(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lambda(p.sec(now))
}
