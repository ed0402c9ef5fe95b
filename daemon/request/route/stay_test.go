package route

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// enter puts a session into the store: it lives at worker a, or at one that is gone.
func (s *scene) enter(n session.Name, at string, minted bool) {
	s.t.Helper()
	if n.Kind != session.Opened {
		s.Sessions.Bind(n, at, s.now)
		return
	}
	if _, err := s.Sessions.Open(n, session.Binding{Worker: at, Minted: minted}, s.now); err != nil {
		s.t.Fatal(err)
	}
}

// kinds are the sessions that the columns of the table below stand for.
var kinds = []struct {
	name          string
	at            session.Name
	claim         Claim
	minted        bool
	endWithWorker bool
}{
	{name: "opened", at: opened("s"), claim: Claim{Opened: opened("s")}},
	{name: "minted", at: opened("s"), claim: Claim{Opened: opened("s")}, minted: true},
	{name: "key", at: key("s"), claim: Claim{Key: key("s")}},
	{name: "response", at: stored("s"), claim: Claim{Stored: [2]session.Name{{}, stored("s")}}},
	{name: "opened, ends with its worker", at: opened("s"), claim: Claim{Opened: opened("s")}, endWithWorker: true},
	{name: "response, ends with its worker", at: stored("s"), claim: Claim{Stored: [2]session.Name{stored("s")}},
		endWithWorker: true},
	{name: "opened, closing", at: opened("s"), claim: Claim{Opened: opened("s"), Closing: true}},
}

// What becomes of a request whose session lives at worker a, by what a is to the request. pin: a and nobody else; a: a,
// the others behind it; move: the others, and Bind moves the session; apart: the others, and the session stays; else
// the verdict that refuses.
const standings = `
a           opened  minted  key     response  opened+end  response+end  closing
up          a       pin     a       a         pin         a             pin
busy        a       pin     a       a         pin         a             pin
slow        a       pin     a       a         pin         a             pin
draining    a       pin     a       a         pin         a             pin
lists       a       pin     a       a         pin         a             pin
gone        move    lost    move    apart     lost        apart         resting
starting    move    resting move    apart     resting     apart         resting
down        move    lost    move    apart     lost        apart         resting
ejected     move    resting move    apart     resting     apart         resting
leaving     move    resting move    apart     resting     apart         resting
lacks       apart   model   apart   apart     apart       apart         resting
full        full    full    full    full      full        full          full
`

var refusals = map[string]Verdict{"lost": SessionLost, "resting": SessionResting, "model": SessionOtherModel,
	"full": Full}

func TestEverySessionAtEveryWorker(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(standings), "\n")[1:] {
		fields := strings.Fields(line)
		for i, want := range fields[1:] {
			t.Run(fields[0]+"/"+kinds[i].name, func(t *testing.T) { standsAt(t, fields[0], i, want) })
		}
	}
}

