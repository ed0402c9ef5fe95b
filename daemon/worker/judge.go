package worker

// This file has all changes of a worker's state by its health checks, by the requests that end there, and by its
// metrics.

// healthy records a good health check.
func (f *fleet) healthy(e *endpoint, now float64) {
	e.health.silent = 0
	if e.place != configured { // removed: its health only decides how long its last requests may wait
		e.health.state = up
		e.health.fell = 0
		return
	}
	e.lastError.good(byHealth)
	if !e.isUp() {
		f.raise(e, now)
	}
}

// unhealthy records a failed health check. proof is true if the check itself proves death: nothing listens, or the
// engine answered 5xx.
func (f *fleet) unhealthy(e *endpoint, now float64, why string, proof bool) {
	configured := e.place == configured
	if configured {
		e.note(why, f.began.Add(seconds(now)), byHealth)
	}
	switch dead := e.health.hush(proof, e.flows(seconds(now))); {
	case !dead:
	case configured:
		f.drop(e, now, why)
	case e.health.fell == 0: // removed: its health only decides how long its last requests may wait
		f.fall(e, now)
	}
}

// raise marks an endpoint up.
func (f *fleet) raise(e *endpoint, now float64) {
	back := e.health.rise(now)
	e.breaker.reset()
	e.lastError.over = true
	for _, w := range e.ranks {
		if back {
			f.startSlow(w, now)
		}
		f.up++
	}
	f.panicked = false
	f.noteAll(e.ranks, event{kind: raised}, now)
}

// drop marks an endpoint down.
func (f *fleet) drop(e *endpoint, now float64, why string) {
	if e.health.state == down {
		return
	}
	if e.isUp() {
		f.up -= len(e.ranks)
	}
	f.fall(e, now)
	e.forget()
	f.noteAll(e.ranks, event{kind: dropped, why: why}, now)
}

// fall begins the grace of all requests in flight at an endpoint, also at removed ranks.
func (f *fleet) fall(e *endpoint, now float64) {
	e.health.fall(now)
	for _, w := range f.taken {
		if w.endpoint == e {
			f.grace(w)
		}
	}
}

// restart records that an endpoint has a new process although no health check found it down.
func (f *fleet) restart(e *endpoint, now float64) {
	e.forget()
	e.health.born = now
	for _, w := range e.ranks {
		w.totals.restarts++
		f.startSlow(w, now)
	}
	f.panicked = false
	f.noteAll(e.ranks, event{kind: restarted}, now)
}

// scraped records a page of metrics. If a worker was killed and came back between two health checks, only the start
// time of its process on the page shows it.
func (f *fleet) scraped(e *endpoint, p *Page, now float64) {
	if e.isNewProcess(p.Process) {
		f.restart(e, now)
	}
	if p.Process != 0 {
		e.process = p.Process
	}
	e.lastError.good(byMetrics)
	if n := len(p.Engines); n > 0 && e.learns() && e.believes(n) {
		f.setRanks(e, n, now)
		f.listWorkers()
	}
	switch {
	case len(e.ranks) == 1:
		f.read(e.ranks[0], p.Metrics, now)
	case len(p.Engines) == len(e.ranks):
		e.isOdd(len(p.Engines))
		for r, w := range e.ranks {
			f.read(w, p.Engines[r], now)
		}
	case !e.learns() && e.isOdd(len(p.Engines)):
		f.noteAll(e.ranks, event{kind: odd, tokens: len(p.Engines)}, now)
	}
}

// read records the metrics of w's engine.
func (f *fleet) read(w *Worker, m Metrics, now float64) {
	if n := w.read(m, f.conf.c1, now); n > 0 {
		f.compare(w, n)
	}
	if w.resize() {
		f.note(w, event{kind: resized, tokens: w.capacity.inForce}, now)
	}
}

// counted records the number of engines that an endpoint reports before it is up.
func (f *fleet) counted(e *endpoint, n int, now float64) {
	if e.place != configured || !e.learns() || n < 1 {
		return
	}
	f.setRanks(e, n, now)
	f.listWorkers()
}

// outcome updates w and its endpoint by the end of w's request r.
func (f *fleet) outcome(w *Worker, r *request, now float64, o Outcome) {
	e := w.endpoint
	o = excused(w, r, now, f.conf.ScrapeInterval.Seconds(), o)
	fails := 1
	if o.Kind == Canceled && !o.Partly {
		if n := f.hangs(w, r, now); n > 0 {
			o, fails = hanging(now-r.at), n
		}
	}
	w.totals.count(o.Kind)
	tried := e.breaker.ended(r)
	if o.Kind == Canceled || r.at < e.health.born { // r went to an earlier process
		return
	}
	e.failures.add(o.Kind)
	if o.Kind == Answered {
		e.lastError.good(byRequest)
		if tried {
			f.closeBreaker(e, now)
			return
		}
		e.breaker.good(now > w.slowStart.until)
		return
	}
	why := o.why()
	e.note(why, f.began.Add(seconds(now)), byRequest)
	if o.Kind == Leaving {
		f.leave(w, now, why, tried)
		return
	}
	f.watcher.CheckSoon(e.number) // a health check decides at once, not in two seconds
	if o.Kind == Refused {
		f.drop(e, now, why)
		return
	}
	if e.breaker.fails(fails, tried) && e.isUp() {
		f.open(w, now, why)
	}
}

