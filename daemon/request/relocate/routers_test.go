package relocate

import (
	"testing"
	"time"
)

// TestWhoMovesAConversation: the router that has sent its last turn does. The other one holds it at its worker until
// then, and knows where it has moved.
func TestWhoMovesAConversation(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBook(1 << 20)
	heard := func(worker string, id, turns int, moves bool) {
		b.Answered(&Turn{Worker: worker, Hashes: grow(id, turns), Tokens: 1000 * turns, Moves: moves}, now)
	}
	for id := range 3 {
		b.Answered(&Turn{Worker: "a", Hashes: grow(id, 1), Tokens: 1000, Request: &Request{Body: make([]byte, 50)}}, now)
	}
	now = now.Add(time.Second)
	heard("a", 1, 2, false) // its next turn came in at the other router
	heard("a", 9, 1, false) // and so did this one's first
	if c := b.Counts(); c.Kept != 2 || b.others != 2 || c.Bytes != 2*(50+overhead)+2*overhead {
		t.Fatalf("%+v, %d of others", c, b.others)
	}
	p := b.Plan("a", now, now.Add(time.Minute))
	if p.All() != 2 || len(p.all) != 4 {
		t.Fatalf("%d of %d conversations are to be moved", p.All(), len(p.all))
	}
	for id, turns := range map[int]int{0: 2, 1: 3, 9: 2} {
		if at := b.Home(grow(id, turns), now); at != "a" {
			t.Errorf("the next turn of %d goes to %q", id, at)
		}
	}
	b.Home(grow(0, 2), now.Add(-2*turnTime)) // none is on its way
	heard("b", 1, 1, true)                   // a piece, which is none of the whole prompt
	if at := b.Home(grow(1, 3), now.Add(-2*turnTime)); at != "a" {
		t.Errorf("after a piece of it has moved, the next turn goes to %q", at)
	}
	heard("b", 1, 2, true)
	if at := b.Home(grow(1, 3), now); at != "b" {
		t.Errorf("after the other router has moved it, the next turn goes to %q", at)
	}
	// The turn of a held one comes in here: it is this router's to move.
	b.Answered(&Turn{Worker: "a", Hashes: grow(9, 2), Tokens: 2000, Request: &Request{Body: make([]byte, 50)}}, now)
	heard("b", 0, 2, false) // and one goes to the other router, and elsewhere
	moved := map[uint64]int{}
	for range 100 {
		now = now.Add(100 * time.Millisecond)
		if m, _ := p.Next(now); m != nil {
			if p.Moved(m, m.To, 0, now, now) {
				moved[m.talk.tip/1000]++
			}
		}
	}
	if len(moved) != 2 || moved[2] != 1 || moved[9] != 1 || b.Home(grow(0, 3), now) != "" {
		t.Errorf("moved %v; want the conversations 2 and 9, once each", moved)
	}
	p.End()
	heard(b.Home(grow(2, 2), now), 2, 2, false) // it is this router's move, whoever sends the next turn
	if c := b.Counts(); c.Used != 1 || c.Moved != 2 {
		t.Errorf("%+v", c)
	}
}

// TestAMoveBeforeTheDrainIsSeen: two routers see at different times that a worker leaves. What the first one has moved by
// then, the second one does not hold there.
func TestAMoveBeforeTheDrainIsSeen(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBook(1 << 20)
	b.Answered(&Turn{Worker: "a", Hashes: grow(1, 2), Tokens: 2000}, now)
	b.Answered(&Turn{Worker: "b", Hashes: grow(1, 2), Tokens: 2000, Moves: true}, now)
	p := b.Plan("a", now, now.Add(time.Minute))
	if at := b.Home(grow(1, 3), now); at != "" || len(p.all) != 0 {
		t.Errorf("the next turn goes to %q; %d conversations are held", at, len(p.all))
	}
}

// TestOthersAreBounded: requests of other routers push none of this one's conversations out.
func TestOthersAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBook(1 << 20)
	b.Answered(&Turn{Worker: "a", Hashes: grow(0, 1), Tokens: 1000, Request: &Request{Body: make([]byte, 50)}}, now)
	for id := range 5000 {
		b.Answered(&Turn{Worker: "a", Hashes: grow(1+id, 1), Tokens: 1000}, now)
	}
	if c := b.Counts(); c.Kept != 1 || b.others == 0 || b.others*overhead > b.Keeps() || len(b.tips) != 1+b.others {
		t.Errorf("%+v, %d of others, %d tips", c, b.others, len(b.tips))
	}
	b.Answered(&Turn{Worker: "b", Hashes: grow(0, 2), Tokens: 2000}, now.Add(-time.Minute)) // heard late
	if b.Counts().Kept != 1 {
		t.Error("a turn before the last one takes a conversation away")
	}
}

// TestSeveralRoutersShareAWorkersTime: two routers that move conversations to one worker take no more of its time than
// one does.
func TestSeveralRoutersShareAWorkersTime(t *testing.T) {
	p := Plan{book: newBook(1 << 20)}
	for n, want := range map[int32]float64{0: 1, 1: 1, 2: 3, 4: 7} {
		p.book.Routers.Store(n)
		if got := p.rest(); got != want {
			t.Errorf("%d routers: a pause of %v times a piece; want %v", n, got, want)
		}
	}
}

func TestCalls(t *testing.T) {
	var c Calls
	at := time.Unix(1000, 0)
	c.Add("a", at)
	c.Add("a", time.Time{})
	for i := range 2 * mostCalls {
		c.Add(string(rune(i+1000)), at)
	}
	if all := c.Take(); len(all) != mostCalls || !all["a"].IsZero() || len(c.Take()) != 0 {
		t.Errorf("%d calls", len(all))
	}
}
