package route

import (
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Trip is a request at one worker, from Send to End. Every trip must be ended.
type Trip struct {
	choice   *Choice
	ticket   *worker.Ticket
	worker   *worker.Worker
	believed int    // of the prompt's tokens, in the worker's cache when it was chosen
	matched  uint32 // blocks
}

// Send takes a place at the worker and enters the prompt in the index. It reports false if the worker takes no request now:
// another has got its last place, or it went down since. holder is told if the worker goes down with the request.
func (c *Choice) Send(t *Trip, to Target, holder worker.Holder, at time.Time) bool {
	w := to.Worker
	c.held = c.believed(to)
	ticket, ok := c.pool.Workers.TryBegin(w, worker.Dispatch{PromptTokens: c.size.all, CachedTokens: c.held,
		Whole: !c.ask.Prompt.Stream, Bound: w.ID() == c.stay.worker(), Holder: holder}, at)
	if !ok {
		return false
	}
	*t = Trip{choice: c, ticket: ticket, worker: w, believed: c.held, matched: c.fleet.frame.Rows[to.row].GPU}
	for i := range c.ask.Prompt.Chains {
		hashes := c.ask.Prompt.Chains[i].Hashes
		c.space.Touch(w.Slot(), hashes)
		if c.sent == 0 {
			c.pool.reuse.Note(hashes, c.size.block)
		}
	}
	c.sent++
	return true
}

// believed is how many of the prompt's tokens a worker is taken to hold; of a list, of all its prompts together. Ask before
// the prompt enters the index.
func (c *Choice) believed(to Target) int {
	w, r := to.Worker, c.ask.Prompt
	if len(r.Chains) < 2 || r.BypassesCache {
		return inBlocks(float64(c.fleet.frame.Rows[to.row].GPU)*c.size.block, c.size.all, w.BlockTokens())
	}
	sum, slot, out := 0, [1]uint32{w.Slot()}, [1]uint32{}
	for k := range r.Chains {
		chain := &r.Chains[k]
		length, block := c.pool.scale.tokens(chain)
		c.space.Match(chain.Hashes, slot[:], out[:])
		sum += inBlocks(float64(out[0])*block, length, w.BlockTokens())
	}
	return sum
}

// inBlocks is what an engine finds of so many held tokens of a prompt: whole blocks, and never the last token, which it always
// computes. size is the tokens of a block, 0 if it is not known.
func inBlocks(held float64, length, size int) int {
	n := max(0, min(length-1, int(held)))
	if size > 0 {
		n -= n % size
	}
	return n
}

// Believed is how many of the prompt's tokens the worker that was sent to last was taken to hold.
func (c *Choice) Believed() int { return c.held }

// Worker is where the request was sent.
func (t *Trip) Worker() *worker.Worker { return t.worker }

// Matched is how many leading blocks of the prompt the worker was believed to hold.
func (t *Trip) Matched() int { return int(t.matched) }

// FirstByte notes the first output of a good answer.
func (t *Trip) FirstByte(at time.Time) { t.ticket.FirstByte(at) }

// Flow notes that bytes of the answer came.
func (t *Trip) Flow(at time.Time) { t.ticket.Flow(at) }

// End counts the request down and learns from its answer: tokens a byte, what the worker's cache really held, and the text itself
// if the answer came to its end. r is nil if nothing was read of it. It returns the engine's own counts, and
// writes the generated tokens into o. Only the first call does
// anything.
func (t *Trip) End(o *worker.Outcome, r *prompt.Reply, ended bool, at time.Time) (u prompt.Usage) {
	if r != nil {
		u = t.learn(o, r, ended)
	}
	t.ticket.End(at, *o)
	return u
}

func (t *Trip) learn(o *worker.Outcome, r *prompt.Reply, ended bool) prompt.Usage {
	ok, complete := r.Finish()
	u := r.Usage()
	o.Tokens = u.Output
	c, chains, slot := t.choice, t.choice.ask.Prompt.Chains, t.worker.Slot()
	if ok && u.Known && len(chains) == 1 {
		if chain := &chains[0]; chain.Tokens == 0 {
			c.pool.scale.learn(u.Prompt, chain.Bytes)
		}
		if u.CachedKnown {
			c.pool.caps.learn(slot, u.Cached, t.believed, u.Prompt)
		}
	}
	if !ended || !complete || o.Kind != worker.Answered {
		return u
	}
	for i := range chains {
		if chain := &chains[i]; r.ExtendChoice(chain, c.ask.Prompt.FirstChoice(i)) {
			c.space.Touch(slot, chain.Hashes)
		}
	}
	return u
}
