package route

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// Next gives the order, then those that were left out or came up since, the least busy first, and each worker once.
func TestTheSecondLook(t *testing.T) {
	f := func(fleet string, since func(*scene), want string) {
		t.Helper()
		s := newScene(t, fleet)
		c := s.chosen(s.ask(first, Claim{}))
		if since != nil {
			since(s)
		}
		if got := rest(c, s.now); got != want {
			t.Errorf("%q: %q; want %q", fleet, got, want)
		}
		if tried := len(c.Tried()); tried != len(strings.Fields(strings.ReplaceAll(want, "|", ""))) {
			t.Errorf("%q: %d tried", fleet, tried)
		}
		if _, more := c.Next(s.now); more || c.MayWiden(s.now) {
			t.Errorf("%q: there is a third look", fleet)
		}
	}
	f("a b c", nil, "a b c")
	f("a b:slow c", nil, "a c | b")
	f("a b:full c:full", nil, "a")
	f("a b:busy c:busy d:slow", nil, "a b c | d")
	f("a b:down c:starting", func(s *scene) { s.heal("c"); s.heal("b"); s.become("c", "busy") }, "a | b c")
	f("a b:draining", func(s *scene) { s.Workers.Drain("b", false, s.now) }, "a | b")
	f("a b:silent", nil, "a | b")
	f("a b:crowded", nil, "a | b")
	f("a b:slow c:silent", nil, "a | b | c")
	f("a:slow b:crowded", func(s *scene) { s.become("a", "down") }, "a | b")
	f("a b c", func(s *scene) { s.become("a", "down"); s.become("b", "down") }, "a b c")
	f("a b:down c:down d:down", func(s *scene) {
		for i, id := range []string{"b", "c", "d"} {
			s.heal(id)
			for range 3 - i {
				s.become(id, "busy")
			}
		}
	}, "a | d c b")
}

// Later the fleet is another one, and Next looks once more: an attempt may have lasted for minutes.
func TestTheLookAfterALongAttempt(t *testing.T) {
	s := newScene(t, "a b:down c:down")
	c := s.chosen(s.ask(first, Claim{}))
	if got := rest(c, s.now); got != "a" {
		t.Fatalf("%q", got)
	}
	s.heal("b")
	if got := rest(c, s.now.Add(lookEvery-1)); got != "" {
		t.Errorf("at once: %q; want nobody", got)
	}
	if got := rest(c, s.now.Add(lookEvery)); got != "| b" {
		t.Errorf("later: %q; want b", got)
	}
	s.heal("c")
	if got := rest(c, s.now.Add(2*lookEvery)); got != "| c" {
		t.Errorf("later still: %q; want c alone", got)
	}
	s.enter(opened("s"), "a", true)
	c = s.chosen(s.ask(decline, Claim{Opened: opened("s")}))
	if rest(c, s.now); c.MayWiden(s.now.Add(time.Hour)) || !c.Pinned() {
		t.Error("a session that stays is looked for elsewhere")
	}
}

// The second look fills its rows anew, and the believed matches too. A worker that was left out gets neither the number
// of another worker in the same row nor its own of before.
func TestTheSecondLookMatchesAnew(t *testing.T) {
	s := newScene(t, "a b c d:down e")
	sent := text("a long system prompt ", 12)
	s.served(s.asking(completion(first+1, sent), Claim{}))                      // row 1 is b: it holds 12 blocks
	s.served(s.asking(completion(first+3, sent[:5*128]+text("y", 1)), Claim{})) // row 3 is e: it holds 5
	s.become("b", "down")
	s.become("e", "down")
	s.heal("d")

	r := completion(first, sent+text("and more", 2))
	c := s.chosen(s.asking(r, Claim{}))
	if got := orderOf(c); got != "a d c" && got != "a c d" {
		t.Fatalf("order %q", got)
	}
	for range 3 {
		to, ok := c.Next(s.now)
		if !ok || c.believed(to) != 0 {
			t.Fatalf("%v, %d tokens believed", ok, c.believed(to))
		}
	}
	s.heal("b") // its cache is empty now
	s.heal("e")
	x := s.chosen(s.asking(completion(first+1, sent[:7*128]), Claim{})) // b again: row 1
	if to, _ := x.Next(s.now); to.Worker.ID() != "b" {
		t.Fatalf("row 1 is %s", to.Worker.ID())
	} else {
		s.send(x, to)
	}

	s.now = s.now.Add(time.Second)
	later := s.now
	to, ok := c.Next(later)
	if !ok || to.Worker.ID() != "e" { // b is busy
		t.Fatalf("%v, %s; want e", ok, to.Worker.ID())
	}
	if n := s.send(c, to).Matched(); n != 0 || c.Believed() != 0 {
		t.Errorf("%d blocks, %d tokens believed at e, which died", n, c.Believed())
	}
	to, ok = c.Next(later)
	if !ok || to.Worker.ID() != "b" {
		t.Fatalf("%v, %s; want b", ok, to.Worker.ID())
	}
	var tickets int
	for _, stats := range s.Workers.Stats(later) {
		tickets += stats.Pending
	}
	if n := s.send(c, to).Matched(); n != 7 || c.Believed() != 7*32 {
		t.Errorf("%d blocks, %d tokens believed at b; want 7 and 224", n, c.Believed())
	}
	for _, stats := range s.Workers.Stats(later) {
		tickets -= stats.Pending
	}
	if tickets != -c.size.all {
		t.Errorf("b's queue grew by %d tokens; want %d", -tickets, c.size.all)
	}
	if h := &c.fleet.frame.Header; h.BestMatch != 12-5 || c.fleet.frame.WorkerIDs[h.BestRow] != "b" || h.Bound != -1 {
		t.Errorf("best %d at row %d, bound %d", h.BestMatch, h.BestRow, h.Bound)
	}
}

