package subset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

func keys(kind string, n int) (all []uint64) {
	for i := range n {
		all = append(all, worker.KeyOf(fmt.Sprintf("%s-%d", kind, i)))
	}
	return all
}

// pairsOf returns the pairs of an assignment, by the keys.
func pairsOf(routers, workers []uint64, size int) map[[2]uint64]bool {
	all := map[[2]uint64]bool{}
	for w, of := range Assign(routers, workers, size) {
		for _, r := range of {
			all[[2]uint64{routers[r], workers[w]}] = true
		}
	}
	return all
}

// TestBalance: each router has size different workers, and the numbers of routers of two workers differ by two at most.
// The oracle counts pairs. Three of four numbers are the mean, rounded up or down.
func TestBalance(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		r, w := 1+random.IntN(12), 1+random.IntN(300)
		size := 1 + random.IntN(w+10)
		routers, workers := keys(fmt.Sprint("r", random.Int()), r), keys(fmt.Sprint("w", random.Int()), w)
		of := make([]int, w)
		at := map[uint64]int{}
		for p := range pairsOf(routers, workers, size) {
			at[p[0]]++
			of[slices.Index(workers, p[1])]++
		}
		for _, router := range routers {
			if want := min(size, w); at[router] != want {
				t.Fatalf("%d routers, %d workers, subset %d: a router has %d workers; want %d", r, w, size, at[router], want)
			}
		}
		total, odd := r*min(size, w), 0
		for _, n := range of {
			if n < total/w || n > (total+w-1)/w {
				odd++
			}
		}
		if d := slices.Max(of) - slices.Min(of); d > 2 || odd > max(1, w/4) {
			t.Errorf("%d routers, %d workers, subset %d: workers are in %d to %d subsets, %d of them not in the mean rounded",
				r, w, size, slices.Min(of), slices.Max(of), odd)
		}
	}
}

// TestOrderDoesNotMatter: all routers compute the same, however they list each other.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	routers, workers := keys("r", 7), keys("w", 200)
	before := pairsOf(routers, workers, 40)
	rand.Shuffle(len(routers), func(i, j int) { routers[i], routers[j] = routers[j], routers[i] })
	rand.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] })
	for p := range pairsOf(routers, workers, 40) {
		if !before[p] {
			t.Fatal("another order of routers and workers gives other subsets")
		}
	}
}

// TestFewMove: of a router's subset a tenth or so changes when one of ten routers comes or goes, and of all pairs
// hardly more than the worker's own when a worker does.
func TestFewMove(t *testing.T) {
	t.Parallel()
	const size = 200
	routers, workers := keys("r", 11), keys("w", 1001)
	lost := func(a, b map[[2]uint64]bool) (n int) {
		for p := range a {
			if !b[p] {
				n++
			}
		}
		return n
	}
	base := pairsOf(routers[:10], workers[:1000], size)
	for name, c := range map[string]struct {
		with map[[2]uint64]bool
		own  int // pairs of the router or worker itself
		most int // others
	}{
		"a router leaves": {pairsOf(routers[:9], workers[:1000], size), size, 10 * size / 5},
		"a router comes":  {pairsOf(routers[:11], workers[:1000], size), 0, 10 * size / 5},
		"a worker leaves": {pairsOf(routers[:10], workers[:999], size), 2, 10},
		"a worker comes":  {pairsOf(routers[:10], workers[:1001], size), 0, 10},
	} {
		n := lost(base, c.with)
		t.Logf("%s: %d of %d pairs are gone, %d of them its own", name, n, len(base), c.own)
		if n > c.own+c.most {
			t.Errorf("%s: %d pairs are gone; want at most %d", name, n, c.own+c.most)
		}
	}
}
