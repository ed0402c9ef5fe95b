package worker

import "time"

// Stats is what a person or a metric wants to know of one worker.
type Stats struct {
	ID, URL  string // the URL without credentials
	Slot     uint32
	State    Standing  // Starting, Ready, Down, Ejected or Draining
	Since    time.Time // when it became that
	Breaker  BreakerState
	Drained  bool   // it was asked to drain, whatever else it is
	Why      string // it is ejected or draining; "" if it is neither
	Up       bool   // gets requests
	InFlight int
	Limit    int // of InFlight; 0 = none
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

	Left uint64 // times that its answers told it is going

	LastError   string
	LastErrorAt time.Time // zero = never
	ErrorOver   bool      // it is up again, or what found the error has found none since
}

// Stats describes all workers, in order of slot.
func (p *Pool) Stats(now time.Time) []Stats {
	at := p.sec(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.age(at)
	weight := p.weight(at) / window
	out := make([]Stats, 0, len(p.workers))
	p.settleAll(at)
	for _, w := range p.workers {
		s := w.stats(at, p.fleet, weight)
		s.Limit = p.conf().MaxInFlight
		out = append(out, s)
	}
	return out
}

func (w *Worker) stats(now, fleet, weight float64) Stats {
	m := fleet * w.rel
	s := Stats{
		ID: w.id, URL: w.shown, Slot: w.slot, Since: w.since,
		InFlight: w.inFlight, Sent: w.sent, Pending: w.queue.tokens,
		Running: w.metrics.Running, Waiting: w.metrics.Waiting, KVUsage: w.metrics.Usage, MetricsAge: -1,
		Capacity: w.capacity, PrefixQueries: w.metrics.Queries, PrefixHits: w.metrics.Hits,
		Wait: w.queue.wait(now, m), Slow: m, Load: w.load * weight,
		TTFT: w.ttft.value, TPOT: w.tpot.value, SlowStart: now < w.slow.until,
		Answered: w.totals.answered, Failed: w.totals.failed, Broken: w.totals.broken, Refused: w.totals.refused,
		Ejections: w.totals.ejected, Restarts: w.totals.restarts, Left: w.totals.left,
		LastError: w.health.lastError, LastErrorAt: w.health.errorAt, ErrorOver: w.health.errorOver,
	}
	if w.scraped > 0 {
		s.MetricsAge = time.Duration((now - w.scraped) * float64(time.Second))
	}
	if w.listing != nil {
		s.Models = w.listing.ids
	}
	s.Up, s.Drained = w.takes(now), w.draining
	s.Breaker = w.breaker.state(now)
	s.State, s.Why = w.condition()
	return s
}

// Counts is what a metric wants to know of the pool as a whole, all since it began.
type Counts struct {
	Panics         uint64 // requests that were given workers that are not up
	RetriesRefused uint64 // repeats that the budget refused
}

// Counts tells them.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	c := Counts{Panics: p.panics}
	p.mu.Unlock()
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	c.RetriesRefused = p.budget.denied
	return c
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
