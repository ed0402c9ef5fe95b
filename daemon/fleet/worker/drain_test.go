package worker

import (
	"maps"
	"testing"
)

// TestSpecDrains: a drain in a spec holds from the worker's beginning, for later ranks too, and only another spec
// changes it; an update without a change of it leaves the state that Drain set.
func TestSpecDrains(t *testing.T) {
	list := specs(3)
	list[0].Drain = true
	list[2].Drain = true
	list[2].DataParallel = 2
	p := New(Config{Workers: list}, start)
	want := func(when string, draining map[string]bool) {
		t.Helper()
		for _, w := range p.fleet.workers {
			if w.draining != draining[w.id] {
				t.Errorf("%s: draining of %s is %v; want %v", when, w.id, w.draining, draining[w.id])
			}
		}
	}
	want("at the start", map[string]bool{"w0": true, "w2#0": true, "w2#1": true})
	list[2].DataParallel = 3
	p.Drain("w0", false, start)
	p.Drain("w1", true, start)
	p.Update(list, start)
	want("after an update of other things", map[string]bool{"w1": true, "w2#0": true, "w2#1": true, "w2#2": true})
	list[0].Drain = false
	list[1].Drain = true
	list[2].Drain = false
	p.Update(list, start)
	want("turned", map[string]bool{"w1": true})
}

// TestDrainsAreHandedOver: the result of Drains of one pool gives another pool of the same specs the same drains.
func TestDrainsAreHandedOver(t *testing.T) {
	list := specs(4)
	list[0].Drain = true
	list[3].Drain = true
	list[2].DataParallel = 3
	p := New(Config{Workers: list}, start)
	p.Drain("w0", false, start)
	p.Drain("w1", true, start)
	p.Drain("w2", true, start)
	p.Drain("w2#1", false, start)
	want := map[string]bool{"w0": false, "w1": true, "w2#0": true, "w2#2": true}
	if got := p.Drains(); !maps.Equal(got, want) {
		t.Errorf("drains are %v; want %v", got, want)
	}
	next := New(Config{Workers: list}, start)
	for id, on := range p.Drains() {
		if !next.Drain(id, on, start) {
			t.Errorf("%s is not known", id)
		}
	}
	for i, w := range next.fleet.workers {
		if was := p.fleet.workers[i]; w.draining != was.draining {
			t.Errorf("draining of %s is %v; want %v", w.id, w.draining, was.draining)
		}
	}
	p.Drain("w2", true, start)
	if got := p.Drains(); !got["w2"] || len(got) != 3 {
		t.Errorf("with all ranks drained, also those to come, drains are %v", got)
	}
}
