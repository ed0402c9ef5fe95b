package operator

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/readiness/readinesstest"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

func TestWhetherAPoolCanServe(t *testing.T) {
	f := func(words string, panics bool, up int, ready bool, why string) {
		t.Helper()
		p := readinesstest.NewFleet(t, words)
		p.Panic = panics
		got := Describe([]*readiness.Pool{p.Pool})[0]
		if got.Up != up || got.WhyNot != why {
			t.Errorf("%q, panic %v: %d up, %q; want %d, %q", words, panics, got.Up, got.WhyNot, up, why)
		}
		if got.Workers == nil {
			t.Errorf("%q: the workers are null in JSON; want a list", words)
		}
		if brief := briefly([]*readiness.Pool{p.Pool})[0]; brief.Ready != ready || brief.Workers != len(got.Workers) {
			t.Errorf("%q, panic %v: ready %v with %d workers; want %v", words, panics, brief.Ready, brief.Workers, ready)
		}
		asleep := strings.HasPrefix(words, "a:paused")
		if asleep != (got.Rests != "") {
			t.Errorf("%q: it rests: %q", words, got.Rests)
		}
		if empty := asleep || why == readiness.WhyEmpty || why == readiness.WhyStarting || why == readiness.WhyPanics || why == readiness.WhyPrefill; p.Empty(time.Now()) != empty {
			t.Errorf("%q: empty %v; want %v", words, !empty, empty)
		}
	}
	f("", false, 0, false, readiness.WhyEmpty)
	f("a", false, 1, true, "") // a worker whose models have not been read may have any
	f("a:m", false, 1, true, "")
	f("a:other", false, 1, false, readiness.WhyUnfit)
	f("a:other b:m", false, 2, true, "")
	f("a:other b", false, 2, true, "")
	f("a:m b:down", false, 1, true, "")
	f("a:down", false, 0, false, readiness.WhyEmpty)
	f("a:down b:starting", false, 0, false, readiness.WhyStarting)
	f("a:draining", false, 0, false, readiness.WhyEmpty)

	// What comes waits at a paused worker.
	f("a:paused", false, 0, true, "")
	f("a:paused b:down", false, 0, true, "")
	f("prefiller:paused a:down", false, 0, false, readiness.WhyEmpty)

	f("prefiller a:down", false, 1, false, readiness.WhyPrefill)
	f("prefiller a:starting", false, 1, false, readiness.WhyStarting)
	f("prefiller:down a", false, 1, true, "")
	f("prefiller:m a:other", false, 2, false, readiness.WhyUnfit)
	f("prefiller a:down", true, 1, true, readiness.WhyPanics)
	f("prefiller a:draining", true, 1, false, readiness.WhyPrefill)

	f("", true, 0, false, readiness.WhyEmpty) // there is no worker to try
	f("a:down", true, 0, true, readiness.WhyPanics)
	f("a:draining", true, 0, false, readiness.WhyEmpty) // drained: it gets no requests
	f("a:draining b:down", true, 0, true, readiness.WhyPanics)
	f("a:starting", true, 0, false, readiness.WhyStarting)
	f("a:other", true, 1, false, readiness.WhyUnfit)
}

func TestWhetherTheProcessIsReady(t *testing.T) {
	f := func(draining bool, want bool, pools ...string) {
		t.Helper()
		var all []*readiness.Pool
		for _, words := range pools {
			all = append(all, readinesstest.NewFleet(t, words).Pool)
		}
		got, page := Readiness(all, draining)
		if m := page.(readyState); got != want || m.Ready != want || m.Draining != draining {
			t.Errorf("%q, draining %v: ready %v, page %v; want %v", pools, draining, got, page, want)
		}
	}
	f(false, false)
	f(false, true, "a")
	f(false, false, "a:down")
	f(false, true, "a:down", "a") // one pool is enough
	f(false, true, "a:other")     // a request may name the pool as its endpoint
	f(true, false, "a")
}

