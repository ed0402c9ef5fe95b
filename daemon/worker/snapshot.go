package worker

import (
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Status says what Snapshot's rows are, or why there are none.
type Status uint8

// The values of Status.
const (
	OK           Status = iota
	NoneUp              // no worker that may have the model is up: 503
	UnknownModel        // every worker's models are known and none lists it: 404
	Full                // who could take it has MaxInFlight requests already: 429
	Panicked            // no worker is up, and the rows are of those that are not: Config.Panic
)

// Snapshot appends a row for each worker that can take a request for model as of now, and the workers beside them, in order
// of slot: up, not draining, its breaker closed or ready for a trial, below MaxInFlight, its turn if it starts slowly, and
// listing the model. An empty model fits every worker, and so does any model until the worker was first heard on what it has. The
// rows lack what depends on the prompt: Predicted, GPU, L1, L2, FreeGPU, FreeL1, ReuseGPU and ReuseL1 are the prefix index's, by
// the row's slot.
//
// It does not allocate if rows and ws have the capacity.
func (p *Pool) Snapshot(model string, now time.Time, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Status) {
	return p.SnapshotFor(model, "", now, rows, ws)
}

// SnapshotFor is Snapshot for a request that is bound to the worker of that id: neither slow start nor a drain hides it.
func (p *Pool) SnapshotFor(model, bound string, now time.Time, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Status) {
	return p.shoot(model, bound, normal, now, rows, ws)
}

func (p *Pool) shoot(model, bound string, first mode, now time.Time, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Status) {
	c := p.conf()
	s := shot{p: p, at: p.sec(now), model: model, bound: bound, rows: rows, ws: ws, status: UnknownModel,
		limit: c.MaxInFlight, stale: 3 * c.ScrapeInterval.Seconds()}
	p.mu.Lock()
	p.age(s.at)
	p.settleAll(s.at)
	s.weight = p.weight(s.at) / window
	s.take(first)
	if s.kept > 0 && s.status != OK { // they and nobody else
		s.take(outOfTurn)
	}
	if s.status == NoneUp && c.Panic {
		s.take(anyhow)
	}
	if len(p.workers) == 0 {
		s.status = NoneUp
	}
	p.mu.Unlock()
	p.tell(s.events...)
	return s.rows, s.ws, s.status
}

// SnapshotAll is Snapshot with those too whose turn it is not, for a request that others have failed.
func (p *Pool) SnapshotAll(model string, now time.Time, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Status) {
	return p.shoot(model, "", outOfTurn, now, rows, ws)
}

// shot is one Snapshot in the making. The pool's lock is held all the while.
type shot struct {
	p            *Pool
	at, weight   float64
	stale        float64 // seconds after which metrics are
	limit        int     // Config.MaxInFlight
	model, bound string
	rows         []abi.Row
	ws           []*Worker
	status       Status
	kept         int // workers left out for their slow start alone
	events       []event
}

// mode is who is taken.
type mode uint8

const (
	normal    mode = iota
	outOfTurn      // also who starts slowly
	anyhow         // also who is not up
)

// take appends who may take the request.
func (s *shot) take(m mode) {
	p := s.p
	total := 0.0
	var list *listing // of the worker before: a fleet mostly shares one, then the name is looked up once
	has := true
	for _, w := range p.workers {
		if w.listing != list {
			list = w.listing
			has = list == nil || list.has(s.model)
		}
		if !has && s.model != "" {
			continue
		}
		if s.status == UnknownModel {
			s.status = NoneUp
		}
		if w.breaker.trial != nil {
			s.events = append(s.events, p.tried(w, s.at)...)
		}
		if m == anyhow && w.draining || m != anyhow && !w.takes(s.at) && !(w.id == s.bound && w.keeps(s.at)) {
			continue
		}
		if s.limit > 0 && w.inFlight >= s.limit {
			if s.status == NoneUp {
				s.status = Full
			}
			continue
		}
		if w.slow.held && m == normal {
			if total == 0 {
				total = p.total()
			}
			if !p.due(w, s.at, w.weight/total) && (s.bound == "" || w.id != s.bound) {
				s.kept++
				continue
			}
		}
		if w.anyhow = m == anyhow; w.anyhow {
			s.panics()
		} else {
			s.status = OK
		}
		s.rows = append(s.rows, abi.Row{})
		w.fill(&s.rows[len(s.rows)-1], s.at, s.stale, p.fleet, s.weight)
		s.ws = append(s.ws, w)
	}
}

// panics notes that workers are given which are not up, once a request; it is told once until one is up again.
func (s *shot) panics() {
	if s.status == Panicked {
		return
	}
	s.status = Panicked
	s.p.panics++
	if !s.p.panicked {
		s.p.panicked = true
		s.events = append(s.events, event{kind: panicking})
	}
}

func (w *Worker) fill(r *abi.Row, now, stale, fleet, weight float64) {
	m := fleet * w.rel
	r.Worker, r.Key = w.slot, w.key
	r.Weight = float32(w.weight)
	r.InFlight = uint32(w.inFlight)
	r.PendingTokens = uint32(max(0, w.queue.tokens))
	r.Sent = w.sent + w.missed
	r.Slow = m
	r.Wait = w.queue.wait(now, m)
	r.Load = w.load * weight
	r.Lately = float32(w.lately * weight * window)
	r.Pending = float32(w.queue.pend)
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
	if now < w.slow.until && w.slow.credit < 1 {
		r.State |= abi.RowSlowStart
	}
}

// Lambda is the requests sent per second and worker that is up: see lambda.
func (p *Pool) Lambda(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lambda(p.sec(now))
}
