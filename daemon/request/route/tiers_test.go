package route

import (
	"math"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/sdk/abi"
)

// tiered is a scene whose worker a has a GPU of 100 blocks and CPU memory of 300, b a GPU of 100 alone, and which share
// a tier of so many tokens.
func tiered(t *testing.T, shared int) *scene {
	s := sceneOf(t, "a b", worker.Config{})
	s.Configure(s.conf, Tiers{SharedTokens: shared, L1Rate: 1000, L2Rate: 100})
	s.Workers.Update([]worker.Spec{{ID: "a", URL: "http://a", KVTokens: 3200, CPUTokens: 9600},
		{ID: "b", URL: "http://b", KVTokens: 3200}}, s.now)
	s.Tick(s.now)
	return s
}

// What a GPU has pushed out is still in the CPU's memory of that worker, and behind it in what all share.
func TestTiersBelowTheGPU(t *testing.T) {
	s := tiered(t, 32*10_000)
	x := completion(first, text("x", 80))
	on := func(worker int, what string, gpu, l1, l2 uint32) abi.Row {
		t.Helper()
		r := s.chosen(s.asking(x, Claim{})).fleet.frame.Rows[worker]
		if r.GPU != gpu || r.L1 != l1 || r.L2 != l2 || r.Predicted != gpu {
			t.Errorf("%s: %d blocks, then %d, then %d, predicted %d; want %d, %d, %d", what, r.GPU, r.L1, r.L2, r.Predicted,
				gpu, l1, l2)
		}
		return r
	}
	on(0, "cold", 0, 0, 0)
	s.served(s.asking(x, Claim{}))
	on(0, "computed there", 80, 0, 0)
	on(1, "computed elsewhere", 0, 0, 80)
	s.served(s.asking(completion(first, text("y", 60)), Claim{}))
	r := on(0, "pushed out of the GPU from its end", 40, 40, 0)
	if r.FreeL1 != (300-140)*32 || r.ReuseL1 <= 0 || r.FreeGPU != 0 {
		t.Errorf("free on the CPU %v, its reuse %v, free on the GPU %v", r.FreeL1, r.ReuseL1, r.FreeGPU)
	}
	c := s.chosen(s.asking(x, Claim{}))
	h := c.fleet.frame.Header
	if h.InvBWL1 != 1./1000 || h.InvBWL2 != 1./100 || h.BestMatch != 80 || h.BestRow != 0 {
		t.Errorf("a token from the CPU %v s, from the shared tier %v s, best %d on row %d", h.InvBWL1, h.InvBWL2,
			h.BestMatch, h.BestRow)
	}
	var tiers [3]abi.Tier
	n := c.fleet.known.Tiers(c.fleet.slots[0], &tiers)
	if gpu, cpu, all := tiers[0], tiers[1], tiers[2]; n != 3 || gpu.Used != 100*32 || gpu.TokenSec != 0 ||
		cpu.Kind != abi.TierL1 || cpu.Capacity != 9600 || cpu.Used != 140*32 || cpu.TokenSec != .001 ||
		all.Kind != abi.TierL2 || all.Capacity != 320_000 || all.Used != 140*32 || all.TokenSec != .01 {
		t.Errorf("%d tiers: %+v", n, tiers)
	}
	if n := c.fleet.known.Tiers(c.fleet.slots[1], &tiers); n != 2 || tiers[1].Kind != abi.TierL2 {
		t.Errorf("of b, %d tiers: %+v", n, tiers)
	}
	to, _ := c.Next(s.now)
	trip := s.send(c, to)
	if trip.believed != 80*32-1 || trip.matched != 80 {
		t.Errorf("believed %d tokens, matched %d blocks; want all of the prompt but one", trip.believed, trip.matched)
	}
	for range 4 {
		s.served(s.asking(completion(first, text("z", 90)), Claim{}))
		s.served(s.asking(completion(first, text("w", 90)), Claim{}))
		s.served(s.asking(completion(first, text("v", 90)), Claim{}))
	}
	on(0, "pushed out of the CPU too, but for what was left of it", 0, 30, 50)
	s.become("a", "down")
	s.heal("a")
	on(0, "after its death", 0, 0, 80)
}

// What is to be brought takes time, and less than to compute it: neither counts as the worker's slowness.
func TestATransferIsEstimated(t *testing.T) {
	s := tiered(t, 0)
	x := completion(first, text("x", 80))
	s.served(s.asking(x, Claim{}))
	s.served(s.asking(completion(first, text("y", 60)), Claim{}))
	c := s.chosen(s.asking(x, Claim{}))
	to, _ := c.Next(s.now)
	row := &c.fleet.frame.Rows[to.row]
	want := s.Workers.Estimate(80*32, 80*32-1) + 40*32/1000.
	if got := c.estimate(to); row.L1 != 40 || math.Abs(got-want) > want/1000 {
		t.Errorf("%v s for %d blocks to bring; want %v", got, row.L1, want)
	}
	if c := s.chosen(s.asking(completion(first, text("u", 9)), Claim{})); c.estimate(to) != 0 {
		t.Error("nothing is to be brought, and yet it is estimated here")
	}
}

// The store of this process knows its size only once something was put. From then on the size counts, until the store
// gives none or the configuration does.
func TestTheStoreTellsItsSize(t *testing.T) {
	s := newScene(t, "a b")
	tokens := 0
	s.Configure(s.conf, Tiers{Store: func() int { return tokens }})
	x := completion(first, text("x", 80))
	on := func(what string, shared int, l2 uint32) {
		t.Helper()
		s.Tick(s.now)
		row := s.chosen(s.asking(x, Claim{})).fleet.frame.Rows[1]
		if row.L2 != l2 || s.SharedTokens() != shared {
			t.Errorf("%s: %d blocks of a tier of %d tokens; want %d, %d", what, row.L2, s.SharedTokens(), l2, shared)
		}
		s.served(s.asking(x, Claim{}))
	}
	on("nothing was put", 0, 0)
	tokens = 32 * 1000
	on("not used before", 32_000, 0)
	on("large", 32_000, 80)
	tokens = 32 * 50
	on("small", 1600, 50)
	s.Configure(s.conf, Tiers{SharedTokens: 32 * 60, Store: func() int { return tokens }})
	on("configured", 1920, 50)
	on("configured, and used", 1920, 60)
	s.Configure(s.conf, Tiers{})
	on("none", 0, 0)
}

// A pool without such tiers has nothing in its rows and asks no index for it.
func TestNoTierBelow(t *testing.T) {
	s := newScene(t, "a b")
	s.Tick(s.now)
	s.served(s.asking(completion(first, text("x", 80)), Claim{}))
	c := s.chosen(s.asking(completion(first, text("x", 80)), Claim{}))
	if h := c.fleet.frame.Header; c.below != (spaces{}) || h.InvBWL1 != 0 || h.InvBWL2 != 0 {
		t.Errorf("%+v, %v, %v", c.below, h.InvBWL1, h.InvBWL2)
	}
}
