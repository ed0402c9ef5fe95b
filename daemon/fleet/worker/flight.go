package worker

import (
	"time"

	"github.com/warmpath/warmpath/cache/parts/linked"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// flight lists the requests of a worker that have not ended, the oldest first.
type flight struct {
	linked.List[request]
	n         int
	tokens    int // of their prompts
	sequences int // that they are to an engine
}

func inFlight(r *request) *linked.Links[request] { return &r.inFlight }

func (f *flight) push(r *request) {
	f.Add(r, inFlight)
	f.n++
	f.tokens += r.tokens
	f.sequences += r.sequences
}

func (f *flight) remove(r *request) {
	f.Remove(r, inFlight)
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

// askAgain is the time until a holder is called again.
const askAgain = time.Second

// overdue returns the holders whose grace is over, counted from their last byte or from the worker's fall, and when
// the next grace ends, 0 if no request waits for that. It asks movable which requests are given up at all. A request
// that was sent after the worker went down had no other worker: it continues to wait.
func (f *flight) overdue(h *judge.Health, grace, now time.Duration,
	movable func(*request) bool) (late []Holder, next time.Duration) {
	fell := h.Fell()
	for r := f.First; r != nil; r = r.inFlight.Next {
		if r.holder == nil || r.Sent > fell || !movable(r) {
			continue
		}
		due := max(fell, r.LastByte()) + grace
		if due <= now {
			due = now + askAgain
			late = append(late, r.holder)
			r.Called = true
		}
		if next == 0 || due < next {
			next = due
		}
	}
	return late, next
}
