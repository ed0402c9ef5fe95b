package host

import (
	"context"
	"sync/atomic"
	"time"
)

// Current holds the strategy that serves now. It can be replaced while picks run: a pick runs on one strategy alone.
// The first Replace comes before the first Pick.
type Current struct{ p atomic.Pointer[Strategy] }

// Strategy is the one that serves now.
func (c *Current) Strategy() *Strategy { return c.p.Load() }

// Pick asks the strategy that serves now.
func (c *Current) Pick(f *Frame) Result {
	for s := c.p.Load(); ; {
		r, next := c.Ask(s, f)
		if next == nil {
			return r
		}
		s = next
	}
}

// Ask lets s pick. The caller has just got s from Strategy. If s was replaced and closed since then, it did not pick.
// next is then the strategy that serves now: the caller fills f for next and calls again. It resolves this race:
//
//  1. the caller loads the old strategy, and fills the frame as that wants it;
//  2. Replace stores the new one, and Close shuts the old one's slots;
//  3. Ask finds them shut. A count of the picks under way would resolve it too, but all cores would write that counter.
func (c *Current) Ask(s *Strategy, f *Frame) (r Result, next *Strategy) {
	began := time.Now()
	f.Began = began
	r = s.Pick(f)
	if r.Fallback == reasonNames[closed] {
		if now := c.p.Load(); now != s {
			return r, now
		}
	}
	r.Took = time.Since(began)
	return r, nil
}

// Replace makes s serve. The old strategy ends its picks and is closed in the background; done is closed after that.
func (c *Current) Replace(s *Strategy) (done <-chan struct{}) {
	old := c.p.Swap(s)
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		if old != nil && old != s {
			old.Close(context.Background())
		}
	}()
	return ch
}
