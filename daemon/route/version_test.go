package route

import (
	"context"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/worker"
)

// TestOneVersionDecides: a strategy that is replaced after the frame was filled for it, and before it was asked, decides
// nothing; who takes its place gets a frame of its own, and the reason and the module told are its.
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
