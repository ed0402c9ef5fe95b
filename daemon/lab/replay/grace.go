package replay

import (
	"context"
	"sync"
	"time"
)

// grace ends a run so long after the last request was due. That time is unknown beforehand, as a request may wait for
// an answer. Safe for concurrent use.
type grace struct {
	length time.Duration
	timer  *time.Timer

	mu   sync.Mutex // guards last
	last time.Time
}

func newGrace(length time.Duration, abort context.CancelCauseFunc) *grace {
	return &grace{length: length, last: time.Now(), timer: time.AfterFunc(length, func() { abort(errDeadline) })}
}

// extend records that a request is due then.
func (g *grace) extend(due time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if due.After(g.last) {
		g.last = due
		g.timer.Reset(time.Until(due) + g.length)
	}
}

func (g *grace) stop() { g.timer.Stop() }
