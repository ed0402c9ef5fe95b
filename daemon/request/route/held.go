package route

import (
	"slices"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/sdk/abi"
)

// holds is what the workers report of one request's prompt.
type holds struct {
	query   holdings.Query
	got     []holdings.Held // by row: the engines' reports
	offload lmcache.Query
	kept    []lmcache.Held // by row: the reports of their LMCache; empty = LMCache was not asked
	wanted  bool           // the strategy that decides asks for this, and some worker's reports are live
	known   bool           // the prompt's ids are known, and this is wanted
}

// ask begins the query for a request's prompt. It returns false if the rows must go by history alone: the ids are
// missing, or the engine will look for more than these.
func (h *holds) ask(a *Ask) bool {
	if !h.known && len(a.IDs) > 0 && len(a.Prompt.Chains) == 1 && !a.Prompt.BypassesCache && h.wanted {
		h.known = true
		h.query.Reset(a.Adapter, a.Prompt.CacheSalt, a.IDs)
	}
	return h.known
}

// holders adds the workers that report a part of a prompt to those that hold it by history, in blocks of so many
// tokens. What a worker reports counts in place of its history, which shows its CPU memory alone.
func (h *holds) holders(p *Pool, a *Ask, block float64, all []prefix.Holder) []prefix.Holder {
	if !h.ask(a) {
		return all
	}
	if !p.lower.cpu.on.Load() {
		all = slices.DeleteFunc(all, func(o prefix.Holder) bool { return p.Held.IsLive(o.Slot) })
	}
	for i := range all {
		all[i].Blocks = uint32(float64(all[i].Blocks) * block)
	}
	return p.Held.Holders(&h.query, mostHolders, all)
}

// look asks what the workers of these slots hold. It returns false as ask does.
func (h *holds) look(p *Pool, a *Ask, slots []uint32) bool {
	if !h.ask(a) {
		return false
	}
	h.got = append(h.got[:0], make([]holdings.Held, len(slots))...)
	p.Held.Match(&h.query, slots, h.got)
	h.kept = h.kept[:0]
	if p.Offload != nil && a.Adapter == "" { // LMCache's hashes do not keep adapters apart
		h.kept = append(h.kept, make([]lmcache.Held, len(slots))...)
		h.offload.Reset(a.Prompt.CacheSalt, a.IDs)
		p.Offload.Match(&h.offload, slots, h.kept)
	}
	return true
}

// fill makes one token the block of the rows. A match comes from the worker's own reports where these are live, and
// else from history, of so many tokens a block.
func (h *holds) fill(f *fleet, t *Tiers, ids int, block float64) {
	head := &f.frame.Header
	head.PromptTokens = uint32(ids)
	head.PromptBlocks = uint32(ids)
	head.BlockTokens = 1
	head.Flags |= abi.HeaderTokens | abi.HeaderEvents
	for i := range f.frame.Rows {
		row, got, w := &f.frame.Rows[i], h.got[i], f.workers[i]
		tokens := func(blocks uint32) uint32 {
			return uint32(inBlocks(float64(blocks)*block, ids, w.BlockTokens()))
		}
		old := holdings.Held{GPU: tokens(row.GPU), Local: tokens(row.GPU + row.L1), All: tokens(row.Matched())}
		row.Predicted = tokens(row.Predicted)
		if got.Live {
			row.State |= abi.RowLive
			if row.State&abi.RowStale == 0 { // what other routers and clients have there is in it too
				row.HeldTokens = max(row.HeldTokens, uint32(float64(row.KVUsage)*float64(row.KVTokens)))
			}
			got = besides(got, old, w.CPUTokens() > 0)
		} else {
			head.Flags &^= abi.HeaderEvents
			got = larger(got, old)
		}
		if len(h.kept) > 0 && h.kept[i].Live {
			got.Local = max(got.Local, h.kept[i].Local)
			got.All = max(got.All, got.Local, h.kept[i].All)
		}
		row.GPU = got.GPU
		row.L1 = got.Local - got.GPU
		row.L2 = got.All - got.Local
		if row.L1 > 0 || row.L2 > 0 {
			head.InvBWL1 = float32(1 / t.L1Rate)
		}
		if row.L2 > 0 {
			head.InvBWL2 = float32(1 / t.L2Rate)
		}
	}
}

// told reports whether row i comes at least in part from its worker's own reports.
func (h *holds) told(i int, row *abi.Row) bool {
	return row.Live() || len(h.kept) > i && h.kept[i].Live && row.L1+row.L2 > 0
}

// larger returns what a worker is taken to hold whose first events were missed: what it has reported since is true, and
// history knows some of the rest.
func larger(a, b holdings.Held) holdings.Held {
	a.GPU = max(a.GPU, b.GPU)
	a.Local = max(a.Local, b.Local, a.GPU)
	a.All = max(a.All, b.All, a.Local)
	return a
}

// besides returns what a worker reports, with history in place of the tiers that its events leave out.
func besides(got, history holdings.Held, hasCPU bool) holdings.Held {
	if hasCPU && got.Local == got.GPU {
		got.Local = max(got.Local, history.Local)
	}
	got.All = max(got.All, got.Local)
	if history.All > history.Local {
		got.All = max(got.All, history.All)
	}
	return got
}
