package route

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Hint says where the worker of a request can copy the KV of the prompt's beginning, in place of computing it.
type Hint struct {
	Source string   // address of the KV cache of the worker that has it: tcp://HOST:PORT
	Hashes []uint64 // that worker's, of the prompt's blocks from the first on

	from   *worker.Worker
	own    int // tokens of the prompt that the request's worker has itself
	tokens int // that it lacks and the other one has
}

// HintResult is what became of a hint.
type HintResult string

// The results.
const (
	HintDear    HintResult = "dearer"  // it was not given: the copy takes as long as the computation, or nearly so
	HintFetched HintResult = "fetched" // the engine counts most of the tokens as cached
	HintMissed  HintResult = "missed"  // it does not: it ignores hints, or the other worker has lost the blocks
	HintUnknown HintResult = "unknown" // it does not count cached tokens, or the request failed
)

// cheaper is what share of the time of the computation a copy may take. Below 1, as a worker that ignores hints takes
// the time of the computation, more or less.
const cheaper = .8

// Lend has workers copy KV from the address that by returns for another worker; "" = it lends none. nil = none does.
func (p *Pool) Lend(by func(*worker.Worker) string) { p.lends.Store(&by) }

// hint returns the hint for a worker that has so many tokens of the prompt itself, and whether there would be one if
// copies were cheaper. nil = there is none.
//
// What a copy takes is learnt from streams that had a hint (see transfer). Until some have shown it, streams get one
// whatever it takes.
func (c *Choice) hint(to Target, own int, now time.Time) (h *Hint, dear bool) {
	by, p, row := c.pool.lends.Load(), c.pool, &c.fleet.frame.Rows[to.row]
	if by == nil || *by == nil || !c.fleet.held.known || !row.Live() || to.Handed || c.ask.Leg != Whole ||
		!hintable(c.prompt.Kind) {
		return nil, false
	}
	if _, refuses := p.unhinted.Load(to.Worker.Slot()); refuses {
		return nil, false
	}
	for _, o := range p.Held.Holders(&c.fleet.held.query, mostHolders, nil) {
		if int(o.Blocks)-own < minHanded {
			break
		}
		from := p.Workers.At(o.Slot)
		if from == nil || !p.Held.IsLive(o.Slot) || !p.Workers.Lends(from, to.Worker, c.fence, c.prompt.Model) {
			continue
		}
		source := (*by)(from)
		if source == "" {
			continue
		}
		hashes, size := p.Held.Path(o.Slot, &c.fleet.held.query)
		more := len(hashes)*size - own
		if more < minHanded {
			continue
		}
		rate := p.transfer.rate(now)
		saved := row.Slow * (p.Workers.Estimate(c.size.all, own) - p.Workers.Estimate(c.size.all, own+more))
		if rate > 0 && float64(more)/rate > cheaper*saved {
			return nil, true
		}
		if rate == 0 && !c.prompt.Stream {
			return nil, false
		}
		return &Hint{Source: source, Hashes: hashes, from: from, own: own, tokens: more}, false
	}
	return nil, false
}

// hintable reports whether an engine may read hints in a body of this kind.
func hintable(k prompt.Kind) bool {
	return k == prompt.Tokens || k == prompt.Chat || k == prompt.Completion
}

// seconds returns the prefill that a hint leaves, with the copy, on a worker of slowness 1. Where nothing is known of
// copies, it is the prefill without a hint.
func (h *Hint) seconds(c *Choice, slow float64, now time.Time) float64 {
	rate := c.pool.transfer.rate(now)
	if rate == 0 || slow <= 0 {
		return c.pool.Workers.Estimate(c.size.all, h.own)
	}
	return c.pool.Workers.Estimate(c.size.all, h.own+h.tokens) + float64(h.tokens)/rate/slow
}

// String describes the hint for an operator; "" = there is none.
func (h *Hint) String() string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf("%d tokens more from %s", h.tokens, h.from.ID())
}
