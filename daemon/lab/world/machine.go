package world

import (
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// machine is one worker: an engine, as long as it is up.
type machine struct {
	number   int
	engine   *engine.Engine // nil = down
	config   engine.Config
	began    time.Duration // of the engine's process
	next     time.Duration // when the engine has something to report
	pending  bool          // it has
	inFlight []*Request    // in order of arrival here
	moves    []*Move       // that it computes
	sums     trial.Worker  // of processes that ended
}

// start begins a process without a cache.
func (m *machine) start(now time.Duration) error {
	e, err := engine.New(m.config)
	if err != nil {
		return err
	}
	m.engine, m.began, m.pending = e, now, false
	return nil
}

// stop ends the process. It returns the requests that were there.
func (m *machine) stop(now time.Duration) []*Request {
	m.settle(now)
	lost := m.inFlight
	m.engine, m.inFlight, m.pending = nil, nil, false
	return lost
}

// settle adds the counts of the process to the sums.
func (m *machine) settle(now time.Duration) {
	if m.engine == nil {
		return
	}
	s := m.engine.Stats()
	m.sums.PrefillSeconds += s.PrefillSeconds
	m.sums.ComputedTokens += s.ComputedTokens
	m.sums.CachedTokens += s.CachedTokens
	m.sums.CPUTokens += s.CPUTokens
	m.sums.SharedTokens += s.SharedTokens
	m.sums.Generated += s.GeneratedTokens
	m.sums.Preemptions += s.Preemptions
	m.sums.UpSeconds += (now - m.began).Seconds()
}

// plan finds out when the engine has something to report next.
func (m *machine) plan() {
	at, ok := m.engine.NextEvent()
	m.next, m.pending = m.began+at, ok
}

// submit gives the engine a request.
func (m *machine) submit(now time.Duration, q *Request) error {
	q.machine = m
	m.inFlight = append(m.inFlight, q)
	m.sums.Requests++
	if err := m.engine.Submit(now-m.began, &q.seq); err != nil {
		return err
	}
	m.plan()
	return nil
}

// drop takes a request off the list of those here.
func (m *machine) drop(q *Request) {
	for i, other := range m.inFlight {
		if other == q {
			m.inFlight = append(m.inFlight[:i], m.inFlight[i+1:]...)
			return
		}
	}
}
