package route

import (
	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// size is the length of a prompt. Of several prompts in one request the longest decides where they go; the request
// costs what all of them do.
type size struct {
	all     int     // tokens of all prompts
	longest int     // tokens of the longest
	block   float64 // tokens in a block of the longest
	counted bool    // the longest has come as tokens
}

// measure returns the longest prompt of a request, nil if it has none, and the sizes.
func measure(s *scale, r *prompt.Request) (longest *prompt.Chain, z size) {
	for i := range r.Chains {
		chain := &r.Chains[i]
		tokens, block := s.tokens(chain)
		z.all += tokens
		if longest == nil || tokens > z.longest {
			longest = chain
			z.longest = tokens
			z.block = block
			z.counted = chain.Tokens > 0
		}
	}
	return longest, z
}

// match fills what depends on the prompt: matched blocks, free room, and the chance that the blocks which the prompt
// would evict are wanted again.
func (f *fleet) match(p *Pool, space *prefix.Namespace, below *spaces, a *Ask) size {
	r := a.Prompt
	chain, z := measure(&p.scale, r)
	if chain == nil {
		return z
	}
	workers := len(f.slots)
	f.matched = append(f.matched[:0], make([]uint32, workers)...)
	f.caches = append(f.caches[:0], make([]prefix.WorkerStats, workers)...)
	if !r.BypassesCache {
		space.Match(chain.Hashes, f.slots, f.matched)
	}
	p.Index.WorkersInto(f.slots, f.caches)
	h := &f.frame.Header
	h.PromptTokens = uint32(z.all)
	h.PromptBlocks = uint32(len(chain.Hashes))
	h.BlockTokens = float32(z.block)
	f.frame.Chain = chain.Hashes
	text := p.scale.textBlock()
	for i := range f.frame.Rows {
		row, c := &f.frame.Rows[i], &f.caches[i]
		row.Predicted, row.GPU = f.matched[i], f.matched[i]
		row.FreeGPU = float32(float64(c.Capacity-c.Blocks) * text)
		if c.HasTail {
			row.ReuseGPU = float32(p.reuse.R(c.TailAge))
		}
	}
	if !r.BypassesCache {
		p.lower.fill(f, below, chain.Hashes, p.reuse, text)
	}
	if f.held.look(p, a, f.slots) {
		f.held.fill(f, p.lower.set.Load(), len(a.IDs), z.block)
		z = size{all: len(a.IDs), longest: len(a.IDs), block: 1}
	}
	f.best()
	p.Workers.FillShared(f.frame.Rows, f.workers, &f.beginning, h.Need())
	return z
}

// partBlocks is the blocks of text in a part of a prompt's beginning: some 2,000 tokens, a tenth of the beginning that
// an agent's sessions share.
const partBlocks = 64

// begin takes the parts of the prompt's beginning, each of so many tokens.
func (f *fleet) begin(chain *prompt.Chain, tokens int) {
	b := &f.beginning
	b.Parts = b.Parts[:0]
	for i := partBlocks; i <= len(chain.Hashes) && len(b.Parts) < worker.MaxParts; i += partBlocks {
		b.Parts = append(b.Parts, chain.Hashes[i-1])
	}
	b.Tokens = tokens
}

// best writes into the header which row has the longest match, of those that may be chosen.
func (f *fleet) best() {
	h := &f.frame.Header
	h.BestRow, h.BestMatch = -1, 0
	for i := range f.frame.Choices() {
		if n := f.frame.Rows[i].Matched(); n > h.BestMatch {
			h.BestMatch, h.BestRow = n, int32(i)
		}
	}
}
