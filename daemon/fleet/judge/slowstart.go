package judge

import "time"

// SlowStart doses the requests of a worker that comes back. Such a worker has nothing in flight and an empty queue. Any
// rule that compares loads would give it every request until it has as many as the others, a burst of many times its
// share into a cold engine. So the pool itself doses it, whatever the strategy: each request sent to any worker earns
// the worker a part of one, and Snapshot leaves the worker out while it has less than a whole one. It begins with one,
// so that it is used at once.
//
// In the slow start the part grows from a tenth of its share to all of it. After that it is twice its share, until the
// strategy leaves it unused (then the worker has caught up) or catchUp has passed. Without this second stage the burst
// only came later, since by then long streams have filled the others further.
//
// A row shown in its turn does not carry RowSlowStart: a strategy that held the worker back a second time never used it
// at light load. A row carries it if its worker is shown out of turn, because the request is bound to it or no other
// worker is there. While the pool doses a worker that came after others had got requests, its row carries RowJoins:
// strategies may fill it while it is idle. Where a whole fleet begins, no row does.
type SlowStart struct {
	from, until time.Duration // 0 = none yet
	held        bool          // the pool doses it
	credit      float64       // requests that it may get
	mark        float64       // begun at the last update of credit
	behind      bool          // others had got requests before
}

const (
	firstShare = 0.1
	maxCredit  = 2.0
	catchUp    = time.Minute // after the slow start: a worker that needs over twice the mean must not be held for ever
)

// Begin starts a slow start. begun counts the requests ever sent to the fleet.
func (s *SlowStart) Begin(now, lasts time.Duration, begun float64) {
	*s = SlowStart{from: now, until: now + lasts, held: true, credit: 1, mark: begun, behind: begun > 0}
}

// Due reports whether it is the worker's turn to be shown. part is its fair part of all requests; begun counts all ever
// sent.
func (s *SlowStart) Due(now time.Duration, part, begun float64) bool {
	times := 2.0
	if now < s.until {
		times = max(firstShare, float64(now-s.from)/float64(s.until-s.from))
	}
	s.credit = min(maxCredit, s.credit+(begun-s.mark)*times*part)
	s.mark = begun
	if now >= s.until && (s.credit >= maxCredit || now >= s.until+catchUp) {
		s.held = false
		return true
	}
	return s.credit >= 1
}

// Spend records a request sent to the worker.
func (s *SlowStart) Spend() {
	if s.held {
		s.credit--
	}
}

// Joins reports whether the worker has not caught up with others that got requests before it came.
func (s *SlowStart) Joins() bool { return s.held && s.behind }

// Holds reports whether the worker gets requests only in its turn.
func (s *SlowStart) Holds() bool { return s.held }

// Runs reports whether the slow start is not over.
func (s *SlowStart) Runs(now time.Duration) bool { return now < s.until }

// Over reports whether the slow start ended before now.
func (s *SlowStart) Over(now time.Duration) bool { return now > s.until }

// OutOfTurn reports whether the slow start runs and it is not the worker's turn.
func (s *SlowStart) OutOfTurn(now time.Duration) bool { return s.Runs(now) && s.credit < 1 }
