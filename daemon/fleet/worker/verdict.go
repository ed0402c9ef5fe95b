package worker

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// outcome updates w and its endpoint by the end of w's request r.
func (f *fleet) outcome(w *Worker, r *request, now time.Duration, o judge.Outcome) {
	e := w.endpoint
	signs := 1
	if o.Kind == judge.Leaving && w.engine.Rested(r.Sent) { // a pause by mode abort ends what runs: the worker stays
		o = judge.Outcome{Kind: judge.Canceled}
	}
	if o.Kind == judge.Canceled || o.Stalled {
		wait := judge.Wait{Long: longWait(f, w, r.est), Reading: f.conf.ScrapeInterval}
		o, signs = w.engine.CountsAs(&e.health, &r.Request, o, wait, now)
	}
	w.totals.count(o.Kind)
	e.health.Crowded(o.Kind, e.present(), now)
	v := e.health.End(&r.Request, &o, signs, w.slowStart.Over(now), now)
	if v.Why != "" {
		e.health.NoteError(v.Why, f.began.Add(now), judge.ByRequest)
	}
	f.carryOut(w, r, &v, now)
}

// carryOut does what a verdict about w's request r demands.
func (f *fleet) carryOut(w *Worker, r *request, v *judge.Verdict, now time.Duration) {
	e := w.endpoint
	if v.Scrape {
		f.watcher.ScrapeSoon(e.number)
	}
	if v.Check {
		f.watcher.CheckSoon(e.number)
	}
	switch v.Do {
	case judge.Shut:
		f.closeBreaker(e, now)
	case judge.TakeDown:
		f.drop(e, now, v.Why)
	case judge.PutAside:
		f.setAside(w, v, r.Number, now)
	}
	if v.Refuses {
		f.noteAll(e.ranks, event{kind: refusesSome, why: v.Why}, now)
	}
}

// oldestWaiting returns the request that has waited for longest at w for its first byte; nil = none waits.
func oldestWaiting(w *Worker) *judge.Request {
	for r := w.flight.First; r != nil; r = r.inFlight.Next {
		if r.Waits() {
			return &r.Request
		}
	}
	return nil
}

// longWait returns how long a request of that estimate waits at w until its wait shows something. The prompt that is
// computed now may be a long one.
func longWait(f *fleet, w *Worker, est float64) time.Duration {
	if w.queue.First != nil {
		est = max(est, w.queue.First.est)
	}
	return judge.LongWait(f.speed.Value * w.speed.Times() * est)
}

// mayBePaused reports whether the worker is to be asked whether the engine of w is paused.
func mayBePaused(w *Worker) bool { return w.engine.MayBePaused(oldestWaiting(w)) }
