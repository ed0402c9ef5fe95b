package relocate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// turnOf has a worker answer a conversation's first turn of so many tokens, and returns it.
func (b *Book) turnOf(id, tokens int, key string) *Turn {
	t := &Turn{Worker: "a", Hashes: grow(id, 1), Tokens: tokens, Request: &Request{Caller: &gate.Caller{Name: key},
		Named: session.Name{Kind: session.Key, Tenant: key, ID: fmt.Sprint("s", id)}}}
	b.Answered(t, at)
	return t
}

// play fulfils what is due in so many seconds, and returns the pieces, each with when, where and how long. has returns
// who takes one, and how much of it that had cached.
func (b *Book) play(seconds int, has func(m *Move) (string, int)) string {
	sent := ""
	for s := range seconds {
		now := at.Add(time.Duration(s) * time.Second)
		for t, m, _ := b.Due(now); m != nil; t, m, _ = b.Due(now) {
			sent += fmt.Sprintf("%d:%s%d ", s, m.To, m.Tokens)
			to, cached := has(m)
			b.Did(t, m, Taken{By: to, Cached: cached}, now)
		}
	}
	return strings.TrimSpace(sent)
}

func all(m *Move) (string, int) { return m.To, m.Tokens }

func TestWishes(t *testing.T) {
	f := func(w Wish, has func(*Move) (string, int), said, want string, done, failed int) {
		t.Helper()
		b := newBook(1 << 20)
		turn := b.turnOf(1, 1200, "k")
		if got := b.Wish(turn, []Wish{w}, at)[0]; got != said {
			t.Errorf("%q; want %q", got, said)
		}
		if got := b.play(60, has); got != want {
			t.Errorf("%s: sent %q; want %q", said, got, want)
		}
		if c := b.Counts(); c.Wishes != [outcomes]int{0, done, failed} || len(b.tasks) > 1 || b.Wished(at.Add(time.Hour)) {
			t.Errorf("%s: %+v, %d tasks", said, c, len(b.tasks))
		}
	}
	lost := func(m *Move) (string, int) { return m.To, 16 }
	elsewhere := func(*Move) (string, int) { return "c", 0 }
	f(Wish{What: Keep, For: 40 * time.Second}, all, "keep for 40s", "15:a1200 30:a1200", 1, 0)
	f(Wish{What: Keep, For: 8 * time.Second}, all, "keep for 8s", "4:a1200", 1, 0)
	f(Wish{What: Keep, For: 40 * time.Second}, lost, "keep for 40s", "15:a1200", 0, 1)
	f(Wish{What: Prefetch, To: "b", For: 5 * time.Second}, all, "prefetch at b in 5s", "5:b1000 5:b1200", 1, 0)
	f(Wish{What: Prefetch, To: "b", For: 5 * time.Second}, elsewhere, "prefetch at b in 5s", "5:b1000", 0, 1)
	f(Wish{What: Copy, To: "b", Share: .5}, all, "copy 50 % to b", "0:b600", 1, 0)
	f(Wish{What: Drop}, all, "drop", "", 0, 0)
}

// TestTheWorkerOfAWishDrains: nothing is sent to a worker that drains, be it before the wish, before its time or between
// two pieces. What is kept at one waits for the hand-over.
func TestTheWorkerOfAWishDrains(t *testing.T) {
	wish := Wish{What: Prefetch, To: "b", For: 5 * time.Second}
	b := newBook(1 << 20)
	b.Takers = up("a")
	if said := b.Wish(b.turnOf(1, 1200, "k"), []Wish{wish}, at); !strings.Contains(said[0], "takes no requests") ||
		b.Counts().Wishes[Refused] != 1 {
		t.Errorf("%q, %+v", said, b.Counts())
	}
	b = newBook(1 << 20)
	b.Wish(b.turnOf(1, 1200, "k"), []Wish{wish}, at)
	b.Wish(b.turnOf(2, 1200, "k"), []Wish{{What: Copy, To: "b", Share: 1}}, at)
	b.Wish(b.turnOf(3, 1200, "k"), []Wish{{What: Keep, For: time.Minute}}, at)
	sent := b.play(40, func(m *Move) (string, int) {
		b.Takers = up("c")
		return m.To, m.Tokens
	})
	if c := b.Counts(); sent != "0:b1000" || c.Wishes != [outcomes]int{0, 0, 2} || len(b.tasks) != 1 {
		t.Errorf("sent %q, %+v, %d tasks", sent, c, len(b.tasks))
	}
	b.Takers = up("a")
	if sent := b.play(60, all); sent == "" || b.Counts().Wishes[Fulfilled] != 1 {
		t.Errorf("kept once more: %q, %+v", sent, b.Counts())
	}
}

// TestTheNextTurnEndsAWish: and so does the end of the conversation.
func TestTheNextTurnEndsAWish(t *testing.T) {
	for _, ends := range []bool{false, true} {
		b := newBook(1 << 20)
		b.Wish(b.turnOf(1, 1000, "k"), []Wish{{What: Prefetch, To: "b", For: 9 * time.Second}}, at)
		b.Answered(&Turn{Worker: "a", Hashes: grow(1, 2), Tokens: 2000, Request: &Request{}, Ends: ends}, at.Add(time.Second))
		if sent := b.play(60, all); sent != "" || len(b.tasks) > 0 {
			t.Errorf("ends %t: %s, %d tasks", ends, sent, len(b.tasks))
		}
	}
}

// TestOneKeyWantsAllKept: a key has so many wishes that wait, and another one has its own.
func TestOneKeyWantsAllKept(t *testing.T) {
	b := newBook(8 << 20)
	refused := 0
	for id := range 100 {
		said := b.Wish(b.turnOf(id+1, 1000, "greedy"), []Wish{{What: Keep, For: time.Minute}}, at)
		if strings.Contains(said[0], "not done") {
			refused++
		}
	}
	if said := b.Wish(b.turnOf(101, 1000, "other"), []Wish{{What: Keep, For: time.Minute}}, at); said[0] != "keep for 1m0s" {
		t.Errorf("the other key: %q", said)
	}
	if refused != 100-mostOfKey || b.Counts().Wishes[Refused] != refused {
		t.Errorf("%d refused, %+v", refused, b.Counts())
	}
}

// TestDropAnother: of the same tenant alone.
func TestDropAnother(t *testing.T) {
	b := newBook(1 << 20)
	b.turnOf(1, 1000, "k")
	b.turnOf(2, 1000, "stranger")
	turn := b.turnOf(3, 1000, "k")
	said := b.Wish(turn, []Wish{{What: Drop, Session: "s1"}, {What: Drop, Session: "s2"}, {What: Drop, Session: "none"}}, at)
	if said[0] != "drop another session" || !strings.Contains(said[1], "not done") || !strings.Contains(said[2], "not done") {
		t.Errorf("%q", said)
	}
	if b.Counts().Kept != 2 || b.find(grow(1, 1)) != nil {
		t.Errorf("%+v", b.Counts())
	}
}

// TestWishesForNothing: the router does not keep the request.
func TestWishesForNothing(t *testing.T) {
	b := newBook(0)
	for _, turn := range []*Turn{nil, b.turnOf(1, 1000, "k")} {
		if said := b.Wish(turn, []Wish{{What: Keep, For: time.Minute}}, at); !strings.Contains(said[0], "hand_over_bytes") {
			t.Errorf("%q", said)
		}
	}
}
