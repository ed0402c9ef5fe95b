package worker

// queue is the prefill that a worker still has to do: the requests sent there without a first byte, in order of
// dispatch. Times are seconds since the pool began.
type queue struct {
	front, back *Ticket
	pend        float64 // sum of est
	tokens      int     // sum of prompt tokens
	last        float64 // when its last prefill ended: a first byte, or as predicted for an answer in one piece
	group       group
}

func (q *queue) push(t *Ticket) {
	t.prev, t.queued = q.back, true
	if q.back == nil {
		q.front = t
	} else {
		q.back.next = t
	}
	q.back = t
	q.pend += t.est
	q.tokens += t.tokens
}

func (q *queue) remove(t *Ticket) {
	if !t.queued {
		return
	}
	if t.prev == nil {
		q.front = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		q.back = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next, t.queued = nil, nil, false
	q.tokens -= t.tokens
	q.pend -= t.est
	if q.front == nil {
		q.pend = 0 // sums of floats do not come back to zero by themselves
	}
}

func (q *queue) clear() {
	for q.front != nil {
		q.remove(q.front)
	}
	*q = queue{}
}

// wait is W: pend, less what must be done of the oldest by now.
//
//	W = max(0, m*pend - min(now - headSince, m*head))    headSince = the later of its dispatch and the last first byte
//
// Worked: m 2, two requests of est 1 sent at 0 and 0.5, nothing came: W(0.5) = 3.5, W(2) = 2, W(9) = 2.
func (q *queue) wait(now, m float64) float64 {
	if q.front == nil {
		return 0
	}
	done := max(0, min(now-q.headSince(), m*q.front.est))
	return max(0, m*q.pend-done)
}

func (q *queue) headSince() float64 { return max(q.front.at, q.last) }

// expire takes answers in one piece from the queue's front when their predicted time is over: their first byte comes
// after the last token, and until then they would count as prefill.
func (q *queue) expire(now, m float64) {
	for q.front != nil && q.front.whole {
		done := q.headSince() + m*q.front.est
		if done > now {
			return
		}
		q.remove(q.front)
		q.last = done
	}
}

// first notes t's first byte. Answers in one piece that were sent before it are prefilled too: they join its group.
func (q *queue) first(t *Ticket, now float64) {
	if !t.queued {
		return
	}
	if t.whole {
		q.remove(t)
		return
	}
	for q.front != t && q.front.whole {
		q.join(q.front, now)
		q.remove(q.front)
	}
	q.join(t, now)
	q.remove(t)
	q.last = now
}

// together is how close first bytes of one engine step come, in seconds.
const together = 1e-4

// group is the requests whose first bytes came together: one engine step ended their prefill, so only the sum of their
// work explains its time.
type group struct {
	n    int
	at   float64 // earliest dispatch
	prev float64 // end of the prefill before
	last float64 // newest first byte
	est  float64
	cold int  // new tokens of prompts less than half cached
	warm bool // a prompt at least half cached brought more than 1,024 new tokens
}

// minSample is how many new tokens a sample needs: below, the step's fixed cost is measured. A warm prompt that brings
// as many is no sample, as most of its est rests on a guess of what is cached.
const minSample = 1024

func (q *queue) join(t *Ticket, now float64) {
	g := &q.group
	if g.n == 0 {
		*g = group{at: t.at, prev: q.last}
	}
	g.n++
	g.at = min(g.at, t.at)
	g.last = now
	g.est += t.est
	fresh := max(1, t.tokens-t.cached)
	if 2*t.cached < t.tokens {
		g.cold += fresh
	} else if fresh > minSample {
		g.warm = true
	}
}

// sample gives the slowness that the last group showed, once it is complete.
func (q *queue) sample(now float64) (x float64, ok bool) {
	g := q.group
	if g.n == 0 || now-g.last <= together {
		return 0, false
	}
	q.group = group{}
	if g.warm || g.cold < minSample || g.est <= 0 {
		return 0, false
	}
	x = (g.last - max(g.at, g.prev)) / g.est
	return x, x > 0
}
