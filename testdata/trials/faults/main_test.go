package main

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/faults/probes"
)

func TestForeign(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := foreign([]byte(body), "mabc"); got != want {
			t.Errorf("%q: got %q want %q", body, got, want)
		}
	}
	f(`{"id":"mabc","x":1}`, "")
	f(`{"id":"mabc"}{"id":"mabc"}{"id":"cmpl-1"}`, "")
	f(`{"id":"mabc"}{"id":"mxyz"}`, `mxyz"}`)
	f(`{"id":"mabcd"}`, `mabcd"}`)
}

func TestSlope(t *testing.T) {
	if got := slope([]float64{1, 3, 5, 7}); math.Abs(got-2) > 1e-9 {
		t.Errorf("got %v want 2", got)
	}
	if got := slope([]float64{5}); got != 0 {
		t.Errorf("one sample: got %v", got)
	}
}

// TestGrown: a leak is seen whatever came before it, a plateau is flat.
func TestGrown(t *testing.T) {
	f := func(samples []float64, want bool) {
		t.Helper()
		if got := grown(samples); got.share() <= flatShare != want {
			t.Errorf("%v: flat %v want %v", got, !want, want)
		}
	}
	f([]float64{10, 50, 80, 90, 100, 100, 101, 100}, true)
	f([]float64{10, 20, 30, 40, 50, 60, 70, 80}, false)
	f([]float64{100, 100, 100, 100, 100, 103, 106, 109}, false)
	f([]float64{100, 100, 100, 100, 100, 130, 101, 100}, true)
	f(nil, false)
}

// TestWatch: watch sees each way in which a worker breaks a stream as what it is, without a daemon between.
func TestWatch(t *testing.T) {
	l := &lab{}
	defer l.close()
	n, err := l.startNode(&node{})
	if err != nil {
		t.Fatal(err)
	}
	f := func(fault string, want seen) {
		t.Helper()
		n.set(fault)
		mark := newMark()
		got := watch(n.addr, streaming(mark, 3, time.Millisecond, ""), mark, nil)
		if got.status != want.status || got.events != want.events || got.done != want.done || got.whole != want.whole || got.foreign != "" {
			t.Errorf("%q: got %v want %v", fault, got, want)
		}
	}
	f("", seen{status: 200, events: 3, done: true, whole: true})
	f("cut", seen{status: 200, events: 1})
	f("half-close", seen{status: 200, events: 1})
	f("bad-chunk", seen{status: 200, events: 1})
	f("drain", seen{status: 200, done: true, whole: true})
	f("reset", seen{})
	f("503", seen{status: 503, whole: true})
}

// TestNamesTellChecksApart: -run '^name$' is how one is tried.
func TestNamesTellChecksApart(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range checks {
		if seen[c.name] || c.what == "" || c.pass == "" || c.run == nil || !regexp.MustCompile(`^[a-z-]+$`).MatchString(c.name) {
			t.Errorf("check %+v", c.name)
		}
		seen[c.name] = true
	}
	for _, p := range slices.Concat(probes.Controls, probes.Ambiguous) {
		if seen[p.Name] || !strings.HasSuffix(p.Raw, "\n") && !strings.Contains(p.Raw, "\r\n\r\n") {
			t.Errorf("probe %q", p.Name)
		}
		seen[p.Name] = true
	}
}

// TestStaleMeetsClosedConnections: the load of the check stale fails where nobody stands between it and the worker.
func TestStaleMeetsClosedConnections(t *testing.T) {
	l := &lab{ctx: t.Context(), quick: true}
	defer l.close()
	n, err := l.startNode(&node{Worker: wire.Worker{IdleClose: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if sent, failed := stale(l, n.addr, 50*time.Millisecond); failed == 0 {
		t.Errorf("0 of %d failed: its pauses are never longer than the worker's", sent)
	}
}
