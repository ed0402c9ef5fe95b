package feed

import (
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestHeard: what strategies are told of stores, removals and clears, and nothing while none wants it.
func TestHeard(t *testing.T) {
	var got []abi.KVEvent
	wanted := true
	h := &heard{Writer: holdings.New(holdings.Config{}).Writer(3), slot: 3, hears: func() bool { return wanted },
		hear: func(slot uint32, events []abi.KVEvent, _ time.Time) {
			if slot != 3 {
				t.Errorf("slot %d", slot)
			}
			got = append(got, events...)
		}}
	all := func() {
		h.Store(&blocks.Stored{Hashes: []uint64{7, 8}, BlockSize: 16, Tokens: make([]uint32, 32)})
		h.Store(&blocks.Stored{Medium: blocks.Disk, Hashes: []uint64{9}, Parent: 8, HasParent: true})
		h.Store(&blocks.Stored{Medium: blocks.Other, Hashes: []uint64{10}})
		h.Remove(blocks.CPU, []uint64{8})
		h.Remove(blocks.Other, []uint64{8})
		h.Clear()
	}
	all()
	want := []abi.KVEvent{
		{Kind: abi.EventStored, Hash: 7, Tier: abi.TierGPU, Tokens: 16},
		{Kind: abi.EventStored, Hash: 8, Parent: 7, Tier: abi.TierGPU, Tokens: 16},
		{Kind: abi.EventStored, Hash: 9, Parent: 8, Tier: abi.TierL1},
		{Kind: abi.EventRemoved, Hash: 8, Tier: abi.TierL1},
		{Kind: abi.EventCleared},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
	got, wanted = nil, false
	if all(); got != nil {
		t.Errorf("nobody wants %+v", got)
	}
}