func TestAWorkerInWords(t *testing.T) {
	p := readinesstest.NewFleet(t, "a:m b:down c:draining d:draining")
	p.Become(t, "d", "down")
	got := Describe([]*readiness.Pool{p.Pool})[0]
	f := func(i int, id, state string, failed bool) {
		t.Helper()
		w := got.Workers[i]
		if w.ID != id || w.State != state || w.Breaker != "closed" || (w.LastError != "") != failed || w.Since.IsZero() {
			t.Errorf("%+v; want %s %s, failed %v", w, id, state, failed)
		}
	}
	f(0, "a", "up", false)
	f(1, "b", "down", true)
	f(2, "c", "draining", false)
	f(3, "d", "down", true)
}

// TestADrainOutlivesTheEngine: a worker that was drained and then stopped is shown as both, until its drain ends.
func TestADrainOutlivesTheEngine(t *testing.T) {
	p := readinesstest.NewFleet(t, "a b:draining")
	f := func(when string, drained bool, why string) {
		t.Helper()
		w := Describe([]*readiness.Pool{p.Pool})[0].Workers[1]
		if w.Drained != drained || w.Why != why {
			t.Errorf("%s: drained %v, why %q; want %v, %q", when, w.Drained, w.Why, drained, why)
		}
	}
	f("drained", true, "asked to drain")
	p.Become(t, "b", "down")
	f("stopped", true, "asked to drain")
	p.Become(t, "b", "")
	f("started again", true, "asked to drain")
	p.Become(t, "b", "down")
	p.Workers.Drain("b", false, time.Now())
	f("put back while it is down", false, "")
}

func TestDrainsOfAnotherProcess(t *testing.T) {
	var log strings.Builder
	to := slog.New(slog.NewTextHandler(&log, nil))
	p, next := readinesstest.NewFleet(t, "a b c:draining"), readinesstest.NewFleet(t, "a b c")
	DrainAgain([]*readiness.Pool{next.Pool}, Drains([]*readiness.Pool{p.Pool}), to)
	if got := next.Workers.Drains(); !maps.Equal(got, map[string]bool{"c": true}) || log.Len() > 0 {
		t.Errorf("drained again: %v, logged %s", got, &log)
	}
	DrainAgain([]*readiness.Pool{next.Pool}, nil, to) // the process before was of a version that hands over nothing
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
	next.Remove("c")
	DrainAgain([]*readiness.Pool{next.Pool}, Drains([]*readiness.Pool{p.Pool}), to)
	if !strings.Contains(log.String(), "drain it again if it is to stay out\" pool=p worker=c") {
		t.Errorf("logged %q", &log)
	}
	DrainAgain(nil, Drains([]*readiness.Pool{p.Pool}), to)
	if !strings.Contains(log.String(), "pool=p workers=[c]") {
		t.Errorf("logged %q of a pool that is gone", &log)
	}
}

// TestMovesToNewPlaces: two pools have the same workers. What is drained in one is drained in a third that is new, and
// not in the other, which nobody has drained.
func TestMovesToNewPlaces(t *testing.T) {
	p, other, third := readinesstest.NewFleet(t, "a b:draining"), readinesstest.NewFleet(t, "a b"), readinesstest.NewFleet(t, "a b")
	other.Name, third.Name = "other", "third"
	m := MovesFrom([]*readiness.Pool{p.Pool, other.Pool})
	m.To([]*readiness.Pool{p.Pool, other.Pool, third.Pool})
	if got := other.Workers.Drains(); len(got) > 0 {
		t.Errorf("the other pool has %v drained", got)
	}
	if got := third.Workers.Drains(); !maps.Equal(got, map[string]bool{"b": true}) {
		t.Errorf("the new pool has %v drained", got)
	}
}

// A worker that is up and has max_in_flight requests is full, in the page and in status; one that is down is not.
func TestFullIsAState(t *testing.T) {
	f := func(s worker.Stats, want string) {
		t.Helper()
		if got := describeWorker(s, time.Now()).State; got != want {
			t.Errorf("%+v is %q; want %q", s, got, want)
		}
	}
	f(worker.Stats{State: worker.Ready}, "up")
	f(worker.Stats{State: worker.Ready, Full: true}, "full")
	f(worker.Stats{State: worker.Down, Full: true}, "down")
	f(worker.Stats{State: worker.Draining, Full: true}, "draining")
}
