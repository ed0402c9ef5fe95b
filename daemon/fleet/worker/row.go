package worker

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
	"github.com/warmpath/warmpath/sdk/abi"
)

// fill writes all of a row that does not depend on the prompt. The row must be zero.
func (w *Worker) fill(r *abi.Row, m *moment) {
	r.Worker = w.slot
	r.Key = w.key
	r.Rank = w.rank
	w.marks.fill(r)
	r.InFlight = uint32(w.flight.n + w.theirs.n)
	r.FlightTokens = uint32(max(0, w.flight.tokens+w.theirs.tokens))
	r.KVTokens = uint32(w.capacity.inForce)
	r.HeldTokens = w.heldTokens()
	r.PendingTokens = uint32(max(0, w.queue.tokens))
	r.Sent = w.sent + w.theirs.sent + w.missed
	r.Slow = m.slowness * w.speed.Times()
	r.Wait = w.queue.wait(m.now, r.Slow)
	r.Load = w.share.Seconds * m.back / measure.Window
	r.Lately = float32(w.share.Requests * m.back)
	r.Pending = float32(w.queue.pend)
	r.TTFT = float32(w.ttft.Value)
	r.TPOT = float32(w.signs.PerToken().Value)
	w.readings.fill(r, m.now, w.staleAfter(m))
	if r.State&abi.RowStale == 0 {
		w.elsewhere.Fill(r, m.elsewhere)
	}
	if w.slowStart.OutOfTurn(m.now) {
		r.State |= abi.RowSlowStart
	}
	if w.slowStart.Joins() {
		r.State |= abi.RowJoins
	}
}

// Stats describes one worker's state, for pages and metrics.
type Stats struct {
	ID       string
	Endpoint string            // the configured id of the worker's address: ID, except for a rank of several
	Rank     int               // data-parallel, of Ranks
	Ranks    int               // behind the address
	URL      string            // without credentials
	Labels   map[string]string // of its spec, and that of its weights; not to be changed
	Weights  Weights
	Oldest   Weights // of older ones, that may have computed blocks of its KV cache; 0 = there are none
	Slot     uint32
	State    Standing  // Starting, Ready, Silent, Down, Asleep, Ejected or Draining
	Since    time.Time // when it entered the state
	Breaker  judge.BreakerState
	Drained  bool   // Drain was called for it, whatever else its state is
	Why      string // why it is ejected or draining, or drained and not up; else ""
	Up       bool   // gets requests
	Last     bool   // gets those that no other worker takes: it is silent, set aside or paused
	Prefills bool   // by its role: it answers no client
	Helps    bool   // by its role: it computes prompts for others, whether it answers or not
	InFlight int    // requests of this router
	Theirs   int    // requests of other routers, by their messages
	Limit    int    // of requests at all ranks together; 0 = none
	Full     bool   // it has no room for another: Limit, or another bound of the configuration, is reached
	Sent     uint64
	Pending  int // prompt tokens without a first byte

	Running       int
	Waiting       int
	KVUsage       float64
	MetricsAge    time.Duration // negative = never read
	Capacity      int           // tokens; 0 = unknown
	CPUTokens     int           // that its CPU memory keeps; 0 = none
	PrefixQueries float64       // tokens, counted by the worker since its start
	PrefixHits    float64
	LMCache       *LMCache // nil = it reports nothing of one

	Wait      float64 // W
	Slow      float64 // m
	Load      float64 // rho
	InUse     float64 // of all of it: its prefill a second, its KV, or its requests beside Limit, whichever is most
	TTFT      float64 // seconds
	TPOT      float64 // seconds
	SlowStart bool
	Models    []string // nil = not read yet
	Lengths   []int    // max_model_len of each of Models; 0 = not known

	Answered  uint64
	Failed    uint64
	Broken    uint64
	Refused   uint64
	Busy      uint64 // refusals because it was full
	Denied    uint64 // refusals for other reasons
	Ejections uint64
	Restarts  uint64        // new processes
	Lately    int           // of these, in the last Lately
	Restarted time.Duration // since the last one, if there was one
	Left      uint64        // answers that showed that it shuts down
	Preempts  uint64        // requests that its engine put back for want of KV, by the pages that were read

	LastError   string
	LastErrorAt time.Time // zero = never
	ErrorOver   bool      // it is up again, or the error's source has succeeded since
	Unread      bool      // it is up, and no page of its metrics could be read for some looks in a row
	Forgotten   bool      // it has been paused for longer than PauseMax
	DeniesKey   bool      // it refused to list its models to this router's key, by the last reading
}

