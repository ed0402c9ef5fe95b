package route

import (
	"cmp"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// order is the workers that a request may be sent to, as rows of its fleet, and how many of them have been tried.
type order struct {
	rows   []int32
	next   int // place in rows
	named  int // leading rows that the strategy has named
	by     giver
	pinned bool             // the order gets no more workers: the session stays at its worker
	spent  bool             // the last look at the fleet found nobody new
	fenced bool             // nobody but those in only may get the request
	only   []*worker.Worker // in the strategy's order
	tried  []*worker.Worker
	last   *worker.Worker    // that advance returned
	anew   bool              // the host has made the order since
	some   [4]*worker.Worker // room for tried
}

// giver is who gave the place in the order to the worker that was tried last.
type giver uint8

const (
	byChoice giver = iota // it came first, or none was tried yet
	byName                // the strategy named it behind the first
	byHost
)

// Target is a worker that may be sent to.
type Target struct {
	Worker *worker.Worker
	Handed bool // another worker computes the prompt, whose KV comes from there
	Coming bool // and that comes first: the worker gets the request later, see Trip.Arrive
	row    int
}

// begin makes a decision the order.
func (o *order) begin(r *host.Result, f *fleet) {
	*o = order{rows: r.Order, named: r.Named}
	o.tried = o.some[:0]
	if r.Flags&abi.FlagOnly != 0 {
		o.fence(r.Order, f)
	}
}

// fence keeps the request to the workers of these rows from now on.
func (o *order) fence(rows []int32, f *fleet) {
	o.fenced = true
	for _, row := range rows {
		o.only = append(o.only, f.workers[row])
	}
}

// may reports whether a worker may get the request.
func (o *order) may(w *worker.Worker) bool { return !o.fenced || slices.Contains(o.only, w) }

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
	moved := len(o.tried) > 0 && o.preferOthers(f)
	switch {
	case moved || o.anew || o.next > 0 && o.next >= o.named:
		o.by = byHost
	case o.next > 0:
		o.by = byName
	}
	o.anew = false
	row := int(o.rows[o.next])
	o.next++
	o.last = f.workers[row]
	o.tried = append(o.tried, o.last)
	return Target{Worker: o.last, row: row}
}

// preferOthers puts a worker at a new address before the data-parallel ranks of an address that was tried. Behind one
// port is one process: what failed at one rank fails at the next. A worker that is to be tried again stays first. It
// reports whether it has changed the order.
func (o *order) preferOthers(f *fleet) bool {
	rest := o.rows[o.next:]
	if slices.Contains(o.tried, f.workers[rest[0]]) {
		return false
	}
	i := slices.IndexFunc(rest, func(row int32) bool { return !o.triedAt(f.workers[row].URL()) })
	if i > 0 {
		other := rest[i]
		copy(rest[1:i+1], rest[:i])
		rest[0] = other
	}
	return i > 0
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
	o.named, o.anew = 0, true
	for i, w := range f.workers {
		if !slices.Contains(o.tried, w) && o.may(w) {
			o.rows = append(o.rows, int32(i))
		}
	}
	o.spent = len(o.rows) == 0
	rows := f.frame.Rows
	slices.SortStableFunc(o.rows, func(a, b int32) int { return cmp.Compare(rows[a].InFlight, rows[b].InFlight) })
}
