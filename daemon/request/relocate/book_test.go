package relocate

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(d, gap time.Duration) Talk { return Talk{Last: now.Add(-d), Gap: gap} }
	f := func(want string, all ...Talk) {
		t.Helper()
		got := ""
		for _, x := range Order(slices.Clone(all), func(x Talk) *Talk { return &x }, now) {
			got += fmt.Sprint(slices.Index(all, x))
		}
		if got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	f("")
	f("10", ago(5*time.Second, 6*time.Second), ago(2*time.Second, 5*time.Second)) // the second has just had a turn
	f("0", ago(time.Second, 0), ago(104*time.Second, 0))                          // silent for much longer than usual
	f("0", ago(50*time.Second, time.Second), ago(53*time.Second, time.Second))    // a short gap is no reason to give up early
	f("10", ago(90*time.Second, time.Minute), ago(80*time.Second, time.Minute))   // its own, longer gap
}

// TestGoesOn: the probability falls with the silence.
func TestGoesOn(t *testing.T) {
	now, last := time.Unix(1000, 0), 1.
	for s := range 60 {
		talk := Talk{Last: now.Add(-time.Duration(s) * time.Second), Gap: 10 * time.Second}
		p := talk.GoesOn(now)
		if p < 0 || p >= last {
			t.Errorf("%.3f after %d s; %.3f a second before", p, s, last)
		}
		last = p
	}
}

// next returns the last request of a conversation that is to be moved.
func next(b *Book, c *Conversation) *Request {
	r, _ := b.Next(c)
	return r
}

// grow returns the hashes of a prompt whose conversation has had so many turns, three blocks each.
func grow(id, turns int) (hashes []uint64) {
	for i := range 3 * turns {
		hashes = append(hashes, uint64(id*1000+i+1))
	}
	return hashes
}

func newBook(bytes int) *Book {
	b := &Book{Takers: up("a", "b", "c")}
	b.Configure(bytes)
	return b
}

var at = time.Unix(1000, 0)

func (b *Book) answered(worker string, id, turns int) {
	t := Turn{Worker: worker, Hashes: grow(id, turns), Tokens: 100 * turns, Request: &Request{Body: make([]byte, 400)}}
	b.Answered(&t, at)
}

func TestConversations(t *testing.T) {
	b := newBook(1 << 20)
	b.answered("a", 1, 1)
	b.answered("a", 1, 2) // the same, one turn later
	b.answered("b", 2, 1)
	if c := b.Counts(); c.Kept != 2 || c.Bytes != 2*(400+overhead) {
		t.Fatalf("%+v", c)
	}
	if h := b.Home(grow(1, 3), at); h != "" {
		t.Errorf("no worker leaves, and a turn must go to %q", h)
	}
	all := b.Leave("a", at)
	if len(all) != 1 || all[0].Tokens != 200 || b.Home(grow(1, 3), at) != "a" || b.Home(grow(2, 2), at) != "" || b.Home(grow(3, 1), at) != "" {
		t.Fatalf("%d leave; homes %q %q %q", len(all), b.Home(grow(1, 3), at), b.Home(grow(2, 2), at), b.Home(grow(3, 1), at))
	}
	b.answered("a", 1, 3) // its next turn came before the move
	if next(b, all[0]) == nil || all[0].Tokens != 300 || b.Home(grow(1, 4), at) != "a" {
		t.Errorf("after a turn at the worker that leaves it is not moved any more")
	}
	b.Moved(all[0], all[0].Request, "c", Compute)
	if next(b, all[0]) != nil || b.Home(grow(1, 4), at) != "c" {
		t.Error("it has moved, and is moved again, or its next turn does not follow")
	}
	b.answered("c", 1, 4)
	b.answered("c", 1, 5)
	if c := b.Counts(); c.Moved != 1 || c.Used != 1 || c.TokensMoved != 300 || c.TokensUsed != 300 || c.Failed != 0 {
		t.Errorf("%+v", c)
	}
}

// TestMovedOnly: the next turn does not follow to a worker that drains in its turn, and nothing is remembered of a
// conversation that has ended.
func TestMovedOnly(t *testing.T) {
	b := newBook(1 << 20)
	b.answered("a", 1, 1)
	b.answered("a", 2, 1)
	for _, c := range b.Leave("a", at) {
		b.Moved(c, c.Request, "c", Compute)
	}
	b.Takers = up("d")
	if to := b.Home(grow(1, 2), at); to != "" {
		t.Errorf("the next turn goes to %q, which drains", to)
	}
	b.Wished(at.Add(time.Minute))
	if n := b.holds.Load(); n != 1 {
		t.Errorf("%d are held; want the one that may go on", n)
	}
	if b.Wished(at.Add(time.Hour)); b.holds.Load() != 0 || len(b.arrivals) != 0 {
		t.Errorf("%d are held after an hour", b.holds.Load())
	}
}

