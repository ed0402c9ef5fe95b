package route

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/session"
)

// A free choice binds a key if the client or the strategy asks for it, and else not.
func TestWhoBinds(t *testing.T) {
	f := func(what string, say int, claim Claim, want string) {
		t.Helper()
		s := newScene(t, "a b c")
		c := s.chosen(s.ask(say, claim))
		if c.Bind(); c.stay.at != want {
			t.Errorf("%s: bound at %q; want %q", what, c.stay.at, want)
		}
		if lives := s.lives(claim.Key); want == "" && lives != "unknown" || want != "" && lives != want {
			t.Errorf("%s: lives at %q", what, lives)
		}
		kind := ""
		if want != "" {
			kind = "key"
		}
		if got := c.SessionKind(); got != kind {
			t.Errorf("%s: session kind %q; want %q", what, got, kind)
		}
	}
	f("no session", bindTo+1, Claim{}, "")
	f("a key that the client binds", decline, Claim{Key: key("s"), Binds: true}, "a")
	f("a key that the strategy binds", bindTo+1, Claim{Key: key("s")}, "b")
	f("a key that nobody binds", first+1, Claim{Key: key("s")}, "")
	f("a made-up key", decline, Claim{Key: key("s"), Fresh: true, Binds: true}, "a")
	f("a key that only places", bindTo+1, Claim{Key: key("s"), Placing: true, Binds: true}, "")
}

// What a strategy sees of the session: a number for its name, nothing of a session that the request does not take part
// in, and how many sessions live at which worker.
func TestWhatAStrategySeesOfASession(t *testing.T) {
	s := newScene(t, "a:lacks b c")
	s.enter(key("gone"), "a", false)
	for _, id := range []string{"1", "2", "3"} {
		s.enter(key(id), "c", false)
	}
	f := func(claim Claim, name string, live uint32) {
		t.Helper()
		c := s.chosen(s.ask(decline, claim))
		frame := &c.fleet.frame
		if frame.Session != name || (frame.Header.Session != 0) != (name != "") {
			t.Errorf("%+v: session %q, number %x; want %q", claim, frame.Session, frame.Header.Session, name)
		}
		if got := frame.Rows[1].Sessions; got != live || frame.Rows[0].Sessions != 0 {
			t.Errorf("%+v: %d sessions; want %d", claim, got, live)
		}
	}
	f(Claim{}, "", 0)
	f(Claim{Key: key("new")}, "new", 3)
	f(Claim{Key: key("new"), Placing: true}, "new", 3)
	f(Claim{Key: key("1")}, "1", 0) // bound: no strategy is asked
	f(Claim{Key: key("gone")}, "", 0)
	s.become("c", "down")
	c := s.chosen(s.ask(decline, Claim{Key: key("1")}))
	if c.Bind(); s.lives(key("1")) != "b" {
		t.Errorf("lives at %q", s.lives(key("1")))
	}
	c = s.chosen(s.ask(decline, Claim{Key: key("other")}))
	if got := c.fleet.frame.Rows[0].Sessions; got != 1 {
		t.Errorf("%d sessions at the new worker; want 1, counted at once", got)
	}
}

// Another request bound the session first: its worker comes first then, and nobody takes its binding back.
func TestBindRaces(t *testing.T) {
	f := func(what, other, want, reason string) {
		t.Helper()
		s := newScene(t, "a b c")
		c := s.chosen(s.ask(first, Claim{Key: key("s"), Binds: true}))
		s.Sessions.Bind(key("s"), other, s.now)
		c.Bind()
		if got := orderOf(c); got != want || c.First().ID() != want[:1] || c.Reason() != reason {
			t.Errorf("%s: order %q, first %s, %q; want %q, %q", what, got, c.First().ID(), c.Reason(), want, reason)
		}
		c.Unbind()
		if lives := s.lives(key("s")); lives != other {
			t.Errorf("%s: lives at %q", what, lives)
		}
		if from, _ := c.Moved(); from != "" {
			t.Errorf("%s: it was moved", what)
		}
	}
	f("at another worker", "c", "c a b", "bound session")
	f("at the second", "b", "b a c", "bound session")
	f("at the same", "a", "a b c", "bound session")
	f("at one that is no candidate", "z", "a b c", "obedient says 7")
}

// Another router moved the session first, or it ended meanwhile.
func TestMoveRaces(t *testing.T) {
	s := newScene(t, "a:down b c d")
	s.enter(key("s"), "a", false)
	c := s.chosen(s.ask(first, Claim{Key: key("s")}))
	s.Sessions.Rebind(key("s"), "a", "d", s.now)
	if c.Bind(); orderOf(c) != "d b c" || s.lives(key("s")) != "d" {
		t.Errorf("order %q, lives at %q", orderOf(c), s.lives(key("s")))
	}
	if from, to := c.Moved(); from != "a" || to != "d" {
		t.Errorf("moved from %q to %q", from, to)
	}

	s.enter(key("t"), "a", false)
	c = s.chosen(s.ask(first, Claim{Key: key("t")}))
	s.Sessions.Close(key("t"), s.now)
	if v := c.Bind(); v != Chosen || s.lives(key("t")) != "b" {
		t.Errorf("a key that ended is bound anew: %v, %q", v, s.lives(key("t")))
	}

	s.enter(opened("o"), "a", false)
	c = s.chosen(s.ask(first, Claim{Opened: opened("o")}))
	s.Sessions.Close(opened("o"), s.now)
	if v := c.Bind(); v != SessionClosed || s.lives(opened("o")) != "closed" {
		t.Errorf("an opened session that was closed: %v, %q", v, s.lives(opened("o")))
	}
}

