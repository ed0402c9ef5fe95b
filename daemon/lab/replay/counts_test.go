package replay

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestBoundHoldsRequestsBack: with every place taken a request waits, is counted as held, and ends with its context.
func TestBoundHoldsRequestsBack(t *testing.T) {
	c := newCounts(4, 2)
	for range 2 {
		if !c.acquire(t.Context()) {
			t.Fatal("no place below the bound")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if c.acquire(ctx) || c.held.Load() != 1 || c.inFlight() != 2 {
		t.Errorf("a place beyond the bound; %d held, %d in flight", c.held.Load(), c.inFlight())
	}
	c.release()
	if !c.acquire(t.Context()) || c.peak.Load() != 2 {
		t.Errorf("no place after one was given back; peak %d", c.peak.Load())
	}
	if c.release(); c.acquire(ctx) {
		t.Error("a place although the run is over")
	}
}

func TestProgressWithoutATerminal(t *testing.T) {
	c := newCounts(4, 2)
	var out strings.Builder
	stop := showProgress(&out, c, "A")
	c.sent.Store(3)
	c.answered.Store(2)
	c.failed.Store(1)
	c.held.Store(1)
	stop()
	want := "replay: A: 3 of 4 sent, 2 answered, 1 failed, 0 in flight\n" +
		"replay: A: the bound of 2 in flight is reached; requests leave late\n"
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	showProgress(nil, c, "A")() // nowhere
}
