package prefix

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

func (n *Namespace) depth(slot uint32, chain []uint64) int {
	var out [1]uint32
	n.Match(chain, []uint32{slot}, out[:])
	return int(out[0])
}

func sound(t *testing.T, x *Index) {
	t.Helper()
	if err := x.check(); err != nil {
		t.Fatal(err)
	}
}

// TestEvictsFromTheLeaf: the end of the oldest chain is evicted first, block by block, and what it shares with newer
// chains stays.
func TestEvictsFromTheLeaf(t *testing.T) {
	x := New(Config{Workers: 1, Capacity: 12})
	n := x.Namespace("m")
	a, b := chained([]byte("ssssaaaa")), chained([]byte("ssssbbbb"))
	n.Touch(0, a)
	n.Touch(0, b)
	f := func(chain []uint64, want int) {
		t.Helper()
		if got := n.depth(0, chain); got != want {
			t.Errorf("depth %d; want %d", got, want)
		}
	}
	f(a, 8)
	f(b, 8)
	n.Touch(0, chained([]byte("z")))
	f(a, 7)
	n.Touch(0, chained([]byte("zz")))
	f(a, 6)
	n.Touch(0, a[:5]) // younger again; a[5] is now the oldest
	n.Touch(0, chained([]byte("zzz")))
	f(a, 5)
	n.Touch(0, chained([]byte("zzzz"))) // a[5] was the only block of a behind the touched ones, so b is next
	f(a, 5)
	f(b, 7)
	sound(t, x)
}

// TestPartialTouchSplitsAndJoins: a touch of a part splits the run by age, and a touch of the whole joins it again.
func TestPartialTouchSplitsAndJoins(t *testing.T) {
	tick := int64(0)
	x := New(Config{Workers: 2, Now: func() int64 { tick++; return tick }})
	n := x.Namespace("m")
	long := chained(make([]byte, 200))
	n.Touch(0, long)
	n.Touch(1, long)
	for k := 199; k > 0; k-- {
		n.Touch(0, long[:k])
		sound(t, x)
	}
	if got := x.Stats().Nodes; got != 200 {
		t.Fatalf("%d nodes for 200 ages", got)
	}
	n.Touch(0, long)
	if got := x.Stats().Nodes; got != 1 {
		t.Fatalf("%d nodes after a touch of the whole; want 1", got)
	}
	sound(t, x)
	if got := x.Stats(); got.Nodes != 1 || got.Blocks != 400 {
		t.Fatalf("%+v; want one node with 400 blocks", got)
	}
}

// TestChatIsOneNode: a growing conversation stays one run, and blocks that eviction cuts off hold no memory.
func TestChatIsOneNode(t *testing.T) {
	x := New(Config{Workers: 2})
	n := x.Namespace("m")
	chat := chained(make([]byte, 3000))
	for k := 100; k <= len(chat); k += 100 {
		n.Touch(uint32(k/100%2), chat[:k])
	}
	if got := x.Stats().Nodes; got != 1 {
		t.Errorf("%d nodes; want 1", got)
	}
	for k := 3000; k > 0; k -= 7 {
		x.SetCapacity(0, k)
		x.SetCapacity(1, k)
		sound(t, x)
	}
}

func TestBounds(t *testing.T) {
	x := New(Config{Workers: 2, MaxNodes: 10, MaxNamespaces: 3})
	for i := range 100 {
		x.Namespace("m").Touch(uint32(i%2), chained([]byte{1, byte(i), byte(i), 4}))
		sound(t, x)
		if got := x.Stats().Nodes; got > 10 {
			t.Fatalf("%d nodes; want at most 10", got)
		}
	}
	if got := x.Namespace("m").depth(1, chained([]byte{1, 99, 99, 4})); got != 4 {
		t.Errorf("the newest chain is at %d of 4", got)
	}
	x.drop("m")
	old := x.Namespace("m")
	old.Touch(0, chained([]byte("m")))
	for _, name := range []string{"a", "b", "c"} {
		x.Namespace(name).Touch(0, chained([]byte(name)))
	}
	st := x.Stats()
	if st.Namespaces != 3 || st.Nodes != 3 || st.Blocks != 3 || st.Crowded == 0 {
		t.Errorf("%+v; want 3 namespaces of one block", st)
	}
	old.Touch(0, chained([]byte("late")))
	if got := old.depth(0, chained([]byte("late"))); got != 0 {
		t.Errorf("an evicted namespace learnt %d blocks", got)
	}
	sound(t, x)
	for _, name := range []string{"a", "b", "c"} {
		x.drop(name)
	}
	if st := x.Stats(); st.Nodes != 0 || st.Blocks != 0 {
		t.Errorf("%+v after all is forgotten", st)
	}
	sound(t, x)
}

