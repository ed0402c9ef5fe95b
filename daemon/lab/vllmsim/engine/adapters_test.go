package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestAdaptersTakeTurns: so many run at a time, a load makes its step longer, and others pass what waits for a place.
func TestAdaptersTakeTurns(t *testing.T) {
	e, err := New(Config{MaxLoras: 2, LoraSeconds: 1})
	if err != nil {
		t.Fatal(err)
	}
	submit := func(adapter string, tokens int) *Sequence {
		q := NewSequence(make([]uint32, 64), adapter, 1, BlockTokens)
		q.Adapter, q.MaxTokens = adapter, tokens
		if err := e.Submit(0, &q); err != nil {
			t.Fatal(err)
		}
		return &q
	}
	a, b, c, d := submit("a", 200), submit("b", 2), submit("c", 2), submit("a", 2)
	e.Advance(1900 * time.Millisecond)
	running, waiting := e.Adapters()
	if !slices.Equal(running, []string{"a", "b"}) || !slices.Equal(waiting, []string{"c"}) {
		t.Errorf("%v run and %v wait; want a and b to run, and c to wait", running, waiting)
	}
	e.Advance(time.Minute)
	first := func(q *Sequence) float64 { return q.Times().First.Seconds() }
	if first(a) < 2 || first(d) > 2.1 || first(c) < 3 || first(c) > 3.2 || first(b) > 2.1 {
		t.Errorf("first tokens after %.2f, %.2f, %.2f, %.2f s; want c's a load behind the others", first(a), first(b), first(c), first(d))
	}
	if got := e.Stats().AdapterLoads; got != 3 {
		t.Errorf("%d loads; want 3", got)
	}
	e.LoadAdapter("x")
	if running, _ := e.Adapters(); len(running) > 0 || fmt.Sprint(e.sched.adapters.find("x")) != "0" {
		t.Errorf("%v run, and x is at %d", running, e.sched.adapters.find("x"))
	}
	e.DropAdapter("x")
	if e.sched.adapters.find("x") >= 0 || a.Preemptions() > 0 {
		t.Error("x has its place still")
	}
}

// TestCancelledAdaptersGiveTheirPlaceBack: also those that were preempted.
func TestCancelledAdaptersGiveTheirPlaceBack(t *testing.T) {
	e, err := New(Config{MaxLoras: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, b := NewSequence(make([]uint32, 64), "a", 1, BlockTokens), NewSequence(make([]uint32, 64), "b", 1, BlockTokens)
	a.Adapter, b.Adapter, a.MaxTokens, b.MaxTokens = "a", "b", 10_000, 1
	_, _ = e.Submit(0, &a), e.Submit(0, &b)
	e.Advance(time.Second)
	e.ResetCache(true, false)
	e.Advance(2 * time.Second)
	e.Cancel(&a)
	e.Advance(3 * time.Second)
	if b.Finish() != FinishLength {
		t.Errorf("b ended with %q; want it to have run when a was gone", b.Finish())
	}
}
