package route

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/sdk/abi"
)

// A strategy that confines a request reaches the one worker that it wants in every state in which that worker is up,
// and no request of others goes there for that.
func TestAConfinedRequestReachesItsWorker(t *testing.T) {
	const forX, forY = 1, 1001
	for _, state := range []string{"up", "slow", "crowded", "silent"} {
		s := sceneBy(t, "a:"+state+" b c", worker.Config{MaxInFlight: maxInFlight}, walled(t, wall, true))
		s.label("x y y")
		for range 5 {
			if c, v := s.choose(s.ask(forX, Claim{})); v != Chosen || rest(c, s.now) != "a |" && rest(c, s.now) != "a" && c.First().ID() != "a" {
				t.Fatalf("%s: %v; want a", state, v)
			}
			if c := s.chosen(s.ask(forY, Claim{})); c.First().ID() == "a" {
				t.Errorf("%s: a gets a request of others", state)
			}
		}
	}
	for _, state := range []string{"down", "draining"} {
		s := sceneBy(t, "a:"+state+" b c", worker.Config{MaxInFlight: maxInFlight}, walled(t, wall, true))
		s.label("x y y")
		if _, v := s.choose(s.ask(forX, Claim{})); v != Rejected {
			t.Errorf("%s: %v; want a rejection", state, v)
		}
	}
}

// A worker that starts slowly is spared as long as the strategy allows another one. It is still tried when that one
// fails.
func TestWhoIsSparedStaysSpared(t *testing.T) {
	s := sceneBy(t, "a:slow b c", worker.Config{MaxInFlight: maxInFlight}, walled(t, wall, true))
	s.label("x x y")
	c := s.chosen(s.ask(1, Claim{}))
	if got := rest(c, s.now); got != "b a |" && got != "b a" {
		t.Errorf("tries %s; want b, then a", got)
	}
	for range 10 {
		if got := s.chosen(s.ask(1, Claim{})).First().ID(); got != "b" {
			t.Errorf("%s comes first", got)
		}
	}
}

// One that declines is asked again too. The host's own choice stays with those that are not spared, if it declines once
// more.
func TestOneThatDeclinesIsAskedAgain(t *testing.T) {
	s := newScene(t, "a:slow b:busy c:busy")
	if c := s.chosen(s.ask(decline, Claim{})); c.result.Fallback != "decline" || c.First().ID() == "a" {
		t.Errorf("%q, %s; want the fallback, and not a", c.result.Fallback, c.First().ID())
	}
	if c := s.chosen(s.ask(first, Claim{})); c.fleet.frame.Header.Rows != 2 || c.First().ID() != "b" {
		t.Errorf("one that chooses sees %d rows, and gets %s", c.fleet.frame.Header.Rows, c.First().ID())
	}
	if c, v := s.choose(s.ask(reject, Claim{})); v != Rejected || c.fleet.frame.Header.Rows != 3 ||
		c.fleet.frame.Rows[0].State&abi.RowSlowStart == 0 {
		t.Errorf("%v: one that rejects sees %d rows", v, c.fleet.frame.Header.Rows)
	}
}
