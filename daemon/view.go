package daemon

import (
	"hash/fnv"
	"hash/maphash"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// view is one request's picture of the fleet, with the memory it is drawn in. Views are pooled.
type view struct {
	frame   host.Frame
	workers []*worker.Worker
	slots   []uint32
	matched []uint32
	caches  []prefix.WorkerStats
}

var views = sync.Pool{New: func() any { return new(view) }}

// reset forgets the last request and keeps the memory.
func (v *view) reset() {
	v.frame.Reset()
	v.workers = v.workers[:0]
}

// snapshot draws the rows: who is up and lists the model. bound is the id of the worker that the request is bound to, or "".
func (v *view) snapshot(p *pool, model, bound string, now time.Time) worker.Standing {
	return v.take(p.workers.Snapshot(worker.Query{Model: model, Bound: bound, At: now}, v.frame.Rows[:0], v.workers[:0]))
}

// everybody draws also those whose turn it is not.
func (v *view) everybody(p *pool, model string, now time.Time) worker.Standing {
	return v.take(p.workers.Snapshot(worker.Query{Model: model, Again: true, At: now}, v.frame.Rows[:0], v.workers[:0]))
}

func (v *view) take(rows []abi.Row, ws []*worker.Worker, status worker.Standing) worker.Standing {
	v.frame.Rows, v.workers = rows, ws
	v.slots, v.frame.WorkerIDs = v.slots[:0], v.frame.WorkerIDs[:0]
	for i := range rows {
		v.slots = append(v.slots, rows[i].Worker)
		v.frame.WorkerIDs = append(v.frame.WorkerIDs, ws[i].ID())
	}
	return status
}

// header draws what the request says of itself.
func (v *view) header(p *pool, r *prompt.Request, session string, now time.Time) {
	h := &v.frame.Header
	h.Seq = p.turns.next(maphash.String(p.seed, r.Model))
	h.Now = now.UnixNano()
	h.MaxTokens, h.Priority = r.MaxTokens, r.Priority
	if r.Stream {
		h.Flags |= abi.HeaderStream
	}
	h.Model, h.Session, h.Tenant = hashOf(r.Model), hashOf(session), hashOf(r.CacheSalt)
	h.Lambda = float32(p.workers.Lambda(now))
	h.C1, h.C2 = float32(p.workers.C1()), float32(p.workers.C2())
	h.Bound, h.BestRow = -1, -1
	v.frame.Session, v.frame.Model, v.frame.Tenant = session, r.Model, r.CacheSalt
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

// prompt fills what depends on the prompt: matched blocks, room and the chance that what it pushes out is wanted again.
func (v *view) prompt(p *pool, space *prefix.Namespace, r *prompt.Request) (length, most int, block float64) {
	chain, length, most, block := longest(p, r)
	if chain == nil {
		return 0, 0, 0
	}
	n := len(v.slots)
	v.matched = append(v.matched[:0], make([]uint32, n)...)
	v.caches = append(v.caches[:0], make([]prefix.WorkerStats, n)...)
	if !r.BypassesCache {
		space.Match(chain.Hashes, v.slots, v.matched)
	}
	p.index.WorkersInto(v.slots, v.caches)
	h := &v.frame.Header
	h.PromptTokens, h.PromptBlocks, h.BlockTokens = uint32(length), uint32(len(chain.Hashes)), float32(block)
	v.frame.Chain = chain.Hashes
	text := p.scale.textBlock()
	for i := range v.frame.Rows {
		row, c := &v.frame.Rows[i], &v.caches[i]
		row.Predicted, row.GPU = v.matched[i], v.matched[i]
		row.FreeGPU = float32(float64(c.Capacity-c.Blocks) * text)
		if c.HasTail {
			row.ReuseGPU = float32(p.reuse.R(c.TailAge))
		}
		if row.Predicted > h.BestMatch {
			h.BestMatch, h.BestRow = row.Predicted, int32(i)
		}
	}
	return length, most, block
}

// longest is the prompt of a list that decides, with its length and block in tokens, and the length of all of them together:
// what a request costs.
func longest(p *pool, r *prompt.Request) (best *prompt.Chain, length, most int, block float64) {
	most = -1
	for i := range r.Chains {
		c := &r.Chains[i]
		n, b := p.scale.tokens(c)
		length += n
		if n > most {
			best, most, block = c, n, b
		}
	}
	return best, length, most, block
}

// bind sets the bound row if the session has a worker that is a candidate.
func (v *view) bind(id string) bool {
	for i, w := range v.workers {
		if w.ID() == id {
			v.frame.Header.Bound = int32(i)
			return true
		}
	}
	return false
}

// namespace is where a model's prompts are known: a salt keeps tenants apart. The seed is its secret.
func (p *pool) namespace(r *prompt.Request, salt string) (*prefix.Namespace, uint64) {
	name := r.Model
	if salt != "" {
		name += "#" + salt
	}
	return p.index.Namespace(name), maphash.String(p.seed, name)
}
