package route

import "github.com/warmpath/warmpath/daemon/fleet/worker"

// entered is what a trip wrote into the index ahead of its answer. A prompt enters when it is sent, as the next request
// with the same prefix comes before the first answer. If the worker then fails or refuses the request, it holds nothing
// of it, and the entry would draw further requests to it.
type entered struct {
	at               int64     // by the indexes' clock
	gpu, cpu, shared uint32    // blocks of the first chain that were held before
	weights          uint32    // the low half of the worker's version then; its own field would make an Exchange larger
	more             *[]uint32 // the same of the others, in the GPU's index; nil = there are none
}

// enter enters the choice's prompt at a worker.
func (e *entered) enter(c *Choice, w *worker.Worker) {
	slot := w.Slot()
	e.weights = w.Weights().Low()
	for i := range c.prompt.Chains {
		hashes := c.prompt.Chains[i].Hashes
		held, at := c.space.Enter(slot, hashes)
		switch {
		case i == 0:
			e.gpu = held
			e.cpu, e.shared, e.at = c.below.enter(w, hashes)
		case e.more == nil:
			e.more = &[]uint32{held}
		default:
			*e.more = append(*e.more, held)
		}
		e.at = max(e.at, at)
		if c.sent == 1 {
			c.pool.reuse.Note(hashes, c.size.block)
		}
	}
}

// takeBack takes back what enter entered, but for the tiers below of all chains after the first: they are
// lists of prompts, which share little.
func (e *entered) takeBack(c *Choice, w *worker.Worker) {
	slot := w.Slot()
	for i := range c.prompt.Chains {
		hashes := c.prompt.Chains[i].Hashes
		if i > 0 {
			c.space.Retract(slot, hashes, (*e.more)[i-1], e.at)
			continue
		}
		c.space.Retract(slot, hashes, e.gpu, e.at)
		c.below.retract(w, hashes, e.cpu, e.shared, e.at)
	}
}
