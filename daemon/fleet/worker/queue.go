package worker

import (
	"time"

	"github.com/warmpath/warmpath/cache/parts/linked"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
)

// queue holds the prefill that a worker has still to do: the requests sent there without a first byte, in order of
// dispatch.
type queue struct {
	linked.List[request]
	pend   float64       // sum of est
	tokens int           // sum of prompt tokens
	last   time.Duration // when its last prefill ended: a first byte, or as predicted for an answer in one piece
	group  group
	pace   float64 // slowness by the last group
}

func inQueue(r *request) *linked.Links[request] { return &r.inQueue }

func (q *queue) push(r *request) {
	q.Add(r, inQueue)
	r.queued = true
	q.pend += r.est
	q.tokens += r.tokens
}

func (q *queue) remove(r *request) {
	if !r.queued {
		return
	}
	q.Remove(r, inQueue)
	r.queued = false
	q.tokens -= r.tokens
	q.pend -= r.est
	if q.First == nil {
		q.pend = 0 // a sum of floats does not return to zero by itself
	}
}

func (q *queue) clear() {
	for q.First != nil {
		q.remove(q.First)
	}
	*q = queue{}
}

// wait returns W: pend, less the work that must be done by now on the oldest request.
//
//	W = max(0, m*pend - min(now - headSince, m*head))    headSince = the later of its dispatch and the last first byte
//
// Worked: m 2, two requests of est 1 sent at 0 and 0.5, nothing came: W(0.5) = 3.5, W(2) = 2, W(9) = 2.
func (q *queue) wait(now time.Duration, m float64) float64 {
	if q.First == nil {
		return 0
	}
	done := max(0, min(measure.InSeconds(now-q.headSince()), m*q.First.est))
	return max(0, m*q.pend-done)
}

// oneStep is how far apart the answers to the prompts of one step come.
const oneStep = 20 * time.Millisecond

func (q *queue) headSince() time.Duration { return max(q.First.Sent, q.last) }

// ahead returns the seconds of prefill that surely come before a request; 0 = none, or its own has ended. The worker
// may be twice as fast as it was, and an answer that has not arrived may be on its way: so all the time since the last
// one may have gone into the prompts of the queue. Directly after an answer nothing is sure: an engine computes several
// prompts in one step, and their answers come together. What the last ones show counts before the mean has followed.
func (q *queue) ahead(r *request, now time.Duration, m float64) float64 {
	if !r.queued || q.First == r || q.last > 0 && now-q.last < oneStep {
		return 0
	}
	m = max(m, min(q.pace, 4*m))
	sum := -(now - q.headSince()).Seconds()
	for other := q.First; other != r; other = other.inQueue.Next {
		sum += m / 2 * other.est
	}
	return max(0, sum)
}

// expire removes answers in one piece from the queue's front when their predicted time is over: their first byte comes
// after the last token, and until then they would count as prefill.
func (q *queue) expire(now time.Duration, m float64) {
	for q.First != nil && q.First.Whole {
		done := q.headSince() + judge.Seconds(m*q.First.est)
		if done > now {
			return
		}
		q.remove(q.First)
		q.last = done
	}
}

// firstByte records r's first byte. Answers in one piece that were sent before r are prefilled too: they join its
// group.
func (q *queue) firstByte(r *request, now time.Duration) {
	if !r.queued {
		return
	}
	if r.Whole {
		q.remove(r)
		return
	}
	for q.First != r && q.First.Whole {
		q.group.add(q.First, q.last, now)
		q.remove(q.First)
	}
	q.group.add(r, q.last, now)
	q.remove(r)
	q.last = now
}

// passed records the first byte of another router's request: its prefill is over, and so is that of the answers in one
// piece that were sent before it. It takes no sample of the worker's speed, as the other router does.
func (q *queue) passed(r *request, now time.Duration) {
	if !r.queued {
		return
	}
	if !r.Whole {
		for q.First != r && q.First.Whole {
			q.remove(q.First)
		}
		q.last = max(q.last, now)
	}
	q.remove(r)
}

// sample returns the slowness of the last group of first bytes, once the group is complete.
func (q *queue) sample(now time.Duration) (x float64, ok bool) {
	if q.group.n == 0 || now-q.group.last <= together {
		return 0, false
	}
	x, ok = q.group.slowness()
	q.group, q.pace = group{}, x
	return x, ok
}
