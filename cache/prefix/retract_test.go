package prefix

import (
	"math/rand/v2"
	"testing"
)

// retract enters a chain and takes it back at once.
func retract(n *Namespace, slot uint32, chain []uint64) {
	held, at := n.Enter(slot, chain)
	n.Retract(slot, chain, held, at)
}

// TestRetract: what a touch added is taken back, and nothing that another touch needs.
func TestRetract(t *testing.T) {
	x := New(Config{Workers: 2, Capacity: 1000})
	n := x.Namespace("m")
	chat, next, other := chained([]byte("sssschat")), chained([]byte("sssschatturn")), chained([]byte("ssssother"))
	n.Touch(1, chat)
	f := func(why string, slot uint32, chain []uint64, want int) {
		t.Helper()
		sound(t, x)
		if got := n.depth(slot, chain); got != want {
			t.Errorf("%s: depth %d; want %d", why, got, want)
		}
	}
	retract(n, 0, chat)
	f("all of it", 0, chat, 0)
	f("another worker's", 1, chat, 8)

	n.Touch(0, chat)
	retract(n, 0, next)
	f("what was held before", 0, next, 8)

	held, at := n.Enter(0, next)
	n.Touch(0, next)
	n.Retract(0, next, held, at)
	f("touched since", 0, next, 12)

	held, at = n.Enter(1, next)
	n.Touch(1, other)
	n.Retract(1, next, held, at)
	f("shared with a later touch", 1, other, 9)
	f("beside it", 1, next, 8)

	n.Retract(1, chained([]byte("nobody")), 0, 0)
	n.Retract(9, next, 0, 0)
	f("unknown", 0, next, 12)
}

// TestRetractUndoesEnter: random chains of shared heads. An Enter that is retracted at once leaves what every worker
// held, as long as nothing had to be evicted.
func TestRetractUndoesEnter(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	const workers = 3
	x := New(Config{Workers: workers, Capacity: 100_000})
	n := x.Namespace("m")
	var chains [][]uint64
	for range 200 {
		text := make([]byte, 1+rng.IntN(20))
		for i := range text {
			text[i] = byte('a' + rng.IntN(2))
		}
		chains = append(chains, chained(text))
	}
	depths := func() (all []int) {
		for _, c := range chains {
			for slot := range uint32(workers) {
				all = append(all, n.depth(slot, c))
			}
		}
		return all
	}
	for range 400 {
		if rng.IntN(2) == 0 {
			n.Touch(uint32(rng.IntN(workers)), chains[rng.IntN(len(chains))])
		}
		before, blocks := depths(), x.Stats().Blocks
		slot, chain := uint32(rng.IntN(workers)), chains[rng.IntN(len(chains))]
		retract(n, slot, chain)
		sound(t, x)
		for i, was := range depths() {
			if was != before[i] {
				t.Fatalf("chain %d at worker %d: depth %d; want %d", i/workers, i%workers, was, before[i])
			}
		}
		if got := x.Stats().Blocks; got != blocks {
			t.Fatalf("%d blocks; want %d", got, blocks)
		}
	}
}
