package route

import (
	"math"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestConversation: a strategy is told which turn of its session a request is, where the turn before went, how long ago
// that was, and the same of the session that began this one. A dry run counts nothing, and a name is its tenant's.
func TestConversation(t *testing.T) {
	s := newScene(t, "a b c")
	claim := Claim{Key: session.Name{Kind: session.Key, Tenant: "team-a\x00", Owner: "team-a", ID: "child"}, Parent: "root", By: "X-Session-Id"}
	root := claim
	root.Key.ID, root.Parent = "root", ""
	turn := func(c Claim, out int) string {
		t.Helper()
		choice := s.chosen(s.ask(first, c))
		to, _ := choice.Next(s.now)
		trip := s.send(choice, to)
		s.book.Answered(choice.talk.key, out)
		trip.End(&judge.Outcome{Kind: judge.Answered}, End{Whole: true, Status: 200, At: s.now})
		return to.Worker.ID()
	}
	f := func(what string, c Claim, turns uint32, since float32, last, parent string, output uint32) {
		t.Helper()
		choice := s.chosen(s.ask(first, c))
		s.chosen(s.ask(first, c)) // a second look changes nothing
		h := &choice.fleet.frame.Header
		at := func(row int32) string {
			if row < 0 {
				return ""
			}
			return choice.fleet.workers[row].ID()
		}
		if h.Turn != turns || h.SinceLast != since || at(h.Last) != last || at(h.ParentRow) != parent || h.ExpectedOutput != output ||
			(h.Parent != 0) != (c.Parent != "") {
			t.Errorf("%s: turn %d, %v s after %q, parent %x at %q, %d tokens expected; want turn %d, %v s after %q, parent at %q, %d tokens",
				what, h.Turn, h.SinceLast, at(h.Last), h.Parent, at(h.ParentRow), h.ExpectedOutput, turns, since, last, parent, output)
		}
	}
	f("before all", claim, 1, 0, "", "", 0)
	began := turn(root, 40)
	f("the child's first turn", claim, 1, 0, "", began, 0)
	home := turn(claim, 100)
	s.now = s.now.Add(30 * time.Second)
	f("its second", claim, 2, 30, home, began, 100)
	other := claim
	other.Key.Tenant = "team-b\x00"
	f("another tenant's of that name", other, 1, 0, "", "", 0)
	if mine, theirs := hashIn(claim.Key.Tenant, "child"), hashIn(other.Key.Tenant, "child"); mine == theirs || mine == hashOf("child") ||
		hashIn("\x00", "child") != hashOf("child") {
		t.Error("two tenants' sessions of one name have one number, or a session of nobody's another than before")
	}
	f("no name", Claim{}, 1, 0, "", "", 0)
	gap := func(c Claim, want float32, final bool) {
		t.Helper()
		if h := &s.chosen(s.ask(first, c)).fleet.frame.Header; h.Gap != want || h.Flags&abi.HeaderFinal != 0 != final {
			t.Errorf("a gap of %v s, flags %b; want %v s, final %v", h.Gap, h.Flags, want, final)
		}
	}
	gap(claim, 0, false)
	turn(claim, 100)
	last := claim
	last.Final = true
	gap(last, 30, true)
	fresh := claim
	fresh.Key.ID = "new"
	gap(fresh, 30, false)
	strange := fresh
	strange.By = "Thread-Id"
	gap(strange, 0, false)
	turn(last, 0)
	f("after its end", claim, 1, 0, "", began, 0)
}

// TestHints: a client's word on its answer's length counts within bounds, or it would make workers look full to all.
func TestHints(t *testing.T) {
	f := func(hint, limit uint32, usual int, want uint32) {
		t.Helper()
		s := newScene(t, "a b")
		a := s.ask(first, Claim{})
		a.Prompt.Expected, a.Prompt.MaxTokens = hint, limit
		s.answers.learn(hashOf(a.Prompt.Model), hashOf(a.Caller), usual)
		if got := s.chosen(a).fleet.frame.Header.ExpectedOutput; got != want {
			t.Errorf("a hint of %d, max_tokens %d, usually %d: %d tokens expected; want %d", hint, limit, usual, got, want)
		}
	}
	f(700, 0, 0, 700)
	f(700, 50, 0, 50)
	f(math.MaxUint32, 0, 0, 4096)
	f(math.MaxUint32, 0, 1000, 8000)
	f(6000, 0, 1000, 6000)
	f(0, 0, 1000, 1000)
}
