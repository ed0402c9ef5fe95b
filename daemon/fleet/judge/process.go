package judge

import (
	"math"
	"slices"
	"time"
)

// process is what the start times on an endpoint's pages of metrics show. It outlives a death, to recognise a new
// process.
type process struct {
	began  float64       // of the present one, as last read; 0 = not known
	at     time.Duration // when it was last read
	before []float64     // start times that were current before, the latest last
	// many: the pages are of several processes in turn. A balancer stands behind the URL, and no page shows a restart.
	many bool
}

// maxBefore bounds process.before: a balancer over more processes than this, none asked twice in a row, looks like
// restarts.
const maxBefore = 16

// ProcessTurn is what the start time on a page shows.
type ProcessTurn uint8

// The values of ProcessTurn.
const (
	SameProcess ProcessTurn = iota // or nothing is known
	NewProcess
	OldProcess // one that was there before: the first proof of a balancer
)

// read records the start time on a page, 0 if the page has none. A process never comes back: a start time that was
// there before another one shows that both are alive.
func (p *process) read(began float64) ProcessTurn {
	switch {
	case began == 0:
		return SameProcess
	case p.began != 0 && same(began, p.began):
		p.began = began // it may drift
		return SameProcess
	case p.many || p.began == 0:
		p.began = began
		return SameProcess
	case slices.ContainsFunc(p.before, func(b float64) bool { return same(b, began) }):
		p.many = true
		p.began = began
		p.before = nil
		return OldProcess
	}
	p.before = append(p.before, p.began)
	if len(p.before) > maxBefore {
		p.before = slices.Delete(p.before, 0, 1)
	}
	p.began = began
	return NewProcess
}

// seen reports whether a page that came after a time shows the present process, if its pages show one at all: a worker
// that is started anew at once answers its health checks as before.
func (p *process) seen(since time.Duration) bool { return p.began == 0 || p.at > since }

// same reports whether two start times are of one process: some exporters compute it anew for each page.
func same(a, b float64) bool { return math.Abs(a-b) <= 1 }
