package worker

import "github.com/warmpath/warmpath/daemon/fleet/judge"

// This file has all changes of a worker's state by the requests that end there, as the table proofs has them.

// outcome updates w and its endpoint by the end of w's request r.
func (f *fleet) outcome(w *Worker, r *request, now float64, o judge.Outcome) {
	e := w.endpoint
	o, signs := f.ofLeaving(w, r, now, o)
	w.totals.count(o.Kind)
	tried := e.breaker.ended(r)
	p := &proofs[o.Kind]
	if p.crowds {
		e.room.refused(e.present(), now)
	}
	if tried && o.Kind == judge.Canceled && r.first == 0 {
		e.breaker.postpone(now-r.at, now)
	}
	if o.Kind == judge.Canceled || r.at < e.health.born { // r went to an earlier process
		return
	}
	if o.Kind == judge.Answered {
		f.answered(w, r, now, o, tried)
		return
	}
	if o.Kind == judge.Denied {
		f.denied(e, r, now, o.Uncompared, tried)
	}
	if o.Excused {
		f.excuse(e, r.class, o.Kind)
		if o.Kind == judge.Broken { // the request may have ended both processes
			f.suspectBy(e, p, o.Kind)
		}
		return
	}
	f.suspectBy(e, p, o.Kind)
	why := whyOf(&o)
	e.note(why, f.began.Add(seconds(now)), byRequest)
	e.failures.add(o.Kind)
	switch {
	case o.Kind == judge.Refused:
		f.drop(e, now, why)
	case p.compared || p.cause == none: // a trial that ends so has shown nothing: the next request is one again
	case e.breaker.count(p, signs, now, tried) && e.isUp():
		f.setAside(w, p.cause, why, r.number, now)
	}
}

// ofLeaving returns the outcome of r as it counts, and for how many it counts: a client that left, or a pause for which
// the answer was cut, may show that the engine hangs, or nothing.
func (f *fleet) ofLeaving(w *Worker, r *request, now float64, o judge.Outcome) (judge.Outcome, int) {
	o = excusePause(w, r, now, f.conf.ScrapeInterval.Seconds(), o)
	switch {
	case o.Kind != judge.Canceled:
	case r.called && w.breaker.trial == r:
		return hanging(now - r.at), 1
	case !o.Partly:
		if n := hangs(w, r, f.speed.slowness, now); n > 0 {
			return hanging(now - r.at), n
		}
	}
	return o, 1
}

// denied records a refusal. Whether it is the worker's fault is known once another worker has answered the request. One
// that nobody compares shows nothing: most are wrong requests.
func (f *fleet) denied(e *endpoint, r *request, now float64, uncompared, tried bool) {
	if !uncompared {
		e.records[r.class].refuse(now)
	}
	if tried && e.breaker.cause == refusing {
		e.breaker.refused = r.number
		e.breaker.postpone(e.breaker.back, now)
	}
}

// suspectBy takes from a sign what health checks are to confirm.
func (f *fleet) suspectBy(e *endpoint, p *proof, k judge.Kind) {
	switch k {
	case judge.Dying:
		e.health.dying = true
	case judge.Refused:
		e.health.closed = true
	case judge.Late:
		e.health.late = max(e.health.late, 1)
	case judge.Leaving:
		f.watcher.ScrapeSoon(e.number) // reads the start time of the present process, by which a new one is recognised
	case judge.Broken:
		f.watcher.ScrapeSoon(e.number) // it may be a new process already
	}
	if p.check {
		f.watcher.CheckSoon(e.number) // a health check decides at once, not in two seconds
	}
}

// answered records an answer of w that is no sign against it.
func (f *fleet) answered(w *Worker, r *request, now float64, o judge.Outcome, tried bool) {
	e := w.endpoint
	e.failures.add(judge.Answered)
	e.lastError.good(byRequest)
	if !o.Rejected {
		e.records[r.class].accept(r.at)
	}
	if tried {
		f.closeBreaker(e, now)
		return
	}
	e.breaker.good(r.at, now > w.slowStart.until)
}

// excuse takes back one sign against an endpoint: another worker has failed the same request in the same way.
func (f *fleet) excuse(e *endpoint, class uint8, k judge.Kind) {
	if k == judge.Denied {
		e.records[class].agree()
	}
}

// acquit takes back what the request of that number, which has ended, has counted against an endpoint.
func (f *fleet) acquit(e *endpoint, r *request, k judge.Kind, now float64) {
	f.excuse(e, r.class, k)
	p := &proofs[k]
	if p.cause == none || p.compared {
		return
	}
	switch b := &e.breaker; {
	case b.cause == none:
		b.tallies[p.cause].takeBack()
	case b.by == r.number:
		b.takeBack(p.cause, now)
		if b.cause == none {
			f.noteAll(e.ranks, event{kind: acquitted}, now)
		}
	}
}

// confirm counts a refusal of an endpoint whose request another worker has accepted. It keeps requests of that kind
// from the endpoint. The endpoint is set aside for all kinds if it accepts none.
func (f *fleet) confirm(w *Worker, r *request, o *judge.Outcome, now float64) {
	e, p := w.endpoint, &proofs[o.Kind]
	if !p.compared || r.at < e.health.born || !e.isUp() {
		return
	}
	rec := &e.records[r.class]
	rec.proven++
	tried := e.breaker.cause == p.cause && r.number == e.breaker.refused
	switch {
	case o.OfModel || e.records.accepts(now):
		if tried {
			f.closeBreaker(e, now)
		}
		if rec.proven == p.requests {
			f.noteAll(e.ranks, event{kind: refusesSome, why: whyOf(o)}, now)
		}
	case e.breaker.count(p, 1, now, tried):
		f.setAside(w, p.cause, whyOf(o), r.number, now)
	}
}
