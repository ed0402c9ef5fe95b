package worker

// A worker that comes back has nothing in flight and an empty queue: under any rule that looks at load it gets every
// request until it has as many as the others, a burst of many times its share into a cold engine. So the pool itself
// doses it, whatever the strategy: each request sent to anybody earns the worker a part of one, and Snapshot leaves it
// out while it has not a whole one. It begins with one, so that it is used at once.
//
// In the slow start the part grows from a tenth of its share to all of it. After that it is twice its share, until the
// strategy leaves it unused (then the worker has caught up) or catchUp has passed: without this second stage the burst
// only came later, since by then long streams have filled the others further.
//
// A row whose turn it is does not carry RowSlowStart: a strategy that held the worker back a second time never used it
// at light load. The rows that do are of a worker that is shown out of turn, bound or as nobody else is there.
type slowStart struct {
	from, until float64 // 0 = none yet
	held        bool    // the pool doses it
	credit      float64 // requests that it may get
	mark        float64 // Pool.begun as of which
}

const (
	firstShare = 0.1
	maxCredit  = 2.0
	catchUp    = 60.0 // seconds after the slow start; a worker whose fair part is over twice the mean must not be held for ever
)

// startSlow begins w's slow start at time at. The caller holds p.mu.
func (p *Pool) startSlow(w *Worker, at float64) {
	w.slow = slowStart{from: at, until: at + p.conf().SlowStart.Seconds(), held: true, credit: 1, mark: p.begun}
	p.level(w)
}

// level gives w as many requests ever sent and sent lately, in its rows, as the others have by weight. Strategies break
// ties by these numbers: at light load, where all is a tie, one that was away for an hour would get everything for the
// next.
func (p *Pool) level(w *Worker) {
	sum, lately, n := 0.0, 0.0, 0.0
	for _, o := range p.workers {
		if o != w && o.health.state == up {
			sum += float64(o.sent+o.missed) / o.weight
			lately += o.lately / o.weight
			n++
		}
	}
	w.lately = max(w.lately, lately/max(1, n)*w.weight)
	if fair := sum / max(1, n) * w.weight; fair > float64(w.sent) {
		w.missed = uint64(fair) - w.sent
	}
}

// due says whether it is w's turn to be shown. share is w's fair part of all requests. The caller holds p.mu.
func (p *Pool) due(w *Worker, now, share float64) bool {
	s := &w.slow
	part := 2.0
	if now < s.until {
		part = max(firstShare, (now-s.from)/(s.until-s.from))
	}
	s.credit = min(maxCredit, s.credit+(p.begun-s.mark)*part*share)
	s.mark = p.begun
	if now >= s.until && (s.credit >= maxCredit || now >= s.until+catchUp) {
		s.held = false
		return true
	}
	return s.credit >= 1
}

// spent notes a request sent to w.
func (s *slowStart) spent() {
	if s.held {
		s.credit--
	}
}

// total is the weight of all workers that are up.
func (p *Pool) total() (sum float64) {
	for _, w := range p.workers {
		if w.health.state == up {
			sum += w.weight
		}
	}
	return max(sum, 1e-9)
}
