package worker

import "testing"

// TestSpecDrains: what a spec says of a drain holds from the worker's beginning, for ranks to come too, and is changed
// by another spec alone; an update that says nothing new leaves what was asked for by Drain.
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
