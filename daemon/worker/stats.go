package worker

import "time"

// Stats is what a person or a metric wants to know of one worker.
type Stats struct {
	ID, URL  string // the URL without credentials
	Slot     uint32
	State    string // starting | up | down | ejected | draining
	Up       bool   // gets requests
	InFlight int
	Sent     uint64
	Pending  int // prompt tokens without a first byte

	Running, Waiting int
	KVUsage          float64
	MetricsAge       time.Duration // negative = never read
	Capacity         int           // tokens; 0 = unknown
	PrefixQueries    float64       // tokens, as the worker counts since its start
	PrefixHits       float64

	Wait, Slow, Load float64 // W, m, rho
	TTFT, TPOT       float64 // seconds
	SlowStart        bool
	Models           []string // nil = not heard yet

	Answered, Failed, Broken, Refused, Ejections, Restarts uint64

	LastError   string
	LastErrorAt time.Time
}

// Stats describes all workers, in order of slot.
func (p *Pool) Stats(now time.Time) []Stats {
	at := p.sec(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.age(at)
	weight := p.weight(at) / window
	out := make([]Stats, 0, len(p.workers))
	for _, w := range p.workers {
		p.settle(w, at)
		out = append(out, w.stats(at, p.fleet, weight))
	}
	return out
}

func (w *Worker) stats(now, fleet, weight float64) Stats {
	m := fleet * w.rel
	s := Stats{
		ID: w.id, URL: w.shown, Slot: w.slot, State: w.health.state.String(),
		InFlight: w.inFlight, Sent: w.sent, Pending: w.queue.tokens,
		Running: w.metrics.running, Waiting: w.metrics.waiting, KVUsage: w.metrics.usage, MetricsAge: -1,
		Capacity: w.capacity, PrefixQueries: w.metrics.queries, PrefixHits: w.metrics.hits,
		Wait: w.queue.wait(now, m), Slow: m, Load: w.load * weight,
		TTFT: w.ttft.value, TPOT: w.tpot.value, SlowStart: now < w.health.slow,
		Answered: w.totals.answered, Failed: w.totals.failed, Broken: w.totals.broken, Refused: w.totals.refused,
		Ejections: w.totals.ejected, Restarts: w.totals.restarts,
		LastError: w.health.lastError, LastErrorAt: w.health.errorAt,
	}
	if w.scraped > 0 {
		s.MetricsAge = time.Duration((now - w.scraped) * float64(time.Second))
	}
	if w.listing != nil {
		s.Models = w.listing.ids
	}
	s.Up = w.takes(now)
	if w.health.state == up && !s.Up {
		s.State = "ejected"
		if w.draining {
			s.State = "draining"
		}
	}
	return s
}

// Up is the number of workers that get requests.
func (p *Pool) Up(now time.Time) int {
	at, n := p.sec(now), 0
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if w.takes(at) {
			n++
		}
	}
	return n
}
