package route

import (
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// known answers a module's questions about which worker holds how much of the request's prompt. It implements
// [host.Prefixes].
type known struct {
	candidates []*worker.Worker
	pool       *worker.Pool
	index      *prefix.Index
	space      *prefix.Namespace
	reuse      *prefix.Reuse
	lower      *lower
	below      *spaces
	at         time.Time
	block      float64 // tokens in a block
}

// Best implements host.Prefixes.
func (k *known) Best(chain []uint64) (worker, blocks uint32) { return k.space.Best(chain) }

// Worker implements host.Prefixes.
func (k *known) Worker(worker uint32) abi.Holder {
	s := k.index.Worker(worker)
	h := abi.Holder{Key: k.key(worker), Blocks: uint32(s.Blocks), TailSecs: -1}
	if s.HasTail {
		h.TailSecs = float32(s.TailAge.Seconds())
	}
	return h
}

// key returns the key of a worker, be it a candidate or not; 0 if it is gone.
func (k *known) key(slot uint32) uint64 {
	for _, w := range k.candidates {
		if w.Slot() == slot {
			return w.Key()
		}
	}
	key, _ := k.pool.KeyAt(slot)
	return key
}

// MatchOne implements host.Prefixes.
func (k *known) MatchOne(chain []uint64, worker uint32) uint32 {
	return k.space.MatchOne(chain, worker)
}

// Tiers implements host.Prefixes.
func (k *known) Tiers(worker uint32, out *[3]abi.Tier) int {
	rates, n := k.lower.set.Load(), 1
	out[0] = k.tier(abi.TierGPU, k.index, worker, 0)
	if k.below.cpu != nil && k.hasCPU(worker) {
		out[n] = k.tier(abi.TierL1, k.lower.cpu.index, worker, rates.L1Rate)
		n++
	}
	if k.below.shared != nil {
		out[n] = k.tier(abi.TierL2, k.lower.shared.index, 0, rates.L2Rate)
		n++
	}
	return n
}

// tier describes what an index knows of one slot; rate is the tokens a second that come from there, 0 of the GPU.
func (k *known) tier(kind uint32, x *prefix.Index, slot uint32, rate float64) abi.Tier {
	s := x.Worker(slot)
	t := abi.Tier{Kind: kind, Reuse: -1, Capacity: uint64(float64(s.Capacity) * k.block),
		Used: uint64(float64(s.Blocks) * k.block)}
	if rate > 0 {
		t.TokenSec = float32(1 / rate)
	}
	if s.HasTail {
		t.Reuse = float32(k.reuse.R(s.TailAge))
	}
	return t
}

// hasCPU reports whether the worker keeps KV in the CPU's memory, of the candidates.
func (k *known) hasCPU(slot uint32) bool {
	for _, w := range k.candidates {
		if w.Slot() == slot {
			return w.CPUTokens() > 0
		}
	}
	return false
}

var _ host.Prefixes = (*known)(nil)
