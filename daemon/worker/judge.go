package worker

// The changes of what a worker is: by its health checks, by the requests that end there, by its metrics.

// healthy records a good health check.
func (f *fleet) healthy(w *Worker, now float64) {
	w.health.silent = 0
	if w.place != configured { // removed: its health only decides how long its last requests may wait
		w.health.state = up
		w.health.fell = 0
		return
	}
	w.lastError.good(byHealth)
	if !w.isUp() {
		f.raise(w, now)
	}
}

// unhealthy records a failed health check. proof is true if the check itself proves death: nothing listens, or the
// engine answered 5xx.
func (f *fleet) unhealthy(w *Worker, now float64, why string, proof bool) {
	configured := w.place == configured
	if configured {
		w.note(why, f.began.Add(seconds(now)), byHealth)
	}
	switch dead := w.health.hush(proof, w.flows(seconds(now))); {
	case !dead:
	case configured:
		f.drop(w, now, why)
	case w.health.fell == 0: // removed: its health only decides how long its last requests may wait
		w.health.fall(now)
		f.grace(w)
	}
}

// raise marks w up.
func (f *fleet) raise(w *Worker, now float64) {
	back := w.health.rise(now)
	w.breaker.reset()
	w.lastError.over = true
	if back {
		f.startSlow(w, now)
	}
	f.up++
	f.panicked = false
	f.note(w, event{kind: raised}, now)
}

// drop marks w down.
func (f *fleet) drop(w *Worker, now float64, why string) {
	if w.health.state == down {
		return
	}
	if w.isUp() {
		f.up--
	}
	w.health.fall(now)
	f.grace(w)
	w.forget()
	f.note(w, event{kind: dropped, why: why}, now)
}

// restart records that w runs in a new process, though no health check saw it down.
func (f *fleet) restart(w *Worker, now float64) {
	w.forget()
	w.totals.restarts++
	w.health.born = now
	f.startSlow(w, now)
	f.panicked = false
	f.note(w, event{kind: restarted}, now)
}

// scraped records a page of metrics. Of a worker that was killed and came back between two health checks nothing but
// the start time of its process tells.
func (f *fleet) scraped(w *Worker, m Metrics, now float64) {
	if w.isNewProcess(&m) {
		f.restart(w, now)
	}
	if n := w.read(m, f.conf.c1, now); n > 0 {
		f.compare(w, n)
	}
	if w.resize() {
		f.note(w, event{kind: resized, tokens: w.capacity.inForce}, now)
	}
}

// outcome updates w by how its request r has ended.
func (f *fleet) outcome(w *Worker, r *request, now float64, o Outcome) {
	w.totals.count(o.Kind)
	tried := w.breaker.ended(r)
	if o.Kind == Canceled || r.at < w.health.born { // of a process that is no more
		return
	}
	w.failures.add(o.Kind)
	if o.Kind == Answered {
		w.lastError.good(byRequest)
		if tried {
			f.closeBreaker(w, now)
			return
		}
		w.breaker.good(now > w.slowStart.until)
		return
	}
	why := o.why()
	w.note(why, f.began.Add(seconds(now)), byRequest)
	if o.Kind == Leaving {
		f.leave(w, now, why, tried)
		return
	}
	f.watcher.CheckSoon(w.number) // let the health check decide now, not in two seconds
	if o.Kind == Refused {
		f.drop(w, now, why)
		return
	}
	if w.breaker.fails(tried) && w.isUp() {
		f.open(w, now, why)
	}
}

// open opens w's breaker for failures, if the fleet can do without w.
func (f *fleet) open(w *Worker, now float64, why string) {
	switch {
	case w.breaker.cause == leaving: // the trial failed in another way: it is no better for that
		f.leave(w, now, why, true)
	case !f.mayEject(w):
		w.breaker.cause = none // a failed trial of one that is needed
	default:
		w.breaker.eject(why, now, f.conf.HealthInterval.Seconds())
		w.slowStart = slowStart{}
		w.totals.ejected++
		f.note(w, event{kind: ejected, why: why, wait: seconds(w.breaker.back)}, now)
	}
}

// mayEject reports whether w may be ejected. Half of the workers that are there always stay: if all fail, the fault is
// in the requests or in what the workers share.
func (f *fleet) mayEject(w *Worker) bool {
	there, out := 0, 1
	for _, o := range f.workers {
		if !o.isUp() || o.draining || o.breaker.cause == leaving {
			continue
		}
		there++
		if o != w && o.breaker.cause == failing {
			out++
		}
	}
	return 2*out <= there
}

// leave marks w as draining, because an answer of it said that it is shutting down. Further answers of that kind change
// nothing while its breaker is open. Here no half of the fleet is kept: what such a worker is sent comes back
// unanswered.
func (f *fleet) leave(w *Worker, now float64, why string, tried bool) {
	again := w.breaker.cause == leaving
	if !w.isUp() || again && !tried {
		return
	}
	if !again {
		w.totals.left++
	}
	w.breaker.leave(why, now)
	w.slowStart = slowStart{}
	f.watcher.ScrapeSoon(w.number) // its process as of now, to know a new one by
	f.note(w, event{kind: wentLeaving, why: why, wait: seconds(w.breaker.back), tokens: w.flight.n}, now)
}

// closeBreaker closes w's breaker after a good trial and starts w slowly: it still has its cache, but none of the load
// that the others have.
func (f *fleet) closeBreaker(w *Worker, now float64) {
	w.breaker.shut()
	f.startSlow(w, now)
	f.panicked = false
	f.note(w, event{kind: closed}, now)
}

// drain takes w out of the snapshots, or puts it back.
func (f *fleet) drain(w *Worker, on bool, now float64) {
	if w.draining == on {
		return
	}
	w.draining = on
	if on {
		f.note(w, event{kind: drained, tokens: w.flight.n}, now)
		return
	}
	f.panicked = false
	f.note(w, event{kind: undrained}, now)
}

// countPanic counts a request that was given workers that are not up. It is logged once until one is up again.
func (f *fleet) countPanic() {
	f.panics++
	if !f.panicked {
		f.panicked = true
		f.events = append(f.events, event{kind: inPanic})
	}
}

// startSlow begins w's slow start.
func (f *fleet) startSlow(w *Worker, now float64) {
	w.slowStart.begin(now, f.conf.SlowStart.Seconds(), f.rates.begun)
	f.level(w)
}

// level raises w's counts of requests, ever and lately, to what the others have by weight. Strategies break ties by
// these numbers. At light load, where all workers tie, one that was away for an hour would else get every request of
// the next hour.
func (f *fleet) level(w *Worker) {
	sum, lately, n := 0.0, 0.0, 0.0
	for _, o := range f.workers {
		if o != w && o.isUp() {
			sum += float64(o.sent+o.missed) / o.weight
			lately += o.share.requests / o.weight
			n++
		}
	}
	w.share.requests = max(w.share.requests, lately/max(1, n)*w.weight)
	if fair := sum / max(1, n) * w.weight; fair > float64(w.sent) {
		w.missed = uint64(fair) - w.sent
	}
}