func TestUsedNamespaceStays(t *testing.T) {
	x := New(Config{MaxNamespaces: 2})
	a, b := x.Namespace("a"), x.Namespace("b")
	x.Namespace("a")
	x.Namespace("c")
	if x.Namespace("a") != a {
		t.Error("a was used after b and went first")
	}
	if x.Namespace("b") == b {
		t.Error("b is still there beside a and c")
	}
}

func TestLongNames(t *testing.T) {
	x := New(Config{})
	long := strings.Repeat("s", 1<<20)
	a, b := x.Namespace(long), x.Namespace(long+"t")
	if a == b || x.Namespace(long) != a {
		t.Error("long names are not told apart")
	}
	if len(a.key) > maxName {
		t.Errorf("a key of %d bytes; want at most %d", len(a.key), maxName)
	}
}

func TestOutOfRange(t *testing.T) {
	x := New(Config{Workers: 2})
	n := x.Namespace("m")
	c := chained([]byte("abc"))
	n.Touch(2, c)
	n.Touch(0, nil)
	x.Remove(2)
	out := []uint32{9, 9, 9}
	n.Match(c, []uint32{0, 2, 1 << 31}, out)
	if out[0]+out[1]+out[2] != 0 {
		t.Errorf("%v; want zeros", out)
	}
	if got := x.Worker(7); got != (WorkerStats{}) {
		t.Errorf("%+v of no worker", got)
	}
	if st := x.Stats(); st.Nodes != 0 {
		t.Errorf("%+v; want nothing", st)
	}
}

func TestCapacity(t *testing.T) {
	now := int64(0)
	x := New(Config{Workers: 1, Capacity: 8, Now: func() int64 { return now }})
	n := x.Namespace("m")
	c := chained([]byte("abcdefghij"))
	n.Touch(0, c) // longer than the worker: the head stays
	f := func(blocks, capacity, depth int) {
		t.Helper()
		w := x.Worker(0)
		if w.Blocks != blocks || w.Capacity != capacity || n.depth(0, c) != depth {
			t.Errorf("%+v depth %d; want %d of %d, depth %d", w, n.depth(0, c), blocks, capacity, depth)
		}
	}
	f(8, 8, 8)
	x.SetCapacity(0, 3)
	f(3, 3, 3)
	now = int64(time.Minute)
	if w := x.Worker(0); !w.HasTail || w.TailAge != time.Minute {
		t.Errorf("%+v; want a tail of a minute", w)
	}
	x.Remove(0)
	f(0, 3, 0)
	if w := x.Worker(0); w.HasTail {
		t.Errorf("%+v; want no tail", w)
	}
	x.SetCapacity(0, 0)
	f(0, 8, 0)
}

func TestMatchAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector sync.Pool drops at random")
	}
	x := New(Config{})
	n := x.Namespace("m")
	c := chained(make([]byte, 500))
	n.Touch(1, c)
	slots, out := []uint32{0, 1, 2}, make([]uint32, 3)
	if got := testing.AllocsPerRun(1000, func() { x.Namespace("m").Match(c, slots, out) }); got != 0 {
		t.Errorf("%v allocations a lookup", got)
	}
	if out[1] != 500 {
		t.Errorf("matched %d of 500", out[1])
	}
}

func TestScratchRoundWraps(t *testing.T) {
	s := &scratch{round: 1<<32 - 1, cells: []uint64{1<<32 | 5}}
	if s.next() != 1<<32 || s.cells[0] != 0 {
		t.Error("a cell of an earlier round 1 survives")
	}
}

// TestHammer runs readers, writers, removals and evictions of namespaces at once; -race and check verify it.
func TestHammer(t *testing.T) {
	x := New(Config{Workers: 8, Capacity: 200, MaxNodes: 300, MaxNamespaces: 3})
	var wg sync.WaitGroup
	for g := range uint64(6) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 3))
			var earlier [][]byte
			slots, out := []uint32{0, 1, 2, 3, 4, 5, 6, 7}, make([]uint32, 8)
			for range 3000 {
				n := x.Namespace(string(rune('a' + r.IntN(4))))
				c := chained(contents(r, &earlier))
				switch r.IntN(20) {
				case 0:
					x.Remove(uint32(r.IntN(8)))
				case 1:
					x.SetCapacity(uint32(r.IntN(8)), 50+r.IntN(300))
				case 2:
					x.Worker(uint32(r.IntN(8)))
					x.Stats()
				case 3, 4, 5, 6, 7, 8:
					n.Touch(uint32(r.IntN(8)), c)
				default:
					n.Match(c, slots, out)
					for _, d := range out {
						if int(d) > len(c) {
							t.Errorf("matched %d of %d", d, len(c))
						}
					}
				}
			}
		})
	}
	wg.Wait()
	sound(t, x)
}

