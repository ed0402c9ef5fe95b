package route

import (
	"maps"

	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/host"
)

// Snapshot is a copy of what a strategy decided by, for one that decides the same again beside it, later. It keeps its
// memory for the next copy.
type Snapshot struct {
	Frame    host.Frame
	Strategy string // that decided
	Result   host.Result
	Workers  []string // ids of the rows

	known   known
	below   spaces
	workers []*worker.Worker
	fields  fields
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
	t.Header, t.Labels = f.Header, f.Labels
	t.Rows, t.WorkerIDs, t.Chain = append(rows, f.Rows...), append(ids, f.WorkerIDs...), append(chain, f.Chain...)
	t.Session, t.Model, t.Tenant, t.Caller, t.Request = f.Session, f.Model, f.Tenant, f.Caller, f.Request
	s.workers = append(s.workers[:0], c.fleet.workers...)
	if f.Prefixes != nil {
		s.known, s.below = c.fleet.known, c.below
		s.known.candidates, s.known.below = s.workers, &s.below
		t.Prefixes = &s.known
	}
	if s.fields == nil {
		s.fields = fields{}
	}
	maps.DeleteFunc(s.fields, func(string, string) bool { return true })
	for _, name := range names {
		if f.Headers == nil {
			break
		}
		if v, ok := f.Headers.Header(name); ok {
			s.fields[name] = string(append([]byte(nil), v...)) // the request's memory is used again
		}
	}
	t.Headers = s.fields
	s.Strategy, s.Result = c.strategy.Name(), c.result
	s.Result.Order = nil // it is the frame's
	s.Workers = t.WorkerIDs
}
