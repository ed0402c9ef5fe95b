package route

import (
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// known answers a module's questions about who holds what of the request's prompt. It implements [host.Prefixes].
type known struct {
	candidates []*worker.Worker
	pool       *worker.Pool
	index      *prefix.Index
	space      *prefix.Namespace
	reuse      *prefix.Reuse
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
	for _, s := range k.pool.Stats(k.at) {
		if s.Slot == slot {
			return worker.KeyOf(s.ID)
		}
	}
	return 0
}

// MatchOne implements host.Prefixes.
func (k *known) MatchOne(chain []uint64, worker uint32) uint32 {
	return k.space.MatchOne(chain, worker)
}

// Tiers implements host.Prefixes: the GPU is the only tier that is known.
func (k *known) Tiers(worker uint32, out *[3]abi.Tier) int {
	s := k.index.Worker(worker)
	t := abi.Tier{Kind: abi.TierGPU, Reuse: -1, Capacity: uint64(float64(s.Capacity) * k.block),
		Used: uint64(float64(s.Blocks) * k.block)}
	if s.HasTail {
		t.Reuse = float32(k.reuse.R(s.TailAge))
	}
	out[0] = t
	return 1
}

var _ host.Prefixes = (*known)(nil)