// FuzzOps plays random operations against the oracle, by seed and number.
func FuzzOps(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed, uint16(300))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) { play(t, seed, int(n%2000)) })
}

// FuzzTree enters sequences that are not chained: the answers mean nothing, but the tree stays sound and can be
// emptied.
func FuzzTree(f *testing.F) {
	f.Add([]byte("\x01\x04aaaa\x02\x03aab\x01\x02aa"))
	f.Add([]byte("\x00\x08abcabcab\x01\x04abcd\x00\x03abd\xf0\x00\xf1\x00"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		const workers = 4
		x := New(Config{Workers: workers, Capacity: 40, MaxNodes: 12})
		n := x.Namespace("m")
		slots, out := []uint32{0, 1, 2, 3}, make([]uint32, workers)
		for len(ops) >= 2 {
			op, k := ops[0], min(int(ops[1]), len(ops)-2)
			chain := make([]uint64, k)
			for i, b := range ops[2 : 2+k] {
				chain[i] = uint64(b % 4)
			}
			ops = ops[2+k:]
			switch {
			case op > 250:
				x.Remove(uint32(op % workers))
			case op > 240:
				x.SetCapacity(uint32(op%workers), k)
			case op%3 == 0:
				n.Match(chain, slots, out)
			default:
				n.Touch(uint32(op%workers), chain)
			}
			if err := x.check(); err != nil {
				t.Fatal(err)
			}
		}
		for s := range uint32(workers) {
			x.Remove(s)
		}
		if st := x.Stats(); st.Nodes != 0 || st.Blocks != 0 {
			t.Fatalf("%+v after all workers were removed", st)
		}
	})
}

// TestJoinKeepsAges: another worker's touch must not join what this worker touched at two times, although the order of
// eviction would be the same.
func TestJoinKeepsAges(t *testing.T) {
	now := int64(0)
	x := New(Config{Workers: 2, Now: func() int64 { return now }})
	n := x.Namespace("m")
	c := chained([]byte("abcdef"))
	n.Touch(0, c)
	now = 10
	n.Touch(0, c[:3])
	n.Touch(1, c)
	x.SetCapacity(0, 2) // only blocks touched at 10 are left
	now = 15
	if got := x.Worker(0).TailAge; got != 5 {
		t.Errorf("the tail is %d old; want 5", got)
	}
	sound(t, x)
}

func TestBestAndOne(t *testing.T) {
	x := New(Config{Workers: 4})
	n := x.Namespace("m")
	chain := chained([]byte{1, 2, 3, 4, 5, 6})
	f := func(blocks int, slot, best uint32, each ...uint32) {
		t.Helper()
		if s, b := n.Best(chain[:blocks]); s != slot || b != best {
			t.Errorf("the best of %d blocks is worker %d with %d; want %d with %d", blocks, s, b, slot, best)
		}
		for i, want := range each {
			if got := n.MatchOne(chain[:blocks], uint32(i)); got != want {
				t.Errorf("worker %d holds %d of %d; want %d", i, got, blocks, want)
			}
		}
	}
	f(6, 0, 0, 0, 0)
	n.Touch(2, chain[:4])
	f(6, 2, 4, 0, 0, 4, 0)
	n.Touch(1, chain[:4])
	f(6, 1, 4, 0, 4, 4, 0) // the lower slot of two
	n.Touch(3, chain)
	f(6, 3, 6, 0, 4, 4, 6)
	f(4, 1, 4, 0, 4, 4, 4)
	f(0, 0, 0, 0, 0, 0, 0)
	n.Touch(0, chained([]byte{1, 2, 9})) // parts after two
	f(6, 3, 6, 2, 4, 4, 6)
	if got := n.MatchOne(chain, 99); got != 0 {
		t.Errorf("a slot out of range holds %d", got)
	}
	allocs := testing.AllocsPerRun(100, func() {
		n.Best(chain)
		n.MatchOne(chain, 1)
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A full index takes a new prompt into the memory of the one that it evicts.
func TestFullIndexAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	x := New(Config{Workers: 1, Capacity: 64 * 20})
	n := x.Namespace("m")
	next := uint64(0)
	touch := func() {
		var chain [20]uint64
		for i := range chain {
			next++
			chain[i] = mix(next)
		}
		n.Touch(0, chain[:18+next%3])
	}
	for range 1000 {
		touch()
	}
	if got := testing.AllocsPerRun(1000, touch); got != 0 {
		t.Errorf("%v allocations a touch", got)
	}
	if err := x.check(); err != nil {
		t.Error(err)
	}
}
