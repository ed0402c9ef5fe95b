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

// Pick asks the strategy that serves now. The race it settles:
//
//  1. Pick loads the old strategy;
//  2. Replace stores the new one, and Close shuts the old one's slots;
//  3. Pick finds them shut, and asks again. A count of the picks under way would settle it too, at the price of a
//     counter that all cores write.
func (c *Current) Pick(f *Frame) Result {
	began := time.Now()
	f.Began = began
	for s := c.p.Load(); ; {
		r := s.Pick(f)
		now := s
		if r.Fallback == reasonNames[closed] {
			now = c.p.Load()
		}
		if now == s {
			r.Took = time.Since(began)
			return r
		}
		s = now
	}
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
