package route

import (
	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
)

// fleet is the candidates of one request: a row for each worker that may serve it, and the memory that the rows are
// filled in.
type fleet struct {
	frame   host.Frame
	workers []*worker.Worker // of the rows, by the same index
	slots   []uint32
	matched []uint32
	caches  []prefix.WorkerStats
	known   known
	held    holds
	holders []prefix.Holder // of the prompt; empty = not looked for
	count   worker.Count

	beginning worker.Beginning // of the longest prompt
}

// reset clears the last request and keeps the memory.
func (f *fleet) reset() {
	f.frame.Reset()
	f.workers, f.holders = f.workers[:0], f.holders[:0]
	f.held.known = false
	f.beginning.Parts = f.beginning.Parts[:0]
}

// fill gets the rows of the workers that take a request. It returns why there are none.
func (f *fleet) fill(p *worker.Pool, q worker.Query) worker.Standing {
	f.frame.Rows, f.workers, f.frame.Header.Prefillers = f.frame.Rows[:0], f.workers[:0], 0
	f.slots, f.frame.WorkerIDs = f.slots[:0], f.frame.WorkerIDs[:0]
	q.Means = &f.frame.Header
	_, standing := f.add(p, q)
	return standing
}

// add gets further rows behind those that there are, and returns how many.
func (f *fleet) add(p *worker.Pool, q worker.Query) (n int, s worker.Standing) {
	from := len(f.frame.Rows)
	f.frame.Rows, f.workers, s = p.Snapshot(q, f.frame.Rows, f.workers)
	for i := from; i < len(f.workers); i++ {
		f.slots = append(f.slots, f.frame.Rows[i].Worker)
		f.frame.WorkerIDs = append(f.frame.WorkerIDs, f.workers[i].ID())
	}
	return len(f.workers) - from, s
}

// toPrefill makes a request's query that for those inside of a fence which may compute its prompt.
func toPrefill(q worker.Query, fence worker.Fence) worker.Query {
	q.Fence, q.Count, q.Tied, q.Spare, q.Half = fence, nil, false, true, true
	return q
}

// paired returns the worker that a decision names for the prompt, nil = none, or the prompt is not split.
func (f *fleet) paired(r *host.Result, a *Ask) *worker.Worker {
	if r.Pair == 0 || len(a.Prefillers) == 0 {
		return nil
	}
	return f.workers[r.Pair-1]
}

// keep drops all rows but these, which ascend.
func (f *fleet) keep(rows []int32) {
	f.frame.Keep(rows)
	for n, i := range rows {
		f.workers[n] = f.workers[i]
		f.slots[n] = f.slots[i]
	}
	f.workers, f.slots = f.workers[:len(rows)], f.slots[:len(rows)]
}

// countSessions fills how many sessions live at each worker, for a strategy that places one.
func (f *fleet) countSessions(b *session.Bindings) {
	b.FillLive(len(f.workers), func(i int) string { return f.workers[i].ID() },
		func(i int, live uint32) { f.frame.Rows[i].Sessions = live })
}

// rowOf returns the row of the worker with that key, -1 if it is no candidate.
func (f *fleet) rowOf(key uint64) int32 {
	for i := range f.frame.Rows {
		if f.frame.Rows[i].Key == key {
			return int32(i)
		}
	}
	return -1
}

// row returns the row of a worker, -1 if it is no candidate.
func (f *fleet) row(id string) int {
	for i, w := range f.workers {
		if w.ID() == id {
			return i
		}
	}
	return -1
}

// seen returns how many blocks of the prompt some worker has had before, as far as the index knows.
func (f *fleet) seen() (n int) {
	for i := range f.frame.Rows {
		n = max(n, int(f.frame.Rows[i].Predicted))
	}
	return n
}
