package route

import (
	"hash/fnv"
	"sync"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// fleet is one request's picture of the workers that may serve it: a row each, and the memory these are filled in.
// Fleets are pooled, as rows of 256 workers are 32 KB.
type fleet struct {
	frame   host.Frame
	workers []*worker.Worker // beside the rows
	slots   []uint32
	matched []uint32
	caches  []prefix.WorkerStats
	known   known
}

var fleets = sync.Pool{New: func() any { return new(fleet) }}

// reset forgets the last request and keeps the memory.
func (f *fleet) reset() {
	f.frame.Reset()
	f.workers = f.workers[:0]
}

// set takes the rows that the pool of workers filled.
func (f *fleet) set(rows []abi.Row, ws []*worker.Worker, status worker.Standing) worker.Standing {
	f.frame.Rows, f.workers = rows, ws
	f.slots, f.frame.WorkerIDs = f.slots[:0], f.frame.WorkerIDs[:0]
	for i := range rows {
		f.slots = append(f.slots, rows[i].Worker)
		f.frame.WorkerIDs = append(f.frame.WorkerIDs, ws[i].ID())
	}
	return status
}

// row is the place of a worker, -1 if it is not a candidate.
func (f *fleet) row(id string) int {
	for i, w := range f.workers {
		if w.ID() == id {
			return i
		}
	}
	return -1
}

// hashOf is a string's number for strategies: FNV-1a, the same over restarts and routers; 0 for the empty string.
func hashOf(s string) uint64 {
	if s == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(s))
	return max(1, h.Sum64())
}

// size is a prompt's length. Of a list of prompts the longest decides, and all of them are what the request costs.
type size struct {
	all     int     // tokens of all prompts
	longest int     // tokens of the longest
	block   float64 // tokens in a block of the longest
}

// measure returns the prompt of a list that decides, nil if there is none, and the sizes.
func measure(s *scale, r *prompt.Request) (best *prompt.Chain, z size) {
	z.longest = -1
	for i := range r.Chains {
		c := &r.Chains[i]
		n, b := s.tokens(c)
		z.all += n
		if n > z.longest {
			best, z.longest, z.block = c, n, b
		}
	}
	if best == nil {
		return nil, size{}
	}
	return best, z
}

// match fills what depends on the prompt: matched blocks, free room, and the chance that what it pushes out is wanted
// again.
func (f *fleet) match(p *Pool, space *prefix.Namespace, r *prompt.Request) size {
	chain, z := measure(&p.scale, r)
	if chain == nil {
		return z
	}
	n := len(f.slots)
	f.matched = append(f.matched[:0], make([]uint32, n)...)
	f.caches = append(f.caches[:0], make([]prefix.WorkerStats, n)...)
	if !r.BypassesCache {
		space.Match(chain.Hashes, f.slots, f.matched)
	}
	p.Index.WorkersInto(f.slots, f.caches)
	h := &f.frame.Header
	h.PromptTokens, h.PromptBlocks, h.BlockTokens = uint32(z.all), uint32(len(chain.Hashes)), float32(z.block)
	h.BestRow, h.BestMatch = -1, 0
	f.frame.Chain = chain.Hashes
	text := p.scale.textBlock()
	for i := range f.frame.Rows {
		row, c := &f.frame.Rows[i], &f.caches[i]
		row.Predicted, row.GPU = f.matched[i], f.matched[i]
		row.FreeGPU = float32(float64(c.Capacity-c.Blocks) * text)
		if c.HasTail {
			row.ReuseGPU = float32(p.reuse.R(c.TailAge))
		}
		if row.Predicted > h.BestMatch {
			h.BestMatch, h.BestRow = row.Predicted, int32(i)
		}
	}
	return z
}

// price fills the host's own score of each row, for modules that ask for it.
func (f *fleet) price() {
	scale := score.NewScale(&f.frame.Header, f.frame.Rows)
	for i := range f.frame.Rows {
		f.frame.Rows[i].Cost = scale.Terms(&f.frame.Rows[i]).Cost
	}
}