func standsAt(t *testing.T, what string, i int, want string) {
	k := &kinds[i]
	s := newScene(t, "a:"+strings.Replace(what, "gone", "up", 1)+" b c d")
	at := "a"
	if what == "gone" {
		at = "z"
	}
	s.enter(k.at, at, k.minted)
	a := s.ask(decline, k.claim)
	a.EndWithWorker = k.endWithWorker
	c, v := s.choose(a)
	if refusal := refusals[want]; v != refusal {
		t.Fatalf("%v; want %v", v, refusal)
	}
	if v == SessionLost {
		if b, ended := c.LoseSession(); !ended || b.Worker != at {
			t.Fatalf("lost at %q, %v", b.Worker, ended)
		}
	} else if _, ended := c.LoseSession(); ended {
		t.Fatal("a session was lost that only rests")
	}
	if v != Chosen {
		return
	}
	others := strings.TrimPrefix("a b c d", at+" ")
	orders := map[string]string{"pin": "a", "a": "a b c d", "move": others, "apart": others}
	if got := orderOf(c); strings.TrimPrefix(got, "a ") != strings.TrimPrefix(orders[want], "a ") ||
		got[:1] != orders[want][:1] {
		t.Errorf("order %q; want %q", got, orders[want])
	}
	if c.MayWiden(s.now) == (want == "pin") {
		t.Errorf("a second look: %v", c.MayWiden(s.now))
	}
	before := s.store.writes
	if v := c.Bind(); v != Chosen {
		t.Fatalf("Bind: %v", v)
	}
	from, to := c.Moved()
	switch want {
	case "move":
		if from != at || to != c.First().ID() || s.lives(k.at) != to || c.Reason() != "fallback: decline" {
			t.Errorf("moved from %q to %q for %q, lives at %q", from, to, c.Reason(), s.lives(k.at))
		}
	case "apart":
		prolonged := 1 // by its use
		if k.at.Kind == session.Opened {
			prolonged = 0
		}
		if from != "" || s.lives(k.at) != at || s.store.writes != before+prolonged || c.SessionKind() != "" {
			t.Errorf("moved from %q, lives at %q, %d writes, kind %q", from, s.lives(k.at), s.store.writes-before,
				c.SessionKind())
		}
	default:
		if b := c.Binding(); from != "" || b.Worker != at || c.Reason() != "bound session" ||
			c.SessionKind() != k.at.Kind.String() {
			t.Errorf("moved from %q, bound at %q, reason %q, kind %q", from, b.Worker, c.Reason(), c.SessionKind())
		}
		to, _ := c.Next(s.now)
		if s.send(c, to); c.Session() != k.at || to.Worker.ID() != at { // a worker that drains takes it
			t.Errorf("session %v, at %s", c.Session(), to.Worker.ID())
		}
	}
}

// A patient request gets Unheard while its session's worker, or every worker, waits for a first health check.
func TestThePatientWaitForAFirstCheck(t *testing.T) {
	f := func(words string, claim Claim, patient bool, want Verdict) {
		t.Helper()
		s := newScene(t, words)
		s.enter(key("s"), "a", false)
		a := s.ask(decline, claim)
		a.Patient = patient
		if _, got := s.choose(a); got != want {
			t.Errorf("%q, patient %v: %v; want %v", words, patient, got, want)
		}
	}
	f("a:starting b:starting", Claim{}, true, Unheard)
	f("a:starting b:starting", Claim{}, false, NoWorker)
	f("a:starting b:starting", Claim{Key: key("s")}, false, NoWorker)
	f("a:starting b", Claim{}, true, Chosen)
	f("a:starting b", Claim{Key: key("s")}, true, Unheard)
	f("a:starting b", Claim{Key: key("s")}, false, Chosen)
}

// A worker that is offered in a panic keeps its sessions.
func TestPanicKeepsSessions(t *testing.T) {
	s := sceneOf(t, "a b c:down", worker.Config{Panic: true})
	s.enter(opened("s"), "b", true)
	s.become("a", "down")
	s.become("b", "down")
	if got := orderOf(s.chosen(s.ask(decline, Claim{Opened: opened("s")}))); got != "b" {
		t.Errorf("%q", got)
	}
	if got := orderOf(s.chosen(s.ask(decline, Claim{}))); len(strings.Fields(got)) != 3 {
		t.Errorf("%q", got)
	}
}

// The bound worker comes back after the look at the fleet and before the router asks why it was missing. It gets its
// session, and a pinned session goes nowhere else.
func TestTheBoundWorkerComesBackMeanwhile(t *testing.T) {
	var s *scene
	armed := false
	s = sceneOf(t, "a:draining b", worker.Config{Panic: true, OnChange: func() {
		if armed { // the panic begins after the rows were filled
			armed = false
			s.Workers.Drain("a", false, s.now)
			s.heal("a")
		}
	}})
	s.enter(opened("s"), "a", true)
	s.become("a", "down")
	s.become("b", "down")
	armed = true
	c, v := s.choose(s.ask(decline, Claim{Opened: opened("s")}))
	if v != Chosen || orderOf(c) != "a" || armed {
		t.Errorf("%v, order %q; want a", v, orderOf(c))
	}
}

