package route

import (
	"context"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestOneVersionDecides: a strategy that is replaced between the filling of its frame and its answer decides nothing.
// Its successor gets a frame of its own, and the record names the successor's reason and module.
func TestOneVersionDecides(t *testing.T) {
	h, shared := shared()
	old, next := load(h, "old", obedient), load(h, "next", obedient)
	s := sceneBy(t, "a b", worker.Config{MaxInFlight: maxInFlight}, old)
	c := s.chosen(s.ask(first, Claim{}))
	<-s.Strategy.Replace(next)
	if c.askStrategy() {
		t.Errorf("decided by %s: %s", c.strategy.Name(), c.Reason())
	}
	if v := s.Choose(c, &Ask{Prompt: completion(first+1, "x"), At: s.now.Add(time.Second)}); v != Chosen ||
		c.strategy != next || c.Reason() != "next says 7" || c.First().ID() != "b" {
		t.Errorf("%v of %s by %s: %s", v, c.First().ID(), c.strategy.Name(), c.Reason())
	}
	<-s.Strategy.Replace(shared)
	next.Close(context.Background())
}
