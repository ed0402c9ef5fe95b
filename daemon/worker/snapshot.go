package worker

import (
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Query says for what request the fleet is looked at.
type Query struct {
	Model string // "" fits every worker
	Bound string // id of the worker that the request is bound to: neither slow start nor a drain hides it
	Again bool   // others have failed the request: slow start hides nobody
	At    time.Time
}

// Snapshot appends a row for each worker that can take the request, and the workers beside them, in order of slot: up,
// not draining, its breaker closed or ready for a trial, below MaxInFlight, its turn if it starts slowly, and listing
// the model. Any model fits a worker until its models were read. The rows lack what depends on the prompt: Predicted,
// GPU, L1, L2, FreeGPU, FreeL1, ReuseGPU and ReuseL1 are the prefix index's, by the row's slot.
//
// The Standing is Ready or Panicked if there are rows, else why there are none: Full, Starting, Down or Lacking. It
// does not allocate if rows and ws have the capacity.
func (p *Pool) Snapshot(q Query, rows []abi.Row, ws []*Worker) ([]abi.Row, []*Worker, Standing) {
	c := p.conf()
	s := shot{p: p, at: p.sec(q.At), model: q.Model, bound: q.Bound, rows: rows, ws: ws, standing: Lacking,
		limit: c.MaxInFlight, stale: 3 * c.ScrapeInterval.Seconds()}
	first := normal
	if q.Again {
		first = outOfTurn
	}
	p.mu.Lock()
	p.age(s.at)
	p.settleAll(s.at)
	s.weight = p.weight(s.at) / window
	s.take(first)
	if s.kept > 0 && s.standing != Ready { // they and nobody else
		s.take(outOfTurn)
	}
	if (s.standing == Down || s.standing == Starting) && c.Panic {
		s.take(panicking)
	}
	if len(p.workers) == 0 {
		s.standing = Down
	}
	p.mu.Unlock()
	p.tell(q.At, s.events...)
	return s.rows, s.ws, s.standing
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
	standing     Standing
	kept         int // workers left out for their slow start alone
	events       []event
}

// mode is who is taken.
type mode uint8

const (
	normal    mode = iota
	outOfTurn      // also who starts slowly
	panicking      // also who is not up
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
		if w.health.state == starting {
			s.nearest(Starting)
		}
		s.nearest(Down)
		if w.breaker.trial != nil {
			s.events = append(s.events, p.tried(w, s.at)...)
		}
		if m == panicking && w.draining || m != panicking && !w.takes(s.at) && !(w.id == s.bound && w.keeps(s.at)) {
			continue
		}
		if s.limit > 0 && w.inFlight >= s.limit {
			s.nearest(Full)
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
		w.panicked = m == panicking
		if w.panicked {
			s.panics()
		} else {
			s.nearest(Ready)
		}
		s.rows = append(s.rows, abi.Row{})
		w.fill(&s.rows[len(s.rows)-1], s.at, s.stale, p.fleet, s.weight)
		s.ws = append(s.ws, w)
	}
}

// nearest notes what one worker can do: the fleet's standing is that of the worker nearest to Ready.
func (s *shot) nearest(one Standing) {
	rank := [...]uint8{Lacking: 0, Down: 1, Starting: 2, Full: 3, Panicked: 4, Ready: 5}
	if rank[one] > rank[s.standing] {
		s.standing = one
	}
}

// panics notes that workers are given which are not up, once a request; it is told once until one is up again.
func (s *shot) panics() {
	if s.standing == Panicked {
		return
	}
	s.standing = Panicked
	s.p.panics++
	if !s.p.panicked {
		s.p.panicked = true
		s.events = append(s.events, event{kind: inPanic})
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
		r.Running, r.Waiting = uint32(w.metrics.Running), uint32(w.metrics.Waiting)
		r.KVUsage = float32(w.metrics.Usage)
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
