package worker

import (
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// A request of another router counts in the row like one of the pool's own, and changes nothing that is learnt.
func TestForeignCountsAsOwn(t *testing.T) {
	d := Dispatch{PromptTokens: 30_000}
	own, other := upPool(t, 2), upPool(t, 2)
	ticket := own.send(0, d, 1)
	f := other.BeginForeign(other.fleet.workers[0].key, d, true, other.after(1))
	if f == nil {
		t.Fatal("no books")
	}
	same := func(what string, at float64) {
		t.Helper()
		a, b := own.rows(at), other.rows(at)
		a[0].TTFT, b[0].TTFT = 0, 0
		if a[0] != b[0] || a[1] != b[1] {
			t.Errorf("%s: rows\n%+v\n%+v", what, a, b)
		}
		if l, m := own.Lambda(own.after(at)), other.Lambda(other.after(at)); l != m {
			t.Errorf("%s: lambda %v and %v", what, l, m)
		}
	}
	same("sent", 1.5)
	if s := other.Stats(other.after(1.5))[0]; s.InFlight != 0 || s.Theirs != 1 || s.Sent != 0 {
		t.Errorf("%d of its own, %d of others, %d sent; want 0, 1, 0", s.InFlight, s.Theirs, s.Sent)
	}
	ticket.FirstByte(own.after(2.5))
	f.FirstByte(other.after(2.5))
	if was := other.fleet.workers[0].queue.group; was.n != 0 {
		t.Errorf("%d first bytes are to teach a speed; want none", was.n)
	}
	own.fleet.workers[0].queue.group = group{} // this router has learnt from it
	same("first byte", 2.6)
	ticket.End(own.after(3), judge.Outcome{Kind: judge.Answered})
	f.End()
	f.End()
	f.FirstByte(other.after(4))
	same("end", 5)
}

func TestForeignCountsAgainstTheLimit(t *testing.T) {
	p := upPoolOf(Config{Workers: specs(1), MaxInFlight: 2})
	w := p.fleet.workers[0]
	f := p.BeginForeign(w.key, Dispatch{PromptTokens: 9}, true, p.after(1))
	if _, ok := p.TryBegin(w, Dispatch{PromptTokens: 9}, p.after(1)); !ok {
		t.Fatal("the second place is refused")
	}
	if _, ok := p.TryBegin(w, Dispatch{PromptTokens: 9}, p.after(1)); ok || len(p.rows(1)) != 0 || !p.Saturated(p.after(1)) {
		t.Error("a third request goes in")
	}
	f.End()
	if _, ok := p.TryBegin(w, Dispatch{PromptTokens: 9}, p.after(1)); !ok {
		t.Error("the place that another router gave back is refused")
	}
}

func TestForeignOfNobody(t *testing.T) {
	p := upPool(t, 2)
	p.kill(0, 1)
	for _, key := range []uint64{p.fleet.workers[0].key, 12345} {
		if f := p.BeginForeign(key, Dispatch{PromptTokens: 9}, true, p.after(2)); f != nil {
			t.Errorf("worker %x, which is down or unknown, has a request", key)
		}
	}
	f := p.BeginForeign(p.fleet.workers[1].key, Dispatch{PromptTokens: 9}, true, p.after(2))
	p.kill(1, 3)
	f.FirstByte(p.after(4))
	p.heal(1, 5)
	if n := p.fleet.workers[1].endpoint.theirs; n != 1 {
		t.Errorf("%d requests of others; want 1, until its router ends it", n)
	}
	p.Update(specs(1), p.after(6))
	f.End()
	if w := p.fleet.taken[1]; w != nil {
		t.Error("the slot of a removed worker is kept for another router's request")
	}
}

func TestForeignHammer(t *testing.T) {
	p := upPool(t, 3)
	keys := []uint64{p.fleet.workers[0].key, p.fleet.workers[1].key, p.fleet.workers[2].key}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				at := p.after(float64(i))
				if g == 0 {
					p.rows(float64(i))
					continue
				}
				if f := p.BeginForeign(keys[(i+g)%3], Dispatch{PromptTokens: i}, i%2 == 0, at); f != nil {
					f.FirstByte(at)
					f.End()
				}
			}
		})
	}
	all.Wait()
	for _, s := range p.Stats(p.after(600)) {
		if s.Theirs != 0 || s.Pending != 0 {
			t.Errorf("%s: %d of others and %d tokens are left", s.ID, s.Theirs, s.Pending)
		}
	}
}
