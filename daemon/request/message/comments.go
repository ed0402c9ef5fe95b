package message

import (
	"sync"
	"time"
)

// Comments are written to a client that waits for a stream of events, until the answer comes: proxies cut a connection
// on which nothing comes for 50 to 120 s. Nil writes none.
type Comments struct {
	Every time.Duration
	To    Commenter

	mu    sync.Mutex  // guards all below; held while one is written
	timer *time.Timer // nil = they have not begun
	sent  uint32
	ended bool
}

// Commenter writes a comment to the client. The first one brings the head of the answer with it.
type Commenter interface{ Comment() error }

// Begin is called once it is known that the answer is to be a stream of events, if it is.
func (c *Comments) Begin() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil && !c.ended {
		c.timer = time.AfterFunc(c.Every, c.next)
	}
}

// next writes a comment. An error means that the connection is gone, which the front notices too.
func (c *Comments) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.sent++
	if c.To.Comment() == nil {
		c.timer.Reset(c.Every)
	}
}

// End ends them, and returns how many there were.
func (c *Comments) End() uint32 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
	return c.sent
}
