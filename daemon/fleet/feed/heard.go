package feed

import (
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/sdk/abi"
)

// heard enters a worker's events into the index, and passes them on to [Config.Hear].
type heard struct {
	*holdings.Writer
	slot  uint32
	hears func() bool
	hear  func(slot uint32, events []abi.KVEvent, at time.Time)
}

// tiers of the media that a worker names. What is on its disk counts as in its memory.
var tiers = [...]uint32{blocks.GPU: abi.TierGPU, blocks.CPU: abi.TierL1, blocks.Disk: abi.TierL1}

func (h *heard) Store(s *blocks.Stored) {
	h.Writer.Store(s)
	if s.Medium >= blocks.Other || !h.hears() {
		return
	}
	events := make([]abi.KVEvent, len(s.Hashes))
	parent := s.Parent // 0 at the head of a prompt
	for i, hash := range s.Hashes {
		events[i] = abi.KVEvent{Kind: abi.EventStored, Hash: hash, Parent: parent, Tier: tiers[s.Medium],
			Tokens: uint32(s.BlockSize)}
		parent = hash
	}
	h.hear(h.slot, events, time.Now())
}

func (h *heard) Remove(m blocks.Medium, hashes []uint64) {
	h.Writer.Remove(m, hashes)
	if m >= blocks.Other || !h.hears() {
		return
	}
	events := make([]abi.KVEvent, len(hashes))
	for i, hash := range hashes {
		events[i] = abi.KVEvent{Kind: abi.EventRemoved, Hash: hash, Tier: tiers[m]}
	}
	h.hear(h.slot, events, time.Now())
}

func (h *heard) Clear() {
	h.Writer.Clear()
	if h.hears() {
		h.hear(h.slot, []abi.KVEvent{{Kind: abi.EventCleared}}, time.Now())
	}
}
