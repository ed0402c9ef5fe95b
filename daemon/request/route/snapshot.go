package route

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Snapshot is a copy of a strategy's input, for another strategy that decides the same request later. It keeps its
// memory for the next copy.
type Snapshot struct {
	Frame    host.Frame // as View left it
	Strategy string     // that decided
	Result   host.Result
	Workers  []string // ids of the rows
	Splits   bool     // another worker may compute the prompt, and a strategy may name it

	known   known
	below   spaces
	workers []*worker.Worker
	fields  fields
	live    view  // of the strategy that decided
	reports fleet // what the workers report, for a strategy that wants it beside one that does not
	both    bool  // reports is filled
}

// view is what one strategy sees of a request and its candidates.
type view struct {
	header abi.Header
	rows   []abi.Row
}

// fields are header fields of a request that has gone on.
type fields map[string]string

// Header implements host.HeaderSource.
func (f fields) Header(name string) (value string, ok bool) {
	value, ok = f[name]
	return value, ok
}

// Take copies what c's strategy decided by, with the header fields of these names. It is called after Choose and before
// Release.
func (s *Snapshot) Take(c *Choice, names []string) {
	f, t := &c.fleet.frame, &s.Frame
	rows, ids, chain := t.Rows[:0], t.WorkerIDs[:0], t.Chain[:0]
	t.Reset()
	t.Labels, t.Rows = f.Labels, rows // View has the header and the rows
	t.WorkerIDs, t.Chain = append(ids, f.WorkerIDs...), append(chain, f.Chain...)
	s.live.header, s.live.rows = f.Header, append(s.live.rows[:0], f.Rows...)
	if c.strategy.Own() != nil { // its numbers are nobody else's
		for i := range s.live.rows {
			s.live.rows[i].Own = 0
		}
	}
	t.Session = f.Session
	t.Model = f.Model
	t.Tenant = f.Tenant
	t.Caller = f.Caller
	t.Request = f.Request
	s.workers = append(s.workers[:0], c.fleet.workers...)
	s.reports.slots = append(s.reports.slots[:0], c.fleet.slots...)
	if c.pool.watches(abi.WantPair) && len(c.ask.Prefillers) > 0 && !c.strategy.Wants(abi.WantPair) {
		s.takePrefillers(c)
	}
	s.both = c.pool.watches(abi.WantHeld) && !c.fleet.held.known && s.takeReports(c)
	if f.Prefixes != nil {
		s.known, s.below = c.fleet.known, c.below
		s.known.candidates, s.known.below = s.workers, &s.below
		t.Prefixes = &s.known
	}
	if s.fields == nil {
		s.fields = fields{}
	}
	if len(s.fields) > 0 {
		clear(s.fields)
	}
	for _, name := range names {
		if f.Headers == nil {
			break
		}
		if v, ok := f.Headers.Header(name); ok {
			s.fields[name] = strings.Clone(v) // else it keeps the memory of the whole header
		}
	}
	t.Headers = s.fields
	s.Strategy, s.Result = c.strategy.Name(), c.result
	s.Result.Order = nil // it is the frame's
	s.Workers, s.Splits = t.WorkerIDs, len(c.ask.Prefillers) > 0
}

// takeReports fills the rows from the workers' reports. It returns false if their reports do not apply to this
// request.
func (s *Snapshot) takeReports(c *Choice) bool {
	r := &s.reports
	r.held.wanted, r.held.known = c.prompt.HasPrompt && c.pool.reported(), false
	if !r.held.look(c.pool, &c.ask, r.slots) {
		return false
	}
	r.workers = s.workers
	r.frame.Header, r.frame.Rows = s.live.header, append(r.frame.Rows[:0], s.live.rows...)
	r.held.fill(r, c.pool.lower.set.Load(), len(c.ask.IDs), c.size.block)
	r.best()
	return true
}

// takePrefillers adds the rows of prefillers for a strategy that wants them beside one that does not.
func (s *Snapshot) takePrefillers(c *Choice) {
	d := matchPrefillers(c, &SplitRule{Fence: c.ask.Prefillers})
	defer decisions.Put(d)
	f := &d.fleet
	s.live.rows = append(s.live.rows, f.frame.Rows...)
	s.live.header.Prefillers = uint32(len(f.frame.Rows))
	s.workers = append(s.workers, f.workers...)
	s.reports.slots = append(s.reports.slots, f.slots...)
	s.Frame.WorkerIDs = append(s.Frame.WorkerIDs, f.frame.WorkerIDs...)
}

// View makes Frame what m would have seen in place of the strategy that decided.
func (s *Snapshot) View(m *host.Strategy) {
	header, rows := s.live.header, s.live.rows
	if s.both && m.Wants(abi.WantHeld) {
		header, rows = s.reports.frame.Header, s.reports.frame.Rows
	}
	if !m.Wants(abi.WantPair) {
		rows = rows[:len(rows)-int(header.Prefillers)]
		header.Prefillers = 0
	}
	s.Frame.Header, s.Frame.Rows = header, append(s.Frame.Rows[:0], rows...)
	if m.Wants(abi.WantCost) {
		score.Price(&s.Frame.Header, s.Frame.Rows)
	}
}
