package probe

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

const (
	listEvery  = 5                      // health checks between model listings
	minGap     = 200 * time.Millisecond // between health checks, and between listings, that requests ask for
	downEvery  = 500 * time.Millisecond // between checks of a worker that is not up
	leaveEvery = time.Second            // between scrapes of a worker that is shutting down

	// visitAfter is the pause from which on an idle worker gets its questions on one connection, and the first of them
	// finds none that was kept.
	visitAfter = keptFor + time.Second
)

// target is one worker with its loops.
type target struct {
	id      uint64
	url     string
	metrics string // URL
	asker   *atomic.Pointer[asker]
	check   chan struct{}      // ends the wait for the next health check
	list    chan struct{}      // asks for a listing
	scrape  chan struct{}      // ends the wait for the next scrape
	stop    context.CancelFunc // ends the loops; nil if none run
	trying  atomic.Bool        // a token is asked for
}

// followHealth checks at once and then every interval. It has the models listed on every fifth good check and on the
// first after a bad one.
func (t *target) followHealth(ctx context.Context, sink Sink) {
	was, waited, visit := false, false, false // waited: for the whole pause
	for n := 0; ctx.Err() == nil; n++ {
		a := t.asker.Load()
		ok := waited && sink.Phase(t.id, time.Now()).Checked
		visit = visit && !ok
		ok = ok || t.checkHealth(ctx, a, sink, visit)
		if ok && (!was || n%listEvery == 0) {
			signal(t.list)
		}
		if ok && visit {
			signal(t.scrape)
		}
		was = ok
		a = t.asker.Load()
		every := a.HealthInterval
		phase := sink.Phase(t.id, time.Now())
		if !phase.Up {
			every = min(every, downEvery)
		}
		every = rest(every, phase.Rest)
		if phase.Try != "" && t.trying.CompareAndSwap(false, true) {
			go t.try(ctx, a, sink, phase)
		}
		gap := min(minGap, every/2)
		sleep(ctx, gap, nil, nil)
		waited = sleep(ctx, every-gap, t.check, a.replaced)
		visit = waited && phase.Rest >= visitAfter
	}
}

// followModels lists the models when it is asked to. That is a loop of its own, as a health check may wait for seconds
// at a worker that is busy, and requests wait for the list.
func (t *target) followModels(ctx context.Context, sink Sink) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-t.list:
		}
		sink.Listing(t.id)
		t.listModels(ctx, t.asker.Load(), sink)
		sleep(ctx, minGap, nil, nil)
	}
}

// followHealthAlone checks a removed worker every interval. Nothing else is asked of it.
func (t *target) followHealthAlone(ctx context.Context, sink Sink) {
	for ctx.Err() == nil {
		a := t.asker.Load()
		t.checkHealth(ctx, a, sink, false)
		sleep(ctx, jitter(a.HealthInterval), nil, nil)
	}
}

// followMetrics scrapes at once and then every interval, while the worker is up. The health check of an idle worker
// has it scraped: both use one connection.
func (t *target) followMetrics(ctx context.Context, sink Sink) {
	asksWeights := true // until it has answered that it does not name them
	for asked := true; ctx.Err() == nil; {
		a := t.asker.Load()
		phase := sink.Phase(t.id, time.Now())
		if phase.Up && asksWeights {
			asksWeights = t.readWeights(ctx, a, sink)
		}
		switch {
		case !phase.Up:
			asksWeights = true
			sleep(ctx, min(minGap, a.ScrapeInterval), nil, nil) // soon after it came up
		case phase.Leaving:
			t.readMetrics(ctx, a, sink)
			sleep(ctx, jitter(min(leaveEvery, a.ScrapeInterval)), nil, nil)
		default:
			if asked || !phase.Read {
				t.readMetrics(ctx, a, sink)
			}
			pause := rest(a.ScrapeInterval, phase.Rest)
			if phase.Rest >= visitAfter {
				pause = 3 * phase.Rest
			}
			asked = !sleep(ctx, pause, t.scrape, a.replaced)
		}
	}
}