// TestTurnElsewhere: another worker has answered the next turn, so that there is nothing to move.
func TestTurnElsewhere(t *testing.T) {
	b := newBook(1 << 20)
	b.answered("a", 1, 1)
	all := b.Leave("a", at)
	b.answered("b", 1, 2)
	if next(b, all[0]) != nil || b.Home(grow(1, 3), at) != "" {
		t.Error("it is moved, though it lives elsewhere")
	}
	b.Moved(all[0], all[0].Request, "", Compute)
	b.Release(all)
	if b.holds.Load() != 0 || b.Counts().Failed != 1 {
		t.Errorf("%d held, %+v", b.holds.Load(), b.Counts())
	}
}

func TestEndsAndBounds(t *testing.T) {
	b := newBook(10 * (400 + overhead))
	for id := range 30 {
		b.answered("a", id, 1)
	}
	if c := b.Counts(); c.Kept != 10 || len(b.tips) != 10 {
		t.Errorf("%+v, %d tips; want 10", c, len(b.tips))
	}
	all := b.Leave("a", at)
	b.Answered(&Turn{Worker: "a", Hashes: grow(29, 2), Request: &Request{}, Ends: true}, at) // the client says that it was the last turn
	if c := b.Counts(); c.Kept != 9 || b.Home(grow(29, 3), at) != "" {
		t.Errorf("%+v after an end", c)
	}
	b.Configure(0)
	if c := b.Counts(); c.Kept != 0 || c.Bytes != 0 || b.Keeps() != 0 || b.holds.Load() != 0 {
		t.Errorf("%+v, %d held by a book that keeps nothing", c, b.holds.Load())
	}
	b.Release(all)
	b.Answered(&Turn{Worker: "a", Request: &Request{}}, at) // shorter than a block
}

// TestBookBeside: moves, turns and changes of the bound at once.
func TestBookBeside(t *testing.T) {
	b := newBook(50 * (400 + overhead))
	done := make(chan bool)
	for worker := range 4 {
		go func() {
			for i := range 500 {
				b.answered(fmt.Sprint(worker%2), i%80, 1+i/80)
				_ = b.Home(grow(i%80, 9), at)
			}
			done <- true
		}()
	}
	for range 50 {
		all := b.Leave("0", at)
		for i, c := range all {
			if r, _ := b.Next(c); r != nil {
				b.Moved(c, r, []string{"", "1"}[i%2], Compute)
			}
		}
		b.Release(all)
	}
	for range 4 {
		<-done
	}
	b.Configure(0)
	if c := b.Counts(); b.holds.Load() != 0 || c.Kept != 0 || c.Bytes != 0 {
		t.Errorf("%d held, %+v", b.holds.Load(), c)
	}
}

// TestGoesOnElsewhere: a worker goes on with the answer to the last prompt of a conversation. The next turn goes there,
// whether the prompt has moved to another one, is being moved, or has not yet.
func TestGoesOnElsewhere(t *testing.T) {
	for _, when := range []string{"before", "during", "after"} {
		now := time.Unix(1000, 0)
		b := newBook(1 << 20)
		b.Answered(&Turn{Worker: "a", Hashes: grow(1, 2), Tokens: 500, Request: &Request{Body: make([]byte, 50)}}, now)
		p := b.Plan("a", now, now.Add(time.Minute))
		goesOn := func(at string) {
			if at == when {
				b.GoesOn(grow(1, 3), "c")
			}
		}
		goesOn("before")
		m, _ := p.Next(now)
		if (m == nil) != (when == "before") {
			t.Fatalf("%s: the move is %v", when, m)
		}
		goesOn("during")
		if m != nil {
			p.Moved(m, "b", 0, now, now)
		}
		goesOn("after")
		if at := b.Home(grow(1, 4), now); at != "c" {
			t.Errorf("%s the move: the next turn goes to %q", when, at)
		}
		b.Answered(&Turn{Worker: "c", Hashes: grow(1, 4), Request: &Request{}}, now)
		if c := b.Counts(); c.Used != 0 {
			t.Errorf("%s the move: it counts as used", when)
		}
	}
}