// A binding lasts if its first answer is good, and is where that came from.
func TestAnswered(t *testing.T) {
	f := func(what string, claim Claim, by string, good, want bool, lives string) {
		t.Helper()
		s := newScene(t, "a b c")
		s.enter(key("old"), "a", false)
		s.enter(stored("r"), "a", false)
		c := s.chosen(s.ask(decline, claim))
		c.Bind()
		c.Release()
		if by != "a" {
			c.Unreached(s.worker("b"))
			c.Unreached(s.worker("a"))
		}
		name := c.Session()
		if got := c.Answered(s.worker(by), good); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
		if got := s.lives(name); got != lives {
			t.Errorf("%s: lives at %q; want %q", what, got, lives)
		}
	}
	fresh := Claim{Key: key("new"), Binds: true}
	f("a new one", fresh, "a", true, true, "a")
	f("a new one at the second", fresh, "b", true, true, "b")
	f("a new one, badly", fresh, "a", false, false, "unknown")
	f("a new one at the second, badly", fresh, "b", false, false, "unknown")
	f("an old one", Claim{Key: key("old")}, "a", true, true, "a")
	f("an old one, badly", Claim{Key: key("old")}, "a", false, true, "a")
	f("an old one whose worker is not reached", Claim{Key: key("old")}, "c", true, true, "c")
	f("a stored response stays", Claim{Stored: [2]session.Name{stored("r")}}, "c", true, true, "a")
	f("none", Claim{}, "c", true, true, "unknown")
	f("a key that nobody binds", Claim{Key: key("new")}, "c", true, true, "unknown")
}

// A session whose worker answers with an error, or is merely left for another, stays there.
func TestASessionStaysAtAReachedWorker(t *testing.T) {
	s := newScene(t, "a b")
	s.enter(key("s"), "a", false)
	c := s.chosen(s.ask(decline, Claim{Key: key("s")}))
	c.Bind()
	c.Unreached(s.worker("b"))
	if c.Answered(s.worker("b"), true); s.lives(key("s")) != "a" {
		t.Errorf("lives at %q", s.lives(key("s")))
	}
}

// While the store is silent every router chooses alike for a session that nobody here holds, whatever its strategy says
// and whatever its own fleet's load. What it holds goes on.
func TestASilentStore(t *testing.T) {
	one, two := newScene(t, "a b c d e f"), newScene(t, "d:busy c e:busy b a:slow f")
	two.enter(key("held"), "c", false)
	one.store.silent, two.store.silent = true, true
	seen := map[string]int{}
	for i := range 200 {
		n := key("session " + strings.Repeat("i", i))
		n.Tenant = "t"
		claim := Claim{Key: n, Binds: true, Fresh: i%2 == 1}
		x, y := one.chosen(one.ask(first, claim)), two.chosen(two.ask(bindTo+3, claim))
		if x.First().ID() != y.First().ID() {
			t.Fatalf("%v: %q and %q", n, orderOf(x), orderOf(y))
		}
		if got := x.Reason(); got != "store silent: by the session's name" {
			t.Fatal(got)
		}
		x.Bind()
		if one.lives(n) != x.First().ID() || one.store.kept != i+1 {
			t.Fatalf("kept at %q, %d in all", one.lives(n), one.store.kept)
		}
		seen[x.First().ID()]++
	}
	for _, id := range one.names {
		if n := seen[id]; n < 15 || n > 55 {
			t.Errorf("%s got %d of 200 sessions", id, n)
		}
	}
	if c := two.chosen(two.ask(first, Claim{Key: key("held")})); c.First().ID() != "c" {
		t.Errorf("what is held goes to %s", c.First().ID())
	}
	if c := one.chosen(one.ask(first+4, Claim{Key: key("x")})); c.First().ID() != "e" {
		t.Errorf("what is not bound goes to %s, not where the strategy says", c.First().ID())
	}
}

// One worker goes while the store is silent: only its own sessions move, to where every router moves them.
func TestASilentStoreAndAWorkerDown(t *testing.T) {
	one, two := newScene(t, "a b c d"), newScene(t, "a b c d")
	claims := make([]Claim, 40)
	at := make([]string, len(claims))
	for i := range claims {
		claims[i] = Claim{Key: key(strings.Repeat("k", i+1)), Binds: true}
		one.enter(claims[i].Key, "c", false)
	}
	one.store.silent, two.store.silent = true, true
	for i, claim := range claims {
		at[i] = two.chosen(two.ask(decline, claim)).First().ID()
	}
	one.become("c", "down")
	two.become("c", "down")
	for i, claim := range claims {
		x, y := one.chosen(one.ask(decline, claim)), two.chosen(two.ask(decline, claim))
		if orderOf(x) != orderOf(y) || at[i] != "c" && x.First().ID() != at[i] {
			t.Errorf("%q here, %q there, %s before", orderOf(x), orderOf(y), at[i])
		}
		x.Bind()
		if from, to := x.Moved(); from != "c" || to != x.First().ID() || one.lives(claim.Key) != to {
			t.Errorf("moved from %q to %q, lives at %q", from, to, one.lives(claim.Key))
		}
	}
}

// A worker that answers that it keeps no sessions of its own is believed until it goes down.
func TestSessionless(t *testing.T) {
	s := newScene(t, "a b")
	a, b := s.worker("a"), s.worker("b")
	s.NoteSessionless(a)
	if !s.Sessionless(a) || s.Sessionless(b) {
		t.Error("want a and not b")
	}
	s.become("a", "down")
	if s.Sessionless(a) {
		t.Error("another process is not believed to be like the last")
	}
}
