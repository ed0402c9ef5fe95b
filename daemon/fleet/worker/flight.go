package worker

import "time"

// flight lists the requests of a worker that have not ended, the oldest first.
type flight struct {
	oldest, newest *request
	n              int
	tokens         int // of their prompts
	sequences      int // that they are to an engine
}

func (f *flight) push(r *request) {
	r.older = f.newest
	if r.older == nil {
		f.oldest = r
	} else {
		r.older.newer = r
	}
	f.newest = r
	f.n++
	f.tokens += r.tokens
	f.sequences += r.sequences
}

func (f *flight) remove(r *request) {
	if r.older == nil {
		f.oldest = r.newer
	} else {
		r.older.newer = r.newer
	}
	if r.newer == nil {
		f.newest = r.older
	} else {
		r.newer.older = r.older
	}
	r.older = nil
	r.newer = nil
	f.n--
	f.tokens -= r.tokens
	f.sequences -= r.sequences
}

// theirs counts the requests of other routers at a worker.
type theirs struct {
	n      int
	tokens int // of their prompts
	sent   uint64
}

const (
	askAgain = 1.0  // seconds until a holder is called again
	noneDue  = 1e18 // seconds: no request waits for its grace
)

// overdue returns the holders whose grace is over, counted from their last byte or from the worker's fall, and when the
// next grace ends. It asks movable which requests are given up at all. A request sent after the fall was sent because
// nobody else could take it: it goes on waiting.
func (f *flight) overdue(fell, grace, now float64, movable func(*request) bool) (late []Holder, next float64) {
	next = noneDue
	for r := f.oldest; r != nil; r = r.newer {
		if r.holder == nil || r.at > fell || !movable(r) {
			continue
		}
		due := max(fell, time.Duration(r.flow.Load()).Seconds()) + grace
		if due <= now {
			due = now + askAgain
			late = append(late, r.holder)
			r.called = true
		}
		next = min(next, due)
	}
	return late, next
}
