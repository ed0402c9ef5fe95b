package worker

import (
	"cmp"
	"time"
)

// cause is why a breaker is open.
type cause uint8

const (
	none    cause = iota
	failing       // failed answers in a row
	leaving       // an answer of its own told that it is going
)

// breaker keeps requests from a worker that is up and does not do its work. Closed: cause none. Open: until a time.
// Half-open: from then on; one trial request at a time, and its end decides.
type breaker struct {
	cause cause
	why   string
	until float64
	back  float64 // the back-off in force, kept after closing for the next one; 0 = the first
	trial *Ticket // under way; nil = none
}

const (
	maxStreak  = 5    // failed answers in a row that open it
	maxBackOff = 30.0 // seconds, for failures
	firstLeave = 5.0  // seconds until a leaving worker is tried: one that was paused and not stopped comes back without a restart
	maxLeave   = 60.0
	proven     = 1.0 // seconds for which a trial's answer has flowed, that count as its good end
)

// BreakerState is what the breaker of a worker lets through. Its numbers are those of the metric.
type BreakerState uint8

// The values of BreakerState.
const (
	Closed   BreakerState = iota // every request
	HalfOpen                     // one trial request at a time
	Open                         // none
)

// String returns the word for people and their scripts.
func (s BreakerState) String() string { return [...]string{"closed", "half-open", "open"}[s] }

func (b *breaker) state(now float64) BreakerState {
	switch {
	case b.cause == none:
		return Closed
	case now < b.until:
		return Open
	}
	return HalfOpen
}

// standing is the worker's while the breaker is not closed.
func (b *breaker) standing() Standing {
	if b.cause == leaving {
		return Draining
	}
	return Ejected
}

// lets says whether a request may go to the worker now.
func (b *breaker) lets(now float64) bool {
	return b.cause == none || now >= b.until && b.trial == nil
}

// reset closes the breaker of a worker that died or is a new process.
func (b *breaker) reset() { *b = breaker{} }

// passive takes what an exchange says of w. The caller holds p.mu.
func (p *Pool) passive(w *Worker, t *Ticket, now float64, o Outcome) []event {
	w.totals.count(o.Kind)
	b, h := &w.breaker, &w.health
	tried := b.trial == t
	if tried {
		b.trial = nil
	}
	if o.Kind == Canceled || t.at < h.born { // of a process that is no more
		return nil
	}
	w.faults.add(o.Kind)
	if o.Kind == Answered {
		return p.passed(w, now, tried)
	}
	why := cmp.Or(o.Err, [...]string{Failed: "failed answer", Broken: "connection broke", Refused: "connection refused",
		Leaving: "its answer told that it is going"}[o.Kind])
	h.note(why, p.began.Add(time.Duration(now*float64(time.Second))), byRequest)
	if o.Kind == Leaving {
		return p.leave(w, now, why, tried)
	}
	p.hooks.Watcher.CheckSoon(w.number) // let the health check decide now, not in two seconds
	if o.Kind == Refused {
		return p.fell(w, now, why)
	}
	h.streak++
	open := b.cause != none && !tried
	if h.state != up || open || !tried && h.streak < maxStreak {
		return nil
	}
	if b.cause == leaving { // the trial failed in another way: it is no better for that
		return p.leave(w, now, why, true)
	}
	if !p.mayEject(w) {
		b.cause = none // a failed trial of one that is needed
		return nil
	}
	return p.eject(w, now, why)
}

// passed takes a good answer.
func (p *Pool) passed(w *Worker, now float64, tried bool) []event {
	w.health.good(byRequest)
	if tried {
		return p.shut(w, now)
	}
	b := &w.breaker
	w.health.streak = 0
	if b.cause == none && now > w.slow.until {
		b.back = 0
	}
	return nil
}

// shut closes w's breaker after a good trial. The worker has its cache still, but its load is what the others had long
// ago.
func (p *Pool) shut(w *Worker, now float64) []event {
	w.breaker.cause, w.breaker.trial, w.health.streak = none, nil, 0
	p.startSlow(w, now)
	p.panicked = false
	return []event{{w: w, kind: closed}}
}

// tried closes the breaker of a worker whose trial still runs and has proven itself: a long stream is not waited for.
func (p *Pool) tried(w *Worker, now float64) []event {
	if t := w.breaker.trial; t != nil && t.seen && now-t.first >= proven {
		return p.shut(w, now)
	}
	return nil
}

// mayEject keeps half of the workers that are there: if all fail, the fault is in the requests or in what the workers
// share.
func (p *Pool) mayEject(w *Worker) bool {
	there, out := 0, 1
	for _, o := range p.workers {
		if o.health.state != up || o.draining || o.breaker.cause == leaving {
			continue
		}
		there++
		if o != w && o.breaker.cause == failing {
			out++
		}
	}
	return 2*out <= there
}

// eject opens w's breaker for its failures.
func (p *Pool) eject(w *Worker, now float64, why string) []event {
	b := &w.breaker
	b.back = min(maxBackOff, max(p.conf().HealthInterval.Seconds(), 2*b.back))
	b.cause, b.why, b.until = failing, why, now+b.back
	w.health.streak, w.slow = 0, slowStart{}
	w.totals.ejected++
	return []event{{w: w, kind: ejected, why: why, wait: seconds(b.back)}}
}

// leave takes w for draining. Its other requests that end so while it is open say nothing new. There is no half that
// stays: what it is sent comes back unanswered for sure.
func (p *Pool) leave(w *Worker, now float64, why string, tried bool) []event {
	b := &w.breaker
	if w.health.state != up || b.cause == leaving && !tried {
		return nil
	}
	if b.cause == leaving {
		b.back = min(maxLeave, 2*b.back)
	} else {
		b.back = firstLeave
		w.totals.left++
	}
	b.cause, b.why, b.until, b.trial = leaving, why, now+b.back, nil
	w.slow = slowStart{}
	p.hooks.Watcher.ScrapeSoon(w.number) // its process as of now, to know a new one by
	return []event{{w: w, kind: told, why: why, wait: seconds(b.back), tokens: w.inFlight}}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
