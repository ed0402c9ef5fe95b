package exchange_test

import (
	"flag"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	fleets   = flag.Int("fleets", 2_000, "random fleets that the judge is held to; make night plays 10000")
	oneFleet = flag.Uint64("fleet", 0, "the seed of the only fleet to run; 0 = all")
)

// TestJudge holds the judge to its invariants over random fleets. -fleet SEED runs one alone.
func TestJudge(t *testing.T) {
	n := *fleets
	if testing.Short() || raceEnabled {
		n /= 4
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	if *oneFleet > 0 {
		if breach, asks := runFleet(t, *oneFleet); breach != "" {
			t.Fatalf("fleet %d, %d requests: %s", *oneFleet, asks, breach)
		}
		return
	}
	var workers sync.WaitGroup
	var mu sync.Mutex
	next, asks := uint64(0), 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				mu.Lock()
				next++
				seed := next
				mu.Unlock()
				if seed > uint64(n) || t.Failed() {
					return
				}
				breach, n := runFleet(t, seed)
				mu.Lock()
				asks += n
				mu.Unlock()
				if breach != "" {
					t.Errorf("%s; run it alone: go test -run TestJudge$ ./daemon/request/exchange -fleet %d", breach, seed)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d requests at %d fleets", asks, n)
}

// runFleet runs the fleet of a seed, and returns the first breach of an invariant.
func runFleet(t *testing.T, seed uint64) (breach string, asks int) {
	synctest.Test(t, func(t *testing.T) {
		var f *fleet
		if seed%8 == 0 {
			f = newFleet(t, seed, 2+int(seed/8)%4)
			f.oneSick()
		} else {
			f = newFleet(t, seed, 2+int(seed)%11)
			f.chaos()
		}
		f.end()
		f.restarts()
		breach, asks = f.breach, f.requests
	})
	return breach, asks
}

// chaos has engines change at random times, under random requests.
func (f *fleet) chaos() {
	crowded := .2
	if f.chance(.15) {
		crowded = 1
	}
	for _, e := range f.engines {
		if e.twin = f.chance(.1); e.twin { // which three pages show
			e.run((*engine).scrape)
			e.run((*engine).scrape)
			e.run((*engine).scrape)
		}
		if f.chance(crowded) {
			e.slots = 1 + f.draw(4)
		}
	}
	pace := f.between(.1, 1).Seconds()
	for range 10 + f.draw(50) {
		time.Sleep(f.between(0, 2*pace))
		f.lock()
		f.step(nil)
		if f.chance(.15) {
			f.upset(f.engines[f.draw(len(f.engines))])
		}
		a := f.random()
		f.unlock()
		if a.kind == lethal {
			f.insist(a)
		} else {
			f.send(f.enter(a))
		}
	}
}

// insist sends a request and has its client send it again, twice.
func (f *fleet) insist(a *ask) {
	f.clients.Add(1)
	go func() {
		defer f.clients.Done()
		for range 3 {
			f.serve(f.enter(a))
			f.lock()
			pause := f.between(.3, 4)
			f.unlock()
			time.Sleep(pause)
			a = &ask{path: a.path, streams: a.streams, kind: a.kind, ended: a.ended, body: a.body, patient: a.patient}
		}
	}()
}

// upset changes an engine.
func (f *fleet) upset(e *engine) {
	if !e.listens {
		return
	}
	switch x := f.draw(13); {
	case x == 12:
		f.crowd()
	case x == 0:
		e.die(f.between(1, 20))
	case x == 1:
		e.ill = 1
	case x == 2:
		e.ill = 2 + f.draw(4)
	case x < 5:
		e.turn(good, 0)
	case x < 7:
		e.turn(mute, 0)
	default:
		part := 1.0
		if f.chance(.4) {
			part = .5 * f.dice.float()
		}
		e.turn(mood(1+f.draw(int(moods)-1)), part)
	}
}

// crowd has the requests of others fill all engines for a moment.
func (f *fleet) crowd() {
	for _, e := range f.engines {
		e.theirs = true
	}
	f.after(f.between(.2, 2), func() {
		for _, e := range f.engines {
			e.theirs = false
		}
	})
}

// oneSick has one engine fail all that it gets, and all others serve. By the time that it has got 20 requests, its share
// is less than that of each other. Those count that come after a client has had an answer to one that it failed: nobody
// can compare before.
func (f *fleet) oneSick() {
	e, n := f.engines[0], len(f.engines)
	f.lock()
	e.turn([]mood{quits, fails, breaks, denies, denies, denies}[f.draw(6)], 1)
	e.class = ""
	f.unlock()
	pace := f.between(.02, .3).Seconds()
	known, sent := 0, 0
	for i := 0; known == 0 || i < known+20*n; i++ {
		time.Sleep(f.between(0, 2*pace))
		f.lock()
		if f.compared && known == 0 {
			known, sent = i, e.sent
		}
		a := &ask{path: chat, streams: f.chance(.6), patient: time.Minute}
		if f.chance(.1) {
			a.kind, a.fate = unlucky, []mood{quits, fails, denies}[f.draw(3)]
		}
		f.unlock()
		f.send(f.enter(a))
	}
	f.clients.Wait()
	f.lock()
	defer f.unlock()
	if e.sent-sent >= 20 {
		f.fail("share", "w0, %v, got %d of %d requests of %d workers", e.mood, e.sent-sent, 20*n, n)
	}
}
