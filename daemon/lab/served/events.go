package served

import (
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Changed implements [world.Router].
func (r *Router) Changed(now time.Duration, number int, batches []engine.Batch) {
	slot, ok := slotOf(r.pool, number, r.at(now))
	if !ok {
		return
	}
	w := r.pool.Held.Writer(slot)
	for i := range batches {
		for k := range batches[i].Changes {
			enter(w, &batches[i].Changes[k], r.fleet.blockTokens)
		}
	}
}

// enter writes one change into the view of a worker, as package kvevents hands it on: vLLM names the tokens of what
// stands on the GPU alone.
func enter(w *holdings.Writer, c *engine.Change, size int) {
	at := blocks.GPU
	if c.Medium == engine.OnCPU {
		at = blocks.CPU
	}
	switch c.Kind {
	case engine.Stored:
		s := blocks.Stored{Salt: c.Salt, Parent: c.Parent, Hashes: c.Hashes, BlockSize: size, Medium: at}
		if at == blocks.GPU {
			s.Tokens, s.HasParent = c.Tokens, c.HasParent
		}
		w.Store(&s)
	case engine.Removed:
		w.Remove(at, c.Hashes)
	case engine.Cleared:
		w.Clear()
	}
}
