package vllmsim

import (
	"sync/atomic"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// choice is one reply in the making: a sequence of the engine, and what the request's goroutine may read of it while
// the engine runs. A request has one choice for each prompt and each of its n.
type choice struct {
	seq    engine.Sequence // guarded by driver.mu once it is submitted, but for what never changes
	notify chan struct{}   // of capacity 1, shared by the choices of a request
	side   side            // of a disaggregated pair; nil without one

	// show stores them in this order, so whoever reads an end finds all tokens.
	cached   atomic.Int32     // prompt tokens found in the cache
	produced atomic.Int32     // tokens of the reply that may be shown
	ended    atomic.Int32     // an engine.Finish
	stale    atomic.Int32     // of cached, tokens that other weights have computed
	weights  [2]atomic.Uint32 // as engine.Sequence.Weights
}

// show publishes what the engine has generated, and wakes the request's goroutine if that is news.
func (c *choice) show() {
	produced, end := int32(c.seq.OutputTokens()), int32(c.seq.Finish())
	if produced == c.produced.Load() && end == c.ended.Load() {
		return
	}
	c.cached.Store(int32(c.seq.CachedTokens()))
	c.stale.Store(int32(c.seq.StaleTokens()))
	first, last := c.seq.Weights()
	c.weights[0].Store(first)
	c.weights[1].Store(last)
	c.produced.Store(produced)
	c.ended.Store(end)
	if c.side != nil {
		c.side.shown(c)
	}
	c.wake()
}

// abort ends a choice that no engine has.
func (c *choice) abort() {
	c.ended.Store(int32(engine.FinishAbort))
	if c.side != nil {
		c.side.shown(c)
	}
	c.wake()
}

func (c *choice) wake() {
	select {
	case c.notify <- struct{}{}:
	default:
	}
}

// finish returns how the choice ended, as far as it may be shown.
func (c *choice) finish() engine.Finish { return engine.Finish(c.ended.Load()) }

// tokens returns the number of tokens that may be shown.
func (c *choice) tokens() int { return int(c.produced.Load()) }

// text returns what may be shown.
func (c *choice) text() string { return c.seq.Reply.Text(c.tokens()) }

// appendText appends tokens [from, to) as they stand within a JSON string.
func (c *choice) appendText(b []byte, from, to int) []byte {
	return c.seq.Reply.AppendJSON(b, from, to)
}

// side is what a choice does for the other worker of its pair.
type side interface {
	// shown is called by whoever has the choice, each time that it has new tokens or has ended. It must not block.
	shown(*choice)
	// answer returns the kv_transfer_params of the answer, nil for none.
	answer(*choice) *transferParams
}
