package worker

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
)

// healthy records a good health check.
func (f *fleet) healthy(e *endpoint, now time.Duration) {
	e.health.Pass(now)
	if e.place != configured {
		e.health.Return()
		return
	}
	e.health.NoteSuccess(judge.ByHealth)
	if !e.isUp() {
		f.raise(e, now)
	}
}

// unhealthy records a failed health check.
func (f *fleet) unhealthy(e *endpoint, now time.Duration, why string, c judge.Check) {
	if e.place == configured {
		e.health.NoteError(why, f.began.Add(now), judge.ByHealth)
	}
	switch to := e.health.Fail(c, now); {
	case to == e.health.State():
	case e.place != configured:
		if e.health.State() != judge.Down {
			f.fall(e, to, now)
		}
	case to == judge.Down:
		f.drop(e, now, why)
	default:
		f.suspect(e, now, why)
	}
	if c == judge.CheckIll && e.isUp() {
		f.watcher.CheckSoon(e.number) // the second answer decides
	}
}

// raise marks an endpoint up.
func (f *fleet) raise(e *endpoint, now time.Duration) {
	back := e.health.Rise(now)
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
func (f *fleet) drop(e *endpoint, now time.Duration, why string) {
	if e.health.State() == judge.Down {
		return
	}
	if e.isUp() {
		f.up -= len(e.ranks)
	}
	f.fall(e, judge.Down, now)
	e.forget()
	f.unweigh(e)
	f.noteAll(e.ranks, event{kind: dropped, why: why}, now)
}

// suspect marks an endpoint silent. It keeps its requests and its cache, and gets no new requests while another worker
// can take them: its process may only be busy, and to move a request that keeps a worker busy makes the next one busy.
func (f *fleet) suspect(e *endpoint, now time.Duration, why string) {
	f.up -= len(e.ranks)
	f.fall(e, judge.Silent, now)
	inFlight := e.inFlight
	f.noteAll(e.ranks, event{kind: fellSilent, why: why, tokens: inFlight}, now)
}

// fall begins the grace of all requests in flight at an endpoint, also at removed ranks.
func (f *fleet) fall(e *endpoint, to judge.State, now time.Duration) {
	e.health.Fall(to, now)
	if e.inFlight == 0 {
		return
	}
	for _, w := range f.taken {
		if w.endpoint == e {
			f.grace.beginGrace(w)
		}
	}
}

// silentGraces is how many times DownGrace a request without output waits at a silent worker until it is moved. Engines
// that block their event loop for 40 s are ordinary (a large prompt to tokenize, a video to decode), and one that
// compiles may need longer. 60 s by default is above the first.
const silentGraces = 3

// graceOf returns for how long the requests at an endpoint that fell wait for a byte.
func (f *fleet) graceOf(e *endpoint) time.Duration {
	if e.health.State() == judge.Silent {
		return silentGraces * f.conf.DownGrace
	}
	return f.conf.DownGrace
}

// takesElsewhere reports whether a worker at another address than e's, which has not had the request yet, takes it now.
// One that waits for a trial request does not count: it takes a single one of all that are moved.
func (f *fleet) takesElsewhere(r *request, e *endpoint, now time.Duration) bool {
	return slices.ContainsFunc(f.workers, func(w *Worker) bool { return f.mayTake(w, r, e, now) })
}

// mayTake reports whether w, at another address than e's, takes the request now.
func (f *fleet) mayTake(w *Worker, r *request, e *endpoint, now time.Duration) bool {
	m := moment{now: now, slowness: f.speed.Value}
	return w.endpoint != e && r.tried&(1<<(w.slot%64)) == 0 && w.takes(now) && !w.health.IsSetAside() &&
		!w.health.Refuses(r.Class, now) &&
		r.within.admits(w) &&
		w.listing.Fits(r.model) && !w.backlogged(&f.conf.limits, &m) &&
		!w.packed(&f.conf.limits, r.tokens+r.output, &Beginning{r.parts, r.partTokens})
}

// restart records that an endpoint has a new process although no health check found it down.
func (f *fleet) restart(e *endpoint, now time.Duration) {
	e.forget()
	f.unweigh(e)
	e.health.Restart(now)
	for _, w := range e.ranks {
		w.totals.restart(now)
		f.startSlow(w, now)
	}
	f.panicked = false
	f.noteAll(e.ranks, event{kind: restarted}, now)
}

// scraped records a page of metrics. If a worker was killed and came back between two health checks, only the start
// time of its process on the page shows it.
func (f *fleet) scraped(e *endpoint, p *Page, now time.Duration) {
	switch e.health.ReadProcess(p.Process, now) {
	case judge.NewProcess:
		f.restart(e, now)
	case judge.OldProcess:
		for _, w := range e.ranks {
			w.slowStart = judge.SlowStart{} // what looked like a restart was none
		}
		f.noteAll(e.ranks, event{kind: balanced}, now)
	}
	e.health.NoteSuccess(judge.ByMetrics)
	e.unread = 0
	if n := len(p.Engines); n > 0 && e.learns() && e.believes(n) {
		f.learnRanks(e, n, now)
	}
	switch {
	case len(e.ranks) == 1:
		f.read(e.ranks[0], p.Metrics, p.Took, now)
	case len(p.Engines) == len(e.ranks):
		e.isOdd(len(p.Engines))
		for r, w := range e.ranks {
			f.read(w, p.Engines[r], p.Took, now)
		}
	case !e.learns() && e.isOdd(len(p.Engines)):
		f.noteAll(e.ranks, event{kind: odd, tokens: len(p.Engines)}, now)
	}
}

// read records the metrics of w's engine, which took so long to come.
func (f *fleet) read(w *Worker, m Metrics, took, now time.Duration) {
	if n := w.read(m, f.conf.c1, now); n > 0 {
		f.compare(w, n)
	}
	f.weighOutput(w, now)
	if rest := m.rest(); rest != w.engine.Rest() && w.engine.MayHaveChanged(now-took) {
		f.turnIn(w, rest, m.Keeps, now)
	}
	if w.engine.IsForgotten(f.conf.PauseMax, now) {
		f.note(w, event{kind: forgotten, wait: f.conf.PauseMax}, now)
	}
	if w.resize() {
		f.note(w, event{kind: resized, tokens: w.capacity.inForce}, now)
	}
	f.readElsewhere(w, &m, now)
	if w.health.IsSetAside() {
		return
	}
	if v := w.engine.StandsStill(&w.health, oldestWaiting(w), longWait(f, w, 0), now); v.Do == judge.PutAside {
		f.setAside(w, &v, 0, now)
		f.grace.beginClearing(w)
	}
}

// readElsewhere takes a page of w's engine for its load from elsewhere. Gauges that stay above zero while nothing
// else on the page changes are stale: an idle engine does not count down the requests whose clients have left.
func (f *fleet) readElsewhere(w *Worker, m *Metrics, now time.Duration) {
	w.noteKnown(now)
	if w.engine.IsStill() && m.Steps+m.Prompts+m.Queries > 0 {
		w.elsewhere.Clear()
	} else {
		capacity := float64(cmp.Or(w.capacity.inForce, m.Capacity))
		w.elsewhere.Take(&measure.Seen{Running: m.Running, Waiting: m.Waiting, Used: m.Usage * capacity, Capacity: capacity,
			Est: f.usualPrefill(m, now), C1: f.conf.c1})
	}
	f.noteElsewhere(w)
	f.moved(w, now)
}

// usualPrefill returns the seconds of prefill of a request at the engine of that page, on a worker of slowness 1.
func (f *fleet) usualPrefill(m *Metrics, now time.Duration) float64 {
	if m.Prefills > 0 {
		return f.conf.c1 * newTokens(m) / m.Prefills
	}
	if mean, ok := f.rates.Prefill(now); ok {
		return mean
	}
	return f.conf.estimate(usualPrompt, 0)
}

// usualPrompt is the tokens to compute of a prompt, where nothing is known.
const usualPrompt = 1000

// noteElsewhere keeps the least number of requests from elsewhere at any worker that is up, after a page of w. All are
// compared once that one has more.
func (f *fleet) noteElsewhere(w *Worker) {
	n := w.elsewhere.Requests()
	if w != f.calmest && f.calmest != nil && f.calmest.place == configured && f.calmest.isUp() && n > f.elsewhere {
		return
	}
	if w.isUp() && n <= f.elsewhere {
		f.elsewhere, f.calmest = n, w
		return
	}
	f.elsewhere = math.Inf(1)
	for _, o := range f.workers {
		if n := o.elsewhere.Requests(); o.isUp() && n < f.elsewhere {
			f.elsewhere, f.calmest = n, o
		}
	}
}

// counted records the number of engines that an endpoint reports before it is up.
func (f *fleet) counted(e *endpoint, n int, now time.Duration) {
	if e.place != configured || !e.learns() || n < 1 {
		return
	}
	f.learnRanks(e, n, now)
}

// learnRanks gives an endpoint as many ranks as it reports. Each of its pages reports them, so this lists all workers
// anew only if the number has changed.
func (f *fleet) learnRanks(e *endpoint, n int, now time.Duration) {
	if min(n, MaxRanks) != len(e.ranks) {
		f.setRanks(e, n, now)
		f.listWorkers()
	}
}

// turnIn records that w's engine was paused or put to sleep, or goes on. A sleeping one has lost its KV cache. A paused
// one has kept it if keeps is true: by default vLLM empties it in each mode.
func (f *fleet) turnIn(w *Worker, rest judge.Rest, keeps bool, now time.Duration) {
	was := w.engine.Rest()
	w.engine.SetRest(rest, now)
	switch rest {
	case judge.Sleeping:
		f.note(w, event{kind: slept}, now)
		f.grace.beginClearing(w)
	case judge.Paused:
		f.note(w, event{kind: paused}, now)
		if !keeps && was == judge.Awake {
			f.note(w, event{kind: emptied}, now)
		}
		f.grace.beginClearing(w)
	default:
		if was == judge.Sleeping {
			f.startSlow(w, now)
		}
		f.panicked = false
		w.oldest = cmp.Or(w.oldest, w.version())
		f.note(w, event{kind: woke}, now)
	}
}

// drain takes the worker with that id out of the snapshots, or puts it back. The id of an endpoint means all its ranks,
// later ones included. drain reports whether there is such a worker. One of Config.Outside is added, and drained then.
func (f *fleet) drain(id string, on bool, now time.Duration) bool {
	e := f.at(id)
	if e == nil {
		was := f.early[id]
		delete(f.early, id)
		if !on || f.conf.Outside == nil || !f.conf.Outside(Want{ID: id}) {
			return was && !on
		}
		f.early[id] = true
		return true
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
func (f *fleet) drainRanks(ranks []*Worker, on bool, now time.Duration) {
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
	maps.Copy(all, f.early)
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
func (f *fleet) startSlow(w *Worker, now time.Duration) {
	w.slowStart.Begin(now, f.conf.SlowStart, f.rates.Begun)
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
			lately += o.share.Requests / o.weight
			n++
		}
	}
	w.share.Requests = max(w.share.Requests, lately/max(1, n)*w.weight)
	if fair, sent := sum/max(1, n)*w.weight, w.sent+w.theirs.sent; fair > float64(sent) {
		w.missed = uint64(fair) - sent
	}
}

// renew has an endpoint's list read anew.
func (f *fleet) renew(e *endpoint) {
	e.renewal = wanted
	f.watcher.ListSoon(e.number)
}

// setAside opens the breaker of w's endpoint, if the fleet can spare the endpoint.
func (f *fleet) setAside(w *Worker, v *judge.Verdict, by uint64, now time.Duration) {
	e := w.endpoint
	if !f.maySpare(e) {
		e.health.Close() // the trial failed, but the worker is needed
		return
	}
	cause, again := e.health.SetAside(v, by, f.conf.HealthInterval, now)
	e.health.TryOwn(v.Hangs && f.conf.OwnTrials)
	e.suspect = w
	kind := ejected
	switch cause {
	case judge.Refusing:
		kind = refuses
	case judge.GoingAway:
		kind = wentLeaving
	}
	switch {
	case cause != judge.GoingAway:
		w.totals.ejected++
	case !again:
		w.totals.left++
	}
	for _, o := range e.ranks {
		o.slowStart = judge.SlowStart{}
	}
	f.noteAll(e.ranks, event{kind: kind, why: v.Why, wait: e.health.BackOff(), tokens: e.inFlight}, now)
}

// maySpare reports whether an endpoint may be set aside. At least half of the present endpoints always stay in: if
// all fail, the cause is the requests or something that all endpoints share.
func (f *fleet) maySpare(e *endpoint) bool {
	there, out := 0, 1
	for _, o := range f.endpoints {
		if !o.isUp() || o.allDrain() {
			continue
		}
		there++
		if o != e && o.health.IsSetAside() {
			out++
		}
	}
	return 2*out <= there
}

// closeBreaker closes an endpoint's breaker after a good trial and starts its ranks slowly: they still have their
// caches, but no load.
func (f *fleet) closeBreaker(e *endpoint, now time.Duration) {
	e.health.Close()
	for _, w := range e.ranks {
		f.startSlow(w, now)
	}
	f.panicked = false
	f.noteAll(e.ranks, event{kind: closed}, now)
}

// fadeSpeeds lets the learnt speed of each worker fade, except where its answers still confirm it: a worker whose
// first byte stays late has not become faster.
func (f *fleet) fadeSpeeds(keep float64, now time.Duration) {
	all := make([]*measure.Signs, len(f.workers))
	for i, w := range f.workers {
		all[i] = &w.signs
	}
	f.usual = measure.MediansOf(all, now)
	for _, w := range f.workers {
		if !w.signs.IsFresh(now) {
			w.speed.Drag = measure.DragOf(math.Pow(w.speed.Drag, keep))
			w.speed.Drift(keep)
		} else if measure.Times(w.signs.Quick, f.usual.FirstByte) < measure.LateTimes {
			w.speed.Drift(keep)
		}
	}
}

// weighOutput compares w's time per output token with the pool's, if a value of it was noted now.
func (f *fleet) weighOutput(w *Worker, now time.Duration) {
	if x := measure.Times(w.signs.PerToken(), f.usual.PerToken); x > 0 && w.signs.At == now {
		w.speed.Pull(x)
	}
}
