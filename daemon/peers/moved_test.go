package peers

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestOtherWorkerUnderTheSameID: a router ignores records about a worker whose id has another URL at the sender, until
// both routers have the same URL.
func TestOtherWorkerUnderTheSameID(t *testing.T) {
	c := &clock{began.Add(time.Second)}
	from, to := newPool(t, c, 2, 1<<20), newPool(t, c, 2, 1<<20)
	sender, _ := NewPair(from, 7)
	from.Tell(sender)
	_, h := NewPair(to, 1)
	theirs := named(from, from.Secret(), c.now)
	beat := func(address uint64) {
		list := append([]Named(nil), theirs...)
		for i := range list {
			if list[i].Key == worker.KeyOf("w1") {
				list[i].Address += address
			}
		}
		sender.QueueBeat(&Beat{Workers: list, digest: sum(list)}, c.now)
	}
	believed := func() (all []string) {
		c.pass(10 * time.Millisecond)
		for _, f := range sender.Take(1<<20, c.now) {
			if err := h.Apply(f, c.now, c.now); err != nil {
				t.Fatal(err)
			}
			sender.Confirm([][]byte{f})
		}
		for _, s := range to.Workers.Stats(c.now) {
			all = append(all, fmt.Sprintf("%s %v %d", s.ID, to.Index.Worker(s.Slot).Blocks > 0, s.Theirs))
		}
		return all
	}
	both := func() { // a request that ends and one that stays, at each worker
		to := map[string]int{}
		for i := 0; len(to) < 2 || to["w0"] < 2 || to["w1"] < 2; i++ {
			r := send(t, from, words(fmt.Sprint("other ", i, c.now), 9), c.now)
			to[r.trip.Worker().ID()]++
			if to[r.trip.Worker().ID()] != 2 {
				r.answer("x", c.now)
			}
		}
	}
	want := func(what string, want ...string) {
		t.Helper()
		if got := believed(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q; want %q", what, got, want)
		}
	}
	h.setOwnWorkers(named(to, to.Secret(), c.now))
	beat(1)
	both()
	want("w1 is another there", "w0 true 1", "w1 false 0")
	sender.QueueOpen(c.now)
	want("and sent as open", "w0 true 1", "w1 false 0")
	beat(0)
	sender.QueueOpen(c.now)
	want("it is the same now", "w0 true 1", "w1 false 1")
	both()
	want("and used", "w0 true 2", "w1 true 2")
	beat(1)
	want("it is another again", "w0 true 2", "w1 true 0")
}

func TestDiffer(t *testing.T) {
	n := func(all ...string) (list []Named) { // "id url"
		for _, s := range all {
			var id, url string
			fmt.Sscan(s, &id, &url)
			list = append(list, Named{ID: id, Key: worker.KeyOf(id), Address: worker.KeyOf(url)})
		}
		return list
	}
	f := func(own, other []Named, want string) {
		t.Helper()
		if got := fmt.Sprint(differ(own, other)); got != want {
			t.Errorf("%v and %v: %s; want %s", own, other, got, want)
		}
	}
	f(n("a 1", "b 2"), n("b 2", "a 1"), "{[] [] [] []}")
	f(n("a 1", "b 2"), n("a 1", "b 3"), "{[] [b] [] []}")
	f(n("a 1", "b 2"), n("a 1", "c 2"), "{[b here is c there] [] [] []}")
	f(n("a 1", "b 2"), n("a 2", "b 1"), "{[a here is b there b here is a there] [a b] [] []}")
	f(n("a 1", "b 2"), n("a 1", "c 3"), "{[] [] [c] [b]}")
}
