package exchange_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// This file has the invariants. A breach begins with the name of its invariant.

// fail notes the first breach.
func (f *fleet) fail(invariant, format string, args ...any) {
	if f.breach == "" {
		f.breach = fmt.Sprintf("%s: at %.3f s: ", invariant, f.now().Seconds()) + fmt.Sprintf(format, args...)
	}
}

// tell logs what happens, for whoever runs one fleet alone.
func (f *fleet) tell(format string, args ...any) {
	if *oneFleet > 0 {
		f.t.Logf("%9.3f "+format, append([]any{f.now().Seconds()}, args...)...)
	}
}

// states returns what the pool makes of the engines.
func (f *fleet) states() (serving uint16, out, there int) {
	for _, s := range f.pool.Workers.Stats(time.Now()) {
		place := s.Slot
		switch s.State {
		case worker.Ready:
			serving |= 1 << place
			there++
		case worker.Ejected, worker.Draining:
			there++
			out++
		case worker.Asleep:
			there++
		}
	}
	return serving, out, there
}

// step ascribes what has changed since the last step to whoever has run meanwhile, and notes who runs from now on. The
// fleet's clock has no two events at one instant, so that it was one request alone, or a check.
func (f *fleet) step(next *ask) {
	a := f.actor
	f.actor = next
	if !f.changed.CompareAndSwap(true, false) {
		return
	}
	serving, out, there := f.states()
	lost, gained := f.serving&^serving, serving&^f.serving
	if lost|gained != 0 {
		f.tell("serving %b, by %v", serving, a)
	}
	f.serving = serving
	for _, e := range f.engines {
		if gained == 0 || 2*(out+1) > there || !f.nobodyDied() { // half of the workers stay, also if a trial fails
			break
		}
		if bit := uint16(1) << e.place; gained&bit != 0 && a != nil && a.opened&bit == 0 && a.failedBy(e) && e.alive() {
			f.fail("came back", "w%d serves again by request %s, which it failed", e.place, a)
		}
	}
	for _, o := range f.asks {
		o.lost &^= gained
	}
	if a == nil || lost == 0 {
		return
	}
	a.opened |= lost
	for _, e := range f.engines {
		if lost&(1<<e.place) != 0 && e.alive() {
			f.setAside(e, a, out, there)
		}
	}
}

// setAside is called when a request has taken an engine from the others.
func (f *fleet) setAside(e *engine, a *ask, out, there int) {
	a.lost |= 1 << e.place
	if count(a.lost) > 1 && !e.hung() && a.failedAlike() {
		f.fail("one request", "request %s has set aside %d workers (%b) of %d", a, count(a.lost), a.lost, len(f.engines))
	}
	if 2*out > there && f.nobodyDied() {
		f.fail("half", "%d of the %d workers that are there are set aside", out, there)
	}
	if n := e.realBads(); n < 2 && !e.hung() {
		f.fail("evidence", "w%d is set aside by request %s, and has failed %d requests whose fault it may be", e.place, a, n)
	}
}

// gaveUp is called when the router closes the connection of a request whose answer would have come.
func (e *engine) gaveUp(w *wire) {
	a := w.ask
	if w.begun {
		e.fail("given up", "request %s had begun to be answered by w%d, which lives", a, e.place)
		return
	}
	if serving, _, _ := e.states(); serving&^a.tried != 0 {
		return
	}
	e.fail("given up", "request %s is given up at w%d, which lives, and nobody takes it who has not had it", a, e.place)
}

// takes reports whether the pool sends requests to an engine.
func (f *fleet) takes(e *engine) bool {
	return f.pool.Workers.Standing(e.name(), "m", nil, time.Now()) == worker.Ready
}

// fellLate is a health check that got no answer in time.
func (e *engine) fellLate() {
	before, first := e.takes(e), e.lates == 0
	e.lates++
	e.pool.Workers.Silent(e.number, "/health: no answer within 2 s", time.Now())
	if before && !e.takes(e) && e.flow > 0 && e.now()-e.flow < 4900*time.Millisecond {
		e.fail("silence", "w%d gets no requests, and a byte of an answer came %v ago", e.place, e.now()-e.flow)
	}
	if first && before && !e.takes(e) {
		e.fail("one late", "w%d gets no requests after one late health check", e.place)
	}
	if e.pool.Workers.Up(time.Now()) > 0 {
		return
	}
	for _, o := range e.engines {
		if o.listens && o.illOK && !o.shownAsleep && o.mood != asleep {
			e.fail("silence", "the pool is empty, and w%d is only silent", o.place)
		}
	}
}

// fellIll is a health check that is answered by 503.
func (e *engine) fellIll() {
	before, first := e.takes(e), e.illOK && e.lates < 2
	e.illOK = false
	e.pool.Workers.Ill(e.number, "/health answers 503", time.Now())
	if first && before && !e.takes(e) {
		e.fail("one 503", "w%d gets no requests after one 503 on /health", e.place)
	}
}

// String names a request in a breach.
func (a *ask) String() string {
	if a == nil {
		return "a check"
	}
	return fmt.Sprintf("%s (%s, tried %b, failed at %v, status %d %s,%s)", a.id,
		[...]string{"plain", "unlucky " + a.fate.String(), "lethal", "blocking"}[a.kind], a.tried, a.failedAt, a.status, a.code, a.attempts)
}

// judge is called at the end of a request.
func (f *fleet) judge(a *ask) {
	delete(f.asks, a.id)
	a.over = true
	f.tell("ended %v", a)
	f.compared = f.compared || a.kind == plain && len(a.failedAt) > 0
	if a.ended != nil && *a.ended > 2 {
		f.fail("two engines", "request %s and its repeats have ended %d engines", a, *a.ended)
	}
	// One that blocks for up to 3 s may leave an engine that falls asleep meanwhile: nothing tells it from others.
	if n := count(a.blocked); a.broken == 0 && (n > 2 || n > 1 && a.length <= longestBlock && a.length > 3*time.Second) {
		f.fail("blocking", "request %s, of %v, has blocked %d workers", a, a.length, n)
	}
	if refused := a.status >= 500 || a.status == 429; a.kind == plain && refused && !a.left && a.begun < 3 && a.broken < 2 {
		f.findTaker(a)
	}
}

// settled is after how long everybody can know that a worker is good: a health check of one that is up comes within
// 2.2 s, and a page of metrics, which ends a sleep, within 5.5.
const settled = 8 * time.Second

// findTaker looks for a worker that would have answered a request which the router has refused.
func (f *fleet) findTaker(a *ask) {
	if a.code == "" { // the worker's own
		return
	}
	for _, e := range f.engines {
		had := a.tried&(1<<e.place) != 0 || strings.Contains(a.attempts, e.name()+" ")
		known := e.listens && e.illOK && e.ill == 0 && !e.shownAsleep && e.now()-max(e.since, e.born, e.blocked) > settled
		if !had && known && e.serves() && !e.full() {
			f.fail("refused", "request %s is refused, and w%d would have answered it", a, e.place)
		}
	}
}

// restarts checks that a balancer does not pass for a worker that restarts.
func (f *fleet) restarts() {
	for _, s := range f.pool.Workers.Stats(time.Now()) {
		if e := f.engines[s.Slot]; int(s.Restarts) > 2*e.deaths+1 {
			f.fail("balancer", "w%d has restarted %d times for the pool, and %d times in truth", s.Slot, s.Restarts, e.deaths)
		}
	}
}