// checkHealth makes one check and reports whether it was good. An answer that comes after ctx has ended is dropped.
// With keep the connection stays open for the next question. The caller has asked nothing for so long that no
// connection is left.
func (t *target) checkHealth(ctx context.Context, a *asker, sink Sink, keep bool) bool {
	v, why := a.health(ctx, t.url, keep)
	if ctx.Err() != nil {
		return false
	}
	at := time.Now()
	switch v {
	case healthy:
		t.countEngines(ctx, a, sink)
		sink.Healthy(t.id, at)
	case silent:
		sink.Silent(t.id, why, at)
	case ill:
		sink.Ill(t.id, why, at)
	case dead:
		sink.Dead(t.id, why, at)
	case unchecked:
		sink.Unchecked(t.id, why, at)
	}
	return v == healthy
}

// try has the worker complete a token. Its health is checked meanwhile.
func (t *target) try(ctx context.Context, a *asker, sink Sink, p worker.Phase) {
	defer t.trying.Store(false)
	if status := a.try(ctx, t.url, p); ctx.Err() == nil {
		sink.Tried(t.id, status, time.Now())
	}
}

// countEngines reports to the sink how many engines a worker has that comes up, if the worker reports them and the sink
// wants the count. The sink must know it before the first request goes there: the worker answers 400 to a rank that it
// has no more.
func (t *target) countEngines(ctx context.Context, a *asker, sink Sink) {
	if !sink.Phase(t.id, time.Now()).Counts {
		return
	}
	if n := a.engines(ctx, t.url, t.metrics); n > 0 && ctx.Err() == nil {
		sink.Counted(t.id, n, time.Now())
	}
}

func (t *target) listModels(ctx context.Context, a *asker, sink Sink) {
	ids, entries, err := a.models(ctx, t.url)
	switch {
	case err == nil:
		sink.Listed(t.id, ids, entries)
	case ctx.Err() == nil:
		sink.Unlisted(t.id, err.Error(), time.Now())
	}
}

func (t *target) readMetrics(ctx context.Context, a *asker, sink Sink) {
	asked := time.Now()
	p, err := a.metrics(ctx, t.metrics, a.ScrapeInterval)
	if err == nil && sink.Phase(t.id, time.Now()).Still && a.paused(ctx, t.url) {
		p.Pause()
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		sink.Unscraped(t.id, err.Error(), time.Now())
	default:
		now := time.Now()
		p.Took = now.Sub(asked)
		sink.Scraped(t.id, p, now)
	}
}

// readWeights reports the version of its weights that the worker names. It returns false if the worker names none.
func (t *target) readWeights(ctx context.Context, a *asker, sink Sink) bool {
	v, later := a.weights(ctx, t.url)
	if v != 0 && ctx.Err() == nil {
		sink.Weights(t.id, v, time.Now())
	}
	return later
}

// rest returns the pause before the next question to a worker: every, give or take a tenth, or that of an idle worker
// if it is longer. Then it varies by all of its length, or all would be asked at a time.
func rest(every, idle time.Duration) time.Duration {
	if idle >= visitAfter {
		every = max(every, visitAfter)
	}
	if idle > every {
		return every + rand.N(2*(idle-every))
	}
	return jitter(every)
}

// jitter varies d by a tenth.
func jitter(d time.Duration) time.Duration { return d*9/10 + rand.N(d/5+1) }

// starved is how late a timer is in a process that gets too little processor time.
const starved = 20 * time.Millisecond

// sleep waits for d, for ctx, or for one of the channels, and reports whether it was for d. Either channel may be nil.
// A process that is starved has to serve its requests first: sleep then takes up to twice as long.
func sleep(ctx context.Context, d time.Duration, soon, replaced <-chan struct{}) bool {
	due := time.Now().Add(d)
	t := time.NewTimer(d)
	defer t.Stop()
	for longer := false; ; longer = true {
		select {
		case <-ctx.Done():
		case <-soon:
		case <-replaced:
		case <-t.C:
			if late := time.Since(due); late > starved && !longer {
				t.Reset(min(d, 20*late))
				continue
			}
			return true
		}
		return false
	}
}