// A worker that came back and went again between two questions is not dead: its session stays there.
func TestAWorkerThatCameAndWent(t *testing.T) {
	f := func(b session.Binding, want Verdict, state state) {
		t.Helper()
		s := stay{state: bound, name: key("s"), binding: b}
		if got := s.leave(worker.Ready, new(Ask)); got != want || s.state != state || s.from != "" {
			t.Errorf("%+v: %v, state %d; want %v, %d", b, got, s.state, want, state)
		}
	}
	f(session.Binding{Worker: "a", Kind: session.Key}, Chosen, apart)
	f(session.Binding{Worker: "a", Kind: session.Response}, Chosen, apart)
	f(session.Binding{Worker: "a", Minted: true}, SessionResting, bound)
}

// A session with an end of its own is refused by name when there is none.
func TestWhyASessionIsRefused(t *testing.T) {
	s := newScene(t, "a b")
	for _, id := range []string{"closed", "lost", "live"} {
		s.enter(opened(id), "a", false)
	}
	s.Sessions.Close(opened("closed"), s.now)
	s.Sessions.Lose(opened("lost"), s.now)
	f := func(claim Claim, want Verdict) {
		t.Helper()
		if _, got := s.choose(s.ask(decline, claim)); got != want {
			t.Errorf("%+v: %v; want %v", claim, got, want)
		}
	}
	minted := session.MintID()
	f(Claim{Opened: opened("live")}, Chosen)
	f(Claim{Opened: opened("nobody's")}, SessionUnknown)
	f(Claim{Opened: opened("closed")}, SessionClosed)
	f(Claim{Opened: opened("lost")}, SessionLost)
	f(Claim{Opened: opened("nobody's"), Silent: true}, SessionSilent)
	f(Claim{Opened: opened("closed"), Silent: true}, SessionClosed)
	f(Claim{Key: key("live"), Maybe: opened("live")}, Chosen)
	f(Claim{Key: key("closed"), Maybe: opened("closed")}, SessionClosed)
	f(Claim{Key: key(minted), Maybe: opened(minted)}, Chosen) // a name of the client's own
	f(Claim{Stored: [2]session.Name{stored("unknown")}}, Chosen)
	f(Claim{Stored: [2]session.Name{stored("unknown")}, Silent: true}, SessionSilent)
	s.now = s.now.Add(1300 * time.Second)
	s.store.left = time.Second
	f(Claim{Opened: opened("live")}, SessionExpired)
	s.store.silent = true
	f(Claim{Opened: opened("nobody's")}, SessionSilent)
	f(Claim{Stored: [2]session.Name{stored("unknown")}}, SessionSilent)
	f(Claim{Key: key("live"), Maybe: opened("elsewhere")}, SessionSilent)
	f(Claim{Key: key("live")}, Chosen)
	f(Claim{}, Chosen)
}

// The second of two stored responses decides if nobody knows the first.
func TestTheStoredResponseThatIsKnown(t *testing.T) {
	s := newScene(t, "a b c")
	s.enter(stored("x"), "c", false)
	c := s.chosen(s.ask(decline, Claim{Stored: [2]session.Name{stored("y"), stored("x")}, Key: key("k")}))
	if c.First().ID() != "c" || c.Session() != stored("x") {
		t.Errorf("%s for %v", c.First().ID(), c.Session())
	}
	c = s.chosen(s.ask(decline, Claim{Stored: [2]session.Name{stored("y")}, Key: key("k")}))
	if c.Session() != key("k") || c.Binding() != (session.Binding{}) {
		t.Errorf("the client's own name is the next: %v", c.Session())
	}
}
