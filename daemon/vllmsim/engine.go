package vllmsim

import (
	"sync"
	"time"
)

// flushEvery is how often a stream of an accelerated worker gets an event, in wall time.
const flushEvery = 10 * time.Millisecond

// engine computes steps in simulated time, which runs Speed times as fast as the wall clock. One goroutine a worker, one
// timer: it wakes when somebody is owed something, computes every step that has ended by then, and shows the tokens. So
// the sequence of steps is exact however late it wakes; only the showing is coarse.
type engine struct {
	cfg   Config
	start time.Time
	wake  chan struct{}
	stop  chan struct{}
	quit  sync.Once
	over  sync.WaitGroup

	mu      sync.Mutex // guards all below
	pool    *blockPool
	waiting []*sequence
	running []*sequence
	step    step
	clock   time.Duration // simulated end of the last step
	scratch []int32
	closed  bool
	frozen  bool          // a stall
	froze   time.Duration // simulated time at which it began
	lost    time.Duration // simulated time lost in stalls

	counts                               counts
	ttft, interToken, latency, queueTime histogram
	prefillTime, computed, tokenTime     histogram // of requests that have ended
}

func newEngine(cfg Config) *engine {
	e := &engine{
		cfg: cfg, start: time.Now(), wake: make(chan struct{}, 1), stop: make(chan struct{}),
		pool: newBlockPool(cfg.KVTokens / cfg.BlockTokens),
	}
	e.ttft.bounds, e.interToken.bounds = ttftBounds, interTokenBounds
	e.latency.bounds, e.queueTime.bounds = latencyBounds, latencyBounds
	e.prefillTime.bounds, e.computed.bounds, e.tokenTime.bounds = latencyBounds, tokenBounds(cfg.MaxModelLen), interTokenBounds
	e.over.Add(1)
	go e.run()
	return e
}

// now is the simulated time; it stands still in a stall.
func (e *engine) now() time.Duration {
	if e.frozen {
		return e.froze
	}
	return time.Duration(float64(time.Since(e.start))*e.cfg.Speed) - e.lost
}

func (e *engine) run() {
	defer e.over.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		e.mu.Lock()
		e.advance()
		wait := e.nextWake()
		e.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-e.wake:
		case <-timer.C:
		case <-e.stop:
			return
		}
	}
}

func (e *engine) rouse() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// advance computes every step that has ended, starts the next one and shows the tokens that are due.
func (e *engine) advance() {
	now := e.now()
	for {
		if e.step.active {
			if e.step.end > now {
				break
			}
			e.complete()
		}
		at := e.clock
		if len(e.running) == 0 {
			if len(e.waiting) == 0 {
				break
			}
			at = max(at, e.waiting[0].arrived)
		}
		if !e.schedule(at) {
			break
		}
	}
	wall := time.Now()
	for _, q := range e.running {
		shown := int(q.produced.Load())
		if q.output > shown && (e.cfg.Speed <= 1 || shown == 0 || wall.Sub(q.flushed) >= flushEvery) {
			q.flushed = wall
			q.publish(unfinished)
		}
	}
}

// nextWake is the wall time until somebody is owed something: a first token, an end, or the next event of a stream.
func (e *engine) nextWake() time.Duration {
	s := &e.step
	if !s.active || e.frozen {
		return time.Hour
	}
	now := e.now()
	at := s.end
	if e.cfg.Speed > 1 && s.prefills == 0 && (len(e.waiting) == 0 || s.blocked) {
		at = max(at, min(now+time.Duration(float64(flushEvery)*e.cfg.Speed), e.nextEnd()))
	}
	return time.Duration(float64(at-now)/e.cfg.Speed) + 1
}

// nextEnd is when the first of the running sequences will have its last token, if the steps to come last as long.
func (e *engine) nextEnd() time.Duration {
	left := 1 << 30
	for _, it := range e.step.items {
		left = min(left, it.seq.left())
	}
	return e.step.end + time.Duration(left-1)*(e.step.end-e.clock)
}

// submit puts a sequence into the waiting queue.
func (e *engine) submit(seqs []*sequence) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		for _, q := range seqs {
			q.publish(finishAbort)
		}
		return
	}
	for _, q := range seqs {
		q.arrived = e.now()
	}
	e.waiting = append(e.waiting, seqs...)
	e.mu.Unlock()
	e.rouse()
}

// cancel frees what the sequences hold; those that have ended are left alone.
func (e *engine) cancel(seqs []*sequence) {
	e.mu.Lock()
	if !e.closed {
		e.advance()
	}
	changed := false
	for _, q := range seqs {
		if q.state != gone {
			e.drop(q)
			changed = true
		}
	}
	if changed {
		e.running, e.waiting = dropGone(e.running), dropGone(e.waiting)
	}
	e.mu.Unlock()
	if changed {
		e.rouse()
	}
}

func (e *engine) drop(q *sequence) {
	e.pool.release(q.blocks)
	q.blocks, q.state = nil, gone
	q.publish(finishAbort)
}

// freeze begins or ends a stall.
func (e *engine) freeze(on bool) {
	e.mu.Lock()
	switch {
	case on && !e.frozen:
		e.froze = e.now()
		e.frozen = true
	case !on && e.frozen:
		e.frozen = false
		e.lost += e.now() - e.froze
	}
	e.mu.Unlock()
	e.rouse()
}

// abort ends all that runs or waits with finish_reason "abort".
func (e *engine) abort() {
	e.mu.Lock()
	if !e.closed {
		e.advance()
	}
	e.dropAll()
	e.mu.Unlock()
	e.rouse()
}

func (e *engine) dropAll() {
	for _, q := range append(e.running, e.waiting...) {
		e.drop(q)
	}
	e.running, e.waiting = nil, nil
}

// close ends the goroutine and aborts what is left.
func (e *engine) close() {
	e.quit.Do(func() { close(e.stop) })
	e.over.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.dropAll()
}
