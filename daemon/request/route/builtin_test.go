package route

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// builtin loads a strategy that is built in. It is interpreted, as to compile it takes longer than all other tests.
func builtin(t *testing.T, strategy string) *host.Strategy {
	t.Helper()
	wasm, err := plugins.Builtin(strategy)
	if err != nil {
		t.Skip(err)
	}
	h, err := host.New(context.Background(), host.Config{Interpreter: true, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Load(context.Background(), strategy, wasm, host.Options{PickTime: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The default strategy follows the cache until the queue there costs more.
func TestPrefixaware(t *testing.T) {
	s := sceneBy(t, "a b c d:down", worker.Config{}, builtin(t, "prefixaware"))
	sent := text("system ", 60)
	f := func(what, prompt, want, reason string) {
		t.Helper()
		c := s.served(s.asking(completion(0, prompt), Claim{}))
		if want != "" && c.First().ID() != want || c.Reason() != reason {
			t.Errorf("%s: %s, %q; want %s, %q", what, c.First().ID(), c.Reason(), want, reason)
		}
		s.now = s.now.Add(time.Second)
	}
	f("a new prompt", sent, "a", "no prefix, least cost")
	f("its continuation", sent+text("more", 3), "a", "longest prefix")
	f("another prompt", text("other ", 60), "b", "no prefix, least cost")
	f("again", sent, "a", "longest prefix")
	s.become("a", "queued")
	f("with a queue there", sent, "c", "load outweighs the longest prefix")
	s.become("a", "down")
	f("its continuation at the next", sent+text("more", 3), "c", "longest prefix")
}

// The strategy for sessions binds them, places each where every router does, and serves a request without one by load.
func TestSessionStrategy(t *testing.T) {
	strategy := builtin(t, "session")
	one, two := sceneBy(t, "a b c", worker.Config{}, strategy), sceneBy(t, "c a b", worker.Config{}, strategy)
	seen := map[string]int{}
	for i := range 30 {
		n := key(fmt.Sprint("session ", i))
		x := one.served(one.ask(decline, Claim{Key: n}))
		if lives := one.lives(n); lives != x.First().ID() {
			t.Fatalf("%v: lives at %q, was sent to %s", n, lives, x.First().ID())
		}
		y := two.served(two.ask(decline, Claim{Key: n}))
		if x.Reason() == "session hash" && y.Reason() == x.Reason() && y.First().ID() != x.First().ID() {
			t.Errorf("%v: %s here, %s there", n, x.First().ID(), y.First().ID())
		}
		if again := one.served(one.ask(decline, Claim{Key: n})); again.First() != x.First() ||
			again.Reason() != "bound session" {
			t.Errorf("%v: %s, then %s for %q", n, x.First().ID(), again.First().ID(), again.Reason())
		}
		seen[x.First().ID()]++
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
	one.become("a", "busy")
	if c := one.chosen(one.ask(decline, Claim{})); c.First().ID() == "a" || c.Reason() != "fewest in flight" {
		t.Errorf("%s, %q", c.First().ID(), c.Reason())
	}
}
