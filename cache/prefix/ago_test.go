package prefix

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Touches that are reported late, and in any order, leave the state of their own order: of each worker the blocks
// touched last, as many as it has room for. Two indexes get the same touches in two orders, and are compared by brute
// force.
func TestLateTouchesLeaveTheSame(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		capacity := 5 + r.IntN(60)
		all, chains := someTouches(r)
		now := int64(1_000_000)
		var two [2]*Index
		for k := range two {
			x := New(Config{Workers: 3, Capacity: capacity, Now: func() int64 { return now }})
			order := r.Perm(len(all))
			if k == 0 { // a little out of order, like the messages of other routers
				slices.Sort(order)
				for range 5 {
					if i := r.IntN(len(order)); i > 0 {
						order[i], order[i-1] = order[i-1], order[i]
					}
				}
			}
			for _, i := range order {
				x.Space(1).TouchAgo(all[i].slot, all[i].chain, time.Duration(now-all[i].at))
				if err := x.check(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			two[k] = x
		}
		for slot := range uint32(3) {
			held := newestOf(all, slot, capacity)
			for _, chain := range chains {
				want := uint32(0)
				for _, h := range chain {
					if !held[h] {
						break
					}
					want++
				}
				for k, x := range two {
					if got := x.Space(1).MatchOne(chain, slot); got != want {
						t.Fatalf("seed %d, index %d, worker %d, capacity %d: %d blocks of %v; want %d", seed, k, slot, capacity, got, chain, want)
					}
				}
			}
		}
	}
}

type aTouch struct {
	slot  uint32
	chain []uint64
	at    int64
}

// someTouches returns chains that share beginnings, each touched at its own time.
func someTouches(r *rand.Rand) (all []aTouch, chains [][]uint64) {
	for i := range 5 + r.IntN(60) {
		var chain []uint64
		if len(chains) > 0 && r.IntN(3) > 0 { // continues another, or is a part of it
			of := chains[r.IntN(len(chains))]
			chain = slices.Clone(of[:r.IntN(len(of)+1)])
		}
		for range r.IntN(12) {
			chain = append(chain, uint64(1+r.IntN(3))+7*uint64(len(chain))+1000*last(chain))
		}
		if len(chain) == 0 {
			continue
		}
		chains = append(chains, chain)
		all = append(all, aTouch{uint32(r.IntN(3)), chain, int64(100 * (i + 1))})
	}
	return all, chains
}

// newestOf returns the blocks that a worker holds.
func newestOf(all []aTouch, slot uint32, capacity int) map[uint64]bool {
	newest, depth := map[uint64]int64{}, map[uint64]int{}
	for _, a := range all {
		if a.slot == slot {
			for i, h := range a.chain[:min(len(a.chain), capacity)] {
				newest[h], depth[h] = max(newest[h], a.at), i
			}
		}
	}
	var blocks []uint64
	for h := range newest {
		blocks = append(blocks, h)
	}
	slices.SortFunc(blocks, func(a, b uint64) int {
		return cmp.Or(-cmp.Compare(newest[a], newest[b]), cmp.Compare(depth[a], depth[b]))
	})
	held := map[uint64]bool{}
	for _, h := range blocks[:min(len(blocks), capacity)] {
		held[h] = true
	}
	return held
}

func last(chain []uint64) uint64 {
	if len(chain) == 0 {
		return 0
	}
	return chain[len(chain)-1]
}

func TestClear(t *testing.T) {
	x := New(Config{Workers: 2})
	for id := range uint64(9) {
		x.Space(id).Touch(uint32(id%2), []uint64{1, 2, 3})
	}
	old := x.Space(3)
	x.Clear()
	if s := x.Stats(); s.Nodes != 0 || s.Blocks != 0 || s.Namespaces != 0 {
		t.Errorf("left: %+v", s)
	}
	old.Touch(0, []uint64{1})
	if got := x.Space(3).MatchOne([]uint64{1}, 0); got != 0 {
		t.Errorf("%d blocks; want none", got)
	}
}