// open opens the breaker of w's endpoint for failures, the last of them w's, if the fleet can spare the endpoint.
func (f *fleet) open(w *Worker, now float64, why string) {
	e := w.endpoint
	switch {
	case e.breaker.cause == leaving: // the trial failed in another way: the worker is no better for that
		f.leave(w, now, why, true)
	case !f.mayEject(e):
		e.breaker.cause = none // the trial failed, but the worker is needed
	default:
		e.breaker.eject(why, now, f.conf.HealthInterval.Seconds())
		w.totals.ejected++
		for _, o := range e.ranks {
			o.slowStart = slowStart{}
		}
		f.noteAll(e.ranks, event{kind: ejected, why: why, wait: seconds(e.breaker.back)}, now)
	}
}

// mayEject reports whether an endpoint may be ejected. Half of the endpoints that are there always stay: if all fail,
// the fault is in the requests or in what they share.
func (f *fleet) mayEject(e *endpoint) bool {
	there, out := 0, 1
	for _, o := range f.endpoints {
		if !o.isUp() || o.allDrain() || o.breaker.cause == leaving {
			continue
		}
		there++
		if o != e && o.breaker.cause == failing {
			out++
		}
	}
	return 2*out <= there
}

// leave marks the endpoint of w as draining, because an answer of w showed that it shuts down. Further answers of that
// kind change nothing while its breaker is open. The rule to keep half of the fleet does not apply here: such a worker
// returns its requests unanswered.
func (f *fleet) leave(w *Worker, now float64, why string, tried bool) {
	e := w.endpoint
	again := e.breaker.cause == leaving
	if !e.isUp() || again && !tried {
		return
	}
	if !again {
		w.totals.left++
	}
	e.breaker.leave(why, now)
	for _, o := range e.ranks {
		o.slowStart = slowStart{}
	}
	f.watcher.ScrapeSoon(e.number) // reads the start time of the present process, by which a new one is recognised
	f.noteAll(e.ranks, event{kind: wentLeaving, why: why, wait: seconds(e.breaker.back), tokens: e.inFlight}, now)
}

// closeBreaker closes an endpoint's breaker after a good trial and starts its ranks slowly: they still have their
// caches, but no load.
func (f *fleet) closeBreaker(e *endpoint, now float64) {
	e.breaker.shut()
	for _, w := range e.ranks {
		f.startSlow(w, now)
	}
	f.panicked = false
	f.noteAll(e.ranks, event{kind: closed}, now)
}

// drain takes the worker with that id out of the snapshots, or puts it back. The id of an endpoint means all its ranks,
// later ones included. drain reports whether there is such a worker.
func (f *fleet) drain(id string, on bool, now float64) bool {
	e := f.at(id)
	if e == nil {
		return false
	}
	if e.name == id {
		e.drained = on
		f.drainRanks(e.ranks, on, now)
		return true
	}
	w := f.find(id)
	if w == nil {
		return false
	}
	e.drained = e.drained && on
	f.drainRanks([]*Worker{w}, on, now)
	return true
}

// drainRanks takes ranks of one endpoint out of the snapshots, or puts them back.
func (f *fleet) drainRanks(ranks []*Worker, on bool, now float64) {
	var changed []*Worker
	inFlight := 0
	for _, w := range ranks {
		if w.draining != on {
			w.draining = on
			changed = append(changed, w)
			inFlight += w.flight.n
		}
	}
	if len(changed) == 0 {
		return
	}
	if on {
		f.noteAll(changed, event{kind: drained, tokens: inFlight}, now)
		return
	}
	f.panicked = false
	f.noteAll(changed, event{kind: undrained}, now)
}

// drains returns the calls of Drain that differ from the specs, by the id of the call.
func (f *fleet) drains() map[string]bool {
	all := map[string]bool{}
	for _, e := range f.endpoints {
		if e.drained != e.spec.Drain {
			all[e.name] = e.drained
		}
		for _, w := range e.ranks {
			if w.draining != e.drained {
				all[w.id] = w.draining
			}
		}
	}
	return all
}

// countPanic counts a request that was offered workers that are not up. It logs the first until a worker is up again.
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

// level raises w's counts of requests, ever and lately, to the others' counts by weight. Strategies break ties by these
// numbers. At light load all workers tie. Without level a worker that was away for an hour would then get every request
// of the next hour.
func (f *fleet) level(w *Worker) {
	sum, lately, n := 0.0, 0.0, 0.0
	for _, o := range f.workers {
		if o != w && o.isUp() {
			sum += float64(o.sent+o.theirs.sent+o.missed) / o.weight
			lately += o.share.requests / o.weight
			n++
		}
	}
	w.share.requests = max(w.share.requests, lately/max(1, n)*w.weight)
	if fair, sent := sum/max(1, n)*w.weight, w.sent+w.theirs.sent; fair > float64(sent) {
		w.missed = uint64(fair) - sent
	}
}
