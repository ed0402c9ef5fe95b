package peers

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// TestEndedBeforeAnotherSecret: a request whose end was queued, and not yet written, when the secret changed is no
// longer listed as in flight. One that has not ended still is.
func TestEndedBeforeAnotherSecret(t *testing.T) {
	c := &clock{began}
	t1, _ := NewPair(newPool(t, c, 1, 1<<16), 1)
	_, h := NewPair(newPool(t, c, 1, 1<<16), 2)
	deliver := func() {
		t.Helper()
		for _, frame := range t1.Take(maxBatch, c.now) {
			if err := h.Apply(frame, c.now, c.now); err != nil {
				t.Fatal(err)
			}
			t1.Confirm([][]byte{frame})
		}
	}
	s := &route.Sent{Worker: worker.KeyOf("w0"), Space: 9, Tokens: 64, Block: 32}
	ends, runs := t1.Sent(s, nil, c.now), t1.Sent(s, nil, c.now)
	deliver()
	if n := h.Stats().Open; n != 2 {
		t.Fatalf("%d requests in flight; want both", n)
	}
	t1.Ended(ends, c.now)
	t1.dropFrames()
	c.pass(time.Second)
	t1.QueueOpen(c.now)
	deliver()
	if n := h.Stats().Open; n != 1 {
		t.Errorf("%d requests in flight; want that of id %d alone", n, runs)
	}
}