// The session's worker stays the bound one in the second look.
func TestTheSecondLookKnowsTheBoundWorker(t *testing.T) {
	s := newScene(t, "c:slow a b")
	s.enter(key("s"), "b", false)
	c := s.chosen(s.ask(decline, Claim{Key: key("s")}))
	if got := rest(c, s.now); got != "b a | c" {
		t.Fatalf("%q", got)
	}
	if bound := c.fleet.frame.Header.Bound; c.fleet.workers[bound].ID() != "b" {
		t.Errorf("row %d", bound)
	}
	if c.First().ID() != "c" {
		t.Errorf("first is %s", c.First().ID())
	}
}

// Nobody else may serve a pinned session: neither another of the order, nor one of a second look.
func TestPinned(t *testing.T) {
	s := newScene(t, "a:busy b c:slow")
	s.enter(opened("s"), "a", true)
	c := s.chosen(s.ask(decline, Claim{Opened: opened("s")}))
	if got := rest(c, s.now); got != "a" || c.MayWiden(s.now) {
		t.Errorf("%q", got)
	}
	c.Again(s.now)
	if got := rest(c, s.now); got != "a" {
		t.Errorf("once more: %q", got)
	}
}

// Again gives the last worker once more, unless the second look finds another one.
func TestAgain(t *testing.T) {
	f := func(workers string, wants ...string) {
		t.Helper()
		s := newScene(t, workers)
		c := s.chosen(s.ask(first, Claim{}))
		for i, want := range wants {
			to, ok := c.Next(s.now)
			if !ok || to.Worker.ID() != want {
				t.Fatalf("%s: %d: %v; want %s", workers, i, ok, want)
			}
			if i < len(wants)-1 {
				c.Again(s.now)
				if c.Left() != 1 {
					t.Fatalf("%s: %d left", workers, c.Left())
				}
			}
		}
		if _, more := c.Next(s.now); more {
			t.Errorf("%s: there is more", workers)
		}
	}
	f("a", "a", "a", "a")
	f("a b:slow", "a", "b", "b")
	f("a b:down", "a", "a")
	s := newScene(t, "a")
	c := s.chosen(s.ask(first, Claim{}))
	c.Next(s.now)
	s.become("a", "down")
	c.Again(s.now)
	if _, more := c.Next(s.now); more {
		t.Error("a worker that went down is tried again")
	}
}

// Another request took the last place at a worker, or it went down since: the request goes on, and nothing was begun.
func TestAPlaceThatIsTaken(t *testing.T) {
	sent := text("x", 9)
	for _, what := range []string{"full", "down"} {
		s := newScene(t, "a b")
		s.served(s.asking(completion(first, sent), Claim{}))
		c := s.chosen(s.asking(completion(first, sent), Claim{}))
		to, _ := c.Next(s.now)
		s.become("a", what)
		before := s.Index.Worker(to.Worker.Slot()).Blocks
		var trip Trip
		if c.Send(&trip, to, nil, s.now) || c.sent != 0 || c.Believed() != 0 {
			t.Errorf("%s: sent %d, %d tokens believed", what, c.sent, c.Believed())
		}
		if now := s.Index.Worker(to.Worker.Slot()).Blocks; now != before {
			t.Errorf("%s: the index has %d blocks; want %d", what, now, before)
		}
		if to, ok := c.Next(s.now); !ok || to.Worker.ID() != "b" {
			t.Errorf("%s: %v", what, ok)
		}
		if what == "down" { // it has had nothing of the request, and may get it later
			s.heal("a")
			if got := rest(c, s.now); got != "| a" {
				t.Errorf("up again: %q; want a", got)
			}
		}
	}
}

// In a panic the second look offers nobody twice, and requests may be sent to workers that are not up.
func TestTheSecondLookInAPanic(t *testing.T) {
	s := sceneOf(t, "a:down b:down", worker.Config{Panic: true})
	c := s.chosen(s.ask(first+1, Claim{}))
	to, _ := c.Next(s.now)
	s.send(c, to)
	if got := rest(c, s.now); to.Worker.ID() != "b" || got != "a" {
		t.Errorf("%s, then %q", to.Worker.ID(), got)
	}
}

// A request that failed at one rank of a worker is sent to another worker before the next rank: both are one process.
func TestOtherAddressesBeforeOtherRanks(t *testing.T) {
	s := newScene(t, "a b")
	s.Workers.Counted(s.watched["a"], 3, s.now) // rows a#0 b a#1 a#2
	c := s.chosen(s.ask(first+2, Claim{}))
	if got := orderOf(c); got != "a#1 a#0 b a#2" {
		t.Fatalf("order %q", got)
	}
	if got := rest(c, s.now); got != "a#1 b a#0 a#2" {
		t.Errorf("tried %q; want b before the other ranks of a", got)
	}
	c = s.chosen(s.ask(first+2, Claim{}))
	c.Next(s.now)
	c.Again(s.now)
	if to, _ := c.Next(s.now); to.Worker.ID() != "a#1" {
		t.Errorf("%s is tried in place of a#1, once more", to.Worker.ID())
	}
}
