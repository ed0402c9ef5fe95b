package judge

import "time"

// This file has all changes of a worker's health by the requests that end there, as the table proofs has them.

// Action is what the fleet does about a worker.
type Action uint8

// The values of Action.
const (
	Nothing  Action = iota
	Shut            // closes the breaker: the trial was good
	TakeDown        // marks the worker down
	PutAside        // sets the worker aside, if the fleet can spare it
)

// Verdict is what follows from the end of a request.
type Verdict struct {
	Do      Action
	Cause   Cause // of PutAside
	Why     string
	Check   bool // a health check decides at once, not in two seconds
	Scrape  bool // the metrics show whether the process is another one
	Refuses bool // the worker refuses one kind of requests, and accepts others
	Hangs   bool // the engine does nothing, so that a client's request would wait there in vain
}

// Crowded records that an outcome of that kind came while the worker had so many requests.
func (h *Health) Crowded(k Kind, has int, now time.Duration) {
	if proofs[k].crowds {
		h.room.refused(has, now)
	}
}

// End judges the end of r. signs is for how many requests the outcome counts. settled is true when the worker's slow
// start is over.
func (h *Health) End(r *Request, o *Outcome, signs int, settled bool, now time.Duration) (v Verdict) {
	tried := h.breaker.ended(r)
	p := &proofs[o.Kind]
	if tried && o.Kind == Canceled && r.First == 0 {
		h.breaker.postpone(now-r.Sent, now)
	}
	if o.Kind == Canceled || r.Sent < h.checks.born { // r went to an earlier process
		return v
	}
	if o.Kind == Answered {
		v.Do = h.answered(r, o, settled, tried)
		return v
	}
	if o.Kind == Denied {
		h.denied(r, o.Uncompared, tried, now)
	}
	if o.Excused {
		h.excuse(r.Class, o.Kind)
		if o.Kind == Broken { // the request may have ended both processes
			h.suspectBy(&v, o.Kind)
		}
		return v
	}
	h.suspectBy(&v, o.Kind)
	v.Why, v.Hangs = o.why(), o.Hangs
	h.failures.add(o.Kind)
	switch {
	case o.Kind == Refused:
		v.Do = TakeDown
	case p.compared || p.cause == NoCause: // a trial that ends so has shown nothing: the next request is one again
	case h.breaker.count(p, signs, now, tried) && h.IsUp():
		v.Do, v.Cause = PutAside, p.cause
	}
	return v
}

// denied records a refusal. Whether it is the worker's fault is known once another worker has answered the request. One
// that nobody compares shows nothing: most are wrong requests.
func (h *Health) denied(r *Request, uncompared, tried bool, now time.Duration) {
	if !uncompared {
		h.records[r.Class].refuse(now)
	}
	if tried && h.breaker.cause == Refusing {
		h.breaker.refused = r.Number
		h.breaker.postpone(h.breaker.back, now)
	}
}

// suspectBy takes from a sign what health checks are to confirm.
func (h *Health) suspectBy(v *Verdict, k Kind) {
	switch k {
	case Dying:
		h.checks.dying = true
	case Refused:
		h.checks.closed = true
	case Late:
		h.checks.late = max(h.checks.late, 1)
	case Leaving:
		v.Scrape = true // reads the start time of the present process, by which a new one is recognised
	case Broken:
		v.Scrape = true // it may be a new process already
	}
	v.Check = proofs[k].check
}

// answered records an answer that is no sign against the worker.
func (h *Health) answered(r *Request, o *Outcome, settled, tried bool) Action {
	h.failures.add(Answered)
	h.error.good(ByRequest)
	if !o.Rejected {
		h.records[r.Class].accept(r.Sent)
	}
	if tried {
		return Shut
	}
	h.breaker.good(r.Sent, settled)
	return Nothing
}

// excuse takes back one sign: another worker has failed the same request in the same way.
func (h *Health) excuse(class uint8, k Kind) {
	if k == Denied {
		h.records[class].agree()
	}
}

// Acquit takes back what r, which has ended, has counted against the worker, and reports whether that closed the
// breaker.
func (h *Health) Acquit(r *Request, k Kind, now time.Duration) (closed bool) {
	h.excuse(r.Class, k)
	p := &proofs[k]
	if p.cause == NoCause || p.compared {
		return false
	}
	switch b := &h.breaker; {
	case b.cause == NoCause:
		b.tallies[p.cause].takeBack()
	case b.by == r.Number:
		b.takeBack(p.cause, now)
		return b.cause == NoCause
	}
	return false
}

// Confirm counts a refusal of a request that another worker has accepted. It keeps requests of that kind from the
// worker. The worker is set aside for all kinds if it accepts none.
func (h *Health) Confirm(r *Request, o *Outcome, now time.Duration) (v Verdict) {
	p := &proofs[o.Kind]
	if !p.compared || r.Sent < h.checks.born || !h.IsUp() {
		return v
	}
	v.Why = o.why()
	rec := &h.records[r.Class]
	rec.proven++
	tried := h.breaker.cause == p.cause && r.Number == h.breaker.refused
	switch {
	case o.OfModel || h.records.accepts(now):
		if tried {
			v.Do = Shut
		}
		v.Refuses = rec.proven == p.requests
	case h.breaker.count(p, 1, now, tried):
		v.Do, v.Cause = PutAside, p.cause
	}
	return v
}
