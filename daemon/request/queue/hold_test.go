package queue

import (
	"fmt"
	"testing"
)

// A held request blocks nobody, counts as one that waits, and comes back at the next Wake in its old place.
func TestHold(t *testing.T) {
	q := New(Config{MaxRequests: 3, MaxBytes: 1 << 40})
	a, b, c := asked("a", 1), asked("a", 1), asked("a", 1)
	a.Class, b.Class, c.Class = 1, 1, 1
	a.Bytes = 100
	enter(t, q, start, a)
	enter(t, q, after(1), b, c)
	if r := q.Next(after(2)); r != a {
		t.Fatalf("%v has the turn", r)
	}
	q.Hold(b) // it has not the turn
	q.Hold(a)
	if n := q.Counts(); n.Depth != 3 || n.Bytes != 100 || fmt.Sprint(n.Classes) != "[{1 3 100}]" {
		t.Errorf("%+v; want all three to wait", n)
	}
	if out, ok := q.Enter(&Request{Key: "b", Class: 0}, after(2)); ok || len(out) > 0 {
		t.Error("a held request leaves room for another")
	}
	if _, ok := q.Enter(a, after(2)); !ok || q.Depth() != 3 {
		t.Error("one that is held entered again")
	}
	wantOrder(t, serve(q, after(3), 1), "a")
	if b.flow != nil {
		t.Error("b, the next of the lane, was not served while a is held")
	}
	q.Wake()
	if r := q.Next(after(4)); r != a {
		t.Errorf("%+v has the turn; want a, as it came first", r)
	}
	q.Hold(a)
	q.Return(a)
	q.Return(a)
	if r := q.Next(after(5)); r != a {
		t.Errorf("%+v has the turn; want a, whose hold is over", r)
	}
	q.Hold(a)
	q.Leave(a, after(6))
	q.Leave(a, after(6))
	wantOrder(t, serve(q, after(7), 2), "a nobody")
	if n := q.Counts(); n.Depth != 0 || n.Bytes != 0 || len(n.Classes) != 0 || len(q.held) != 0 {
		t.Errorf("%+v; want nothing", n)
	}
}

// Of many that are held a Wake brings back a few, and all have their turn in the end.
func TestManyAreHeld(t *testing.T) {
	q := New(roomy)
	var all []*Request
	for i := range 3 * heldAWake {
		all = append(all, asked(fmt.Sprint(i), 1))
	}
	enter(t, q, start, all...)
	for r := q.Next(start); r != nil; r = q.Next(start) {
		q.Hold(r)
	}
	asks := map[*Request]int{}
	for range 3 {
		q.Wake()
		n := 0
		for r := q.Next(start); r != nil; r = q.Next(start) {
			asks[r]++
			n++
			q.Hold(r)
		}
		if n != heldAWake {
			t.Errorf("a Wake brought %d back; want %d", n, heldAWake)
		}
	}
	if len(asks) != len(all) || q.Depth() != len(all) {
		t.Errorf("%d of %d were asked again", len(asks), len(all))
	}
}

// A held request is not displaced: it may be on its way to a worker.
func TestTheHeldAreNotDisplaced(t *testing.T) {
	q := New(Config{MaxRequests: 1, MaxBytes: 1 << 40})
	a := asked("a", 1)
	enter(t, q, start, a)
	q.Hold(q.Next(start))
	if out, ok := q.Enter(&Request{Key: "b", Class: 9}, start); ok || len(out) > 0 {
		t.Errorf("%d displaced", len(out))
	}
}

// Room at a worker has nobody look that waits for a limit of its key: a limit's own lane is woken, or all are.
func TestWhoLooks(t *testing.T) {
	const keys = 100
	q := New(Config{MaxRequests: 1000, MaxBytes: 1 << 40})
	for i := range keys {
		r := asked(fmt.Sprint("k", i), 1)
		r.Lane, r.Limited = uint64(10+i), true
		enter(t, q, start, r)
	}
	enter(t, q, start, asked("worker", 1))
	looks := func(about string, want int) {
		t.Helper()
		n := 0
		for r := q.Next(after(1)); r != nil; r = q.Next(after(1)) {
			q.Blocked(r)
			n++
		}
		if n != want {
			t.Errorf("%s: %d looks; want %d", about, n, want)
		}
	}
	looks("all are new", keys+1)
	looks("nothing has come", 0)
	q.WakeForRoom()
	looks("room", 1)
	q.WakeLane(12)
	looks("one limit", 1)
	q.WakeLane(9999)
	looks("an unknown limit", 0)
	q.Wake()
	looks("all", keys+1)

	q.WakeLane(12)
	r := q.Next(after(1))
	q.WakeForRoom()
	q.WakeLane(13)
	q.Blocked(r)
	looks("others were woken while it looked", 2)
	q.WakeLane(12)
	r = q.Next(after(1))
	q.WakeLane(12) // it may have looked too early
	q.Blocked(r)
	looks("woken while it looked", 1)
}
