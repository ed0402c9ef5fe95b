package route

import (
	"cmp"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// order is the workers that a request may be sent to, as rows of its fleet, and how many of them have been tried.
type order struct {
	rows   []int32
	next   int  // place in rows
	pinned bool // the order gets no more workers: the session stays at its worker
	spent  bool // the last look at the fleet found nobody new
	tried  []*worker.Worker
	some   [4]*worker.Worker // room for tried
}

// Target is a worker that may be sent to.
type Target struct {
	Worker *worker.Worker
	row    int
}

// begin makes rows the order.
func (o *order) begin(rows []int32) {
	*o = order{rows: rows}
	o.tried = o.some[:0]
}

// first returns the row that comes first, -1 if there is none.
func (o *order) first() int {
	if len(o.rows) == 0 {
		return -1
	}
	return int(o.rows[0])
}

// left returns how many rows have not been tried.
func (o *order) left() int { return len(o.rows) - o.next }

// putFirst moves a row to the front, if it is in the order.
func (o *order) putFirst(row int) {
	if i := slices.Index(o.rows, int32(row)); i > 0 {
		copy(o.rows[1:i+1], o.rows[:i])
		o.rows[0] = int32(row)
	}
}

// pin leaves the first row alone in the order.
func (o *order) pin() { o.rows, o.pinned = o.rows[:1], true }

// advance returns the next worker, which is tried then.
func (o *order) advance(f *fleet) Target {
	if len(o.tried) > 0 {
		o.preferOthers(f)
	}
	row := int(o.rows[o.next])
	o.next++
	o.tried = append(o.tried, f.workers[row])
	return Target{Worker: f.workers[row], row: row}
}

// preferOthers puts a worker at a new address before the data-parallel ranks of an address that was tried. Behind one
// port is one process: what failed at one rank fails at the next. A worker that is to be tried again stays first.
func (o *order) preferOthers(f *fleet) {
	rest := o.rows[o.next:]
	if slices.Contains(o.tried, f.workers[rest[0]]) {
		return
	}
	i := slices.IndexFunc(rest, func(row int32) bool { return !o.triedAt(f.workers[row].URL()) })
	if i > 0 {
		other := rest[i]
		copy(rest[1:i+1], rest[:i])
		rest[0] = other
	}
}

// triedAt reports whether a worker at the URL has been tried.
func (o *order) triedAt(url string) bool {
	return slices.ContainsFunc(o.tried, func(w *worker.Worker) bool { return w.URL() == url })
}

// triedSlots returns the workers that were tried, as a bit for each by its slot modulo 64.
func (o *order) triedSlots() (set uint64) {
	for _, w := range o.tried {
		set |= 1 << (w.Slot() % 64)
	}
	return set
}

// restart makes the rows that have not been tried the order, the least busy first.
func (o *order) restart(f *fleet) {
	o.rows = o.rows[:0]
	o.next = 0
	for i, w := range f.workers {
		if !slices.Contains(o.tried, w) {
			o.rows = append(o.rows, int32(i))
		}
	}
	o.spent = len(o.rows) == 0
	rows := f.frame.Rows
	slices.SortStableFunc(o.rows, func(a, b int32) int { return cmp.Compare(rows[a].InFlight, rows[b].InFlight) })
}