func (w *Worker) stats(m *moment, l *limits) Stats {
	slow := m.slowness * w.speed.Times()
	s := Stats{
		ID: w.id, Endpoint: w.name, Rank: int(w.rank), Ranks: len(w.ranks), URL: w.shown, Labels: w.named, Slot: w.slot,
		Weights: w.Weights(),
		Since:   w.since, Breaker: w.health.Breaker(m.now), Drained: w.draining, Up: w.takes(m.now), InFlight: w.flight.n,
		Prefills: w.role == abi.RowPrefill, Helps: w.named[roleLabel] == prefillRole,
		Theirs: w.theirs.n, Limit: l.requests,
		Full: w.full(l, m), Sent: w.sent, Pending: w.queue.tokens,
		Running: w.readings.Running, Waiting: w.readings.Waiting, KVUsage: w.readings.Usage, MetricsAge: -1,
		Capacity: w.capacity.inForce, CPUTokens: w.CPUTokens(),
		PrefixQueries: w.readings.Queries, PrefixHits: w.readings.Hits, LMCache: w.readings.LMCache,
		Wait: w.queue.wait(m.now, slow), Slow: slow, Load: w.share.Seconds * m.back / measure.Window,
		TTFT: w.ttft.Value, TPOT: w.signs.PerToken().Value, SlowStart: w.slowStart.Runs(m.now),
		Answered: w.totals.answered, Failed: w.totals.failed, Broken: w.totals.broken, Refused: w.totals.refused,
		Busy: w.totals.busy, Denied: w.totals.denied,
		Ejections: w.totals.ejected, Restarts: w.totals.restarts, Lately: w.totals.lately(m.now),
		Restarted: m.now - w.totals.lastRestart(),
		Left:      w.totals.left, Preempts: w.totals.preempts,
		Forgotten: w.engine.WasForgotten(),
	}
	s.LastError, s.LastErrorAt, s.ErrorOver = w.health.LastError()
	s.DeniesKey = w.deniesKey
	if w.oldest != s.Weights {
		s.Oldest = w.oldest
	}
	s.Unread = w.unread >= unreadLooks
	if age := w.readings.age(m.now); age >= 0 {
		s.MetricsAge = age
	}
	if w.listing != nil {
		s.Models, s.Lengths = w.listing.IDs, w.listing.Lengths
	}
	s.State, s.Why = w.condition()
	if w.isSetAside() {
		s.Up = s.Up && !w.health.IsUnpaired(m.now)
		s.Breaker = max(s.Breaker, w.health.PairBreaker(m.now))
	}
	s.InUse = s.inUse()
	return s
}

// inUse returns how much of the worker is in use.
func (s *Stats) inUse() float64 {
	kv := s.KVUsage
	if s.Running > 0 { // those that wait in the engine want as much each
		kv *= float64(s.Running+s.Waiting) / float64(s.Running)
	}
	use := max(s.Load, kv)
	if s.Limit > 0 {
		use = max(use, float64((s.InFlight+s.Theirs)*max(1, s.Ranks))/float64(s.Limit))
	}
	return use
}

// Counts are the counts of the pool as a whole, since it began.
type Counts struct {
	Panics         uint64 // requests that were offered workers that are not up
	RetriesRefused uint64 // repeats that the budget refused
	Preempts       uint64 // requests that the workers' engines put back for want of KV
}
