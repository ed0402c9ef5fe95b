package holdings

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// prompt makes n blocks of 16 ids, and an engine's hashes for them.
func blocksOf(seed uint64, n int) ([]uint32, []uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	ids, hashes := make([]uint32, n*blockSize), make([]uint64, n)
	for i := range ids {
		ids[i] = r.Uint32()
	}
	for i := range hashes {
		hashes[i] = r.Uint64()
	}
	return ids, hashes
}

func held(x *Index, slot uint32, ids []uint32) Held {
	var q Query
	var out [1]Held
	q.Reset("", "", ids)
	x.Match(&q, []uint32{slot}, out[:])
	return out[0]
}

func TestOverflowClears(t *testing.T) {
	x := New(Config{Blocks: 100})
	ids, hashes := blocksOf(1, 300)
	w := x.Writer(3)
	w.SetLive(true)
	w.Store(&blocks.Stored{Hashes: hashes[:100], Tokens: ids[:1600], BlockSize: 16})
	if got := held(x, 3, ids); got.GPU != 1600 || !got.Live {
		t.Fatalf("%+v", got)
	}
	var q Query
	q.Reset("", "", ids)
	x.Predict(3, &q)
	w.Store(&blocks.Stored{HasParent: true, Parent: hashes[99], Hashes: hashes[100:101], Tokens: ids[1600:1616], BlockSize: 16})
	if got := held(x, 3, ids); got != (Held{}) {
		t.Errorf("a worker that said too much is believed: %+v", got)
	}
	if s := x.Worker(3); s.Overflows != 1 || s.Blocks != 0 || s.Live || x.Chain() != 0 {
		t.Errorf("%+v", s)
	}
	w.Store(&blocks.Stored{Hashes: hashes, Tokens: ids, BlockSize: 16}) // all in one event
	if s := x.Worker(3); s.Overflows != 2 || x.Chain() != 0 {
		t.Errorf("%+v", s)
	}
}

// A worker that keeps one block of each long run makes others pay for the rest, so the chains have a bound of their own.
func TestChainsAreBounded(t *testing.T) {
	x := New(Config{Chain: 5000})
	good, bad := x.Writer(0), x.Writer(1)
	good.SetLive(true)
	bad.SetLive(true)
	ids, hashes := blocksOf(1, 1000)
	good.Store(&blocks.Stored{Hashes: hashes, Tokens: ids, BlockSize: 16})
	for i := range uint64(20) {
		ids, hashes := blocksOf(100+i, 900)
		bad.Store(&blocks.Stored{Hashes: hashes, Tokens: ids, BlockSize: 16})
		bad.Remove(GPU, hashes[:899])
		if x.Chain() > 5000 {
			t.Fatalf("%d blocks of chains", x.Chain())
		}
	}
	if s := x.Worker(1); s.Overflows == 0 || s.Live {
		t.Errorf("the worker that pins memory was not cleared: %+v", s)
	}
	if s := x.Worker(0); s.Overflows != 0 || !s.Live || s.Blocks != 1000 {
		t.Errorf("another worker was cleared for it: %+v", s)
	}
	if err := x.check(); err != nil {
		t.Error(err)
	}
}

func TestPlanesAreBounded(t *testing.T) {
	x := New(Config{Planes: 2})
	w := x.Writer(0)
	ids, hashes := blocksOf(1, 6)
	for i, salt := range []string{"a", "b", "c"} {
		w.Store(&blocks.Stored{Salt: salt, Hashes: hashes[2*i : 2*i+2], Tokens: ids[:32], BlockSize: 16})
	}
	if s := x.Worker(0); s.Crowded != 2 || s.Blocks != 4 {
		t.Errorf("%+v", s)
	}
	w.Remove(GPU, hashes[:2]) // the first plane goes, and there is room
	w.Store(&blocks.Stored{Salt: "c", Hashes: hashes[4:6], Tokens: ids[:32], BlockSize: 16})
	if s := x.Worker(0); s.Crowded != 2 || s.Blocks != 4 {
		t.Errorf("%+v", s)
	}
}

func TestPredictionsAreBounded(t *testing.T) {
	x := New(Config{Predictions: 50})
	w := x.Writer(0)
	ids, hashes := blocksOf(1, 1)
	w.Store(&blocks.Stored{Hashes: hashes, Tokens: ids, BlockSize: 16})
	var q Query
	var prompts [][]uint32
	for i := range uint64(10) {
		ids, _ := blocksOf(10+i, 20)
		prompts = append(prompts, ids)
		q.Reset("", "", ids)
		x.Predict(0, &q)
		if err := x.check(); err != nil {
			t.Fatal(err)
		}
	}
	for i, ids := range prompts {
		if got, want := held(x, 0, ids).GPU, uint32(19*16); (i < 8) != (got == 0) || i >= 8 && got != want {
			t.Errorf("prediction %d counts %d", i, got)
		}
	}
	same, _ := blocksOf(99, 8)
	q.Reset("", "", same)
	for range 3 * maxSpans { // dispatches of one prompt
		x.Predict(0, &q)
	}
	if err := x.check(); err != nil {
		t.Fatal(err)
	}
}

// An engine may hold the same block 70,000 times: prompts of exactly one block, sent again and again.
func TestManyCopies(t *testing.T) {
	x := New(Config{})
	w := x.Writer(0)
	ids, hashes := blocksOf(1, 2)
	s := &blocks.Stored{Hashes: hashes[:1], Tokens: ids[:16], BlockSize: 16}
	for range 3000 {
		w.Store(s)
	}
	for i := range 3000 {
		if held(x, 0, ids).GPU != 16 {
			t.Fatalf("gone after %d of 3000 removals", i)
		}
		w.Remove(GPU, hashes[:1])
	}
	if x.Chain() != 0 || held(x, 0, ids).GPU != 0 || x.Worker(0).Unknown != 0 {
		t.Errorf("%d left, %+v", x.Chain(), x.Worker(0))
	}
}

// Runs longer than a node go on in a child.
func TestLongRuns(t *testing.T) {
	x := New(Config{})
	w := x.Writer(0)
	const n = 3*maxRun + 17
	ids, hashes := blocksOf(1, n)
	w.Store(&blocks.Stored{Hashes: hashes, Tokens: ids, BlockSize: 16})
	if got := held(x, 0, append(slices.Clone(ids), 1)).GPU; got != n*16 {
		t.Errorf("%d of %d", got, n*16)
	}
	w.Remove(GPU, hashes[2*maxRun+5:2*maxRun+6])
	if got := held(x, 0, ids).GPU; got != (2*maxRun+5)*16 {
		t.Errorf("%d up to the hole at %d", got, (2*maxRun+5)*16)
	}
	if err := x.check(); err != nil {
		t.Error(err)
	}
	for i := n - 1; i >= 0; i-- {
		w.Remove(GPU, hashes[i:i+1])
	}
	if x.Chain() != 0 {
		t.Errorf("%d blocks left", x.Chain())
	}
}

func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 300)
	names := [][2]string{{"", ""}, {"a", ""}, {"", "a"}, {"a#", ""}, {"a", "#"}, {"a%23", ""}, {"a%2", "3#"}, {long, "a"},
		{long, "b"}, {"#", "#"}, {"", "##"}}
	seen := map[string]bool{}
	for _, n := range names {
		key := keyOf(n[0], n[1])
		if seen[key] || len(key) > maxName {
			t.Errorf("%.20q is the key of two, or long", key)
		}
		seen[key] = true
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the pool drops what it is given under the race detector")
	}
	x := New(Config{})
	ids, hashes := blocksOf(1, 200)
	for slot := range uint32(5) {
		x.Writer(slot).Store(&blocks.Stored{Hashes: hashes, Tokens: ids, BlockSize: 16, Salt: "s"})
	}
	x.Writer(Shared).Store(&blocks.Stored{Hashes: hashes, Tokens: ids, BlockSize: 16, Salt: "s"})
	var q Query
	slots, out := []uint32{4, 3, 2, 1, 0}, make([]Held, 5)
	if n := testing.AllocsPerRun(100, func() {
		q.Reset("", "s", ids)
		x.Match(&q, slots, out)
	}); n != 0 || out[0].GPU != 199*16 {
		t.Errorf("%v allocations, %+v", n, out)
	}
}

// write enters random events of one worker, and takes them back.
func write(x *Index, slot uint32, ids []uint32, steps int) {
	r := rand.New(rand.NewPCG(uint64(slot), 2))
	for range steps {
		w, n := x.Writer(slot), 1+r.IntN(20)
		from := r.IntN(400 - n)
		s := &blocks.Stored{Tokens: ids[from*16 : (from+n)*16], BlockSize: 16, Medium: blocks.Medium(r.IntN(2)), HasParent: from > 0}
		s.Parent = uint64(from)
		for i := range n {
			s.Hashes = append(s.Hashes, uint64(from+i+1))
		}
		switch k := r.IntN(100); {
		case k < 50:
			w.Store(s)
		case k < 95:
			w.Remove(s.Medium, s.Hashes)
		case k < 97:
			w.Clear()
		case k < 98:
			x.Forget(slot)
		default:
			w.SetLive(k&1 == 0)
		}
	}
}

// Readers and writers of all kinds, side by side.
func TestHammer(t *testing.T) {
	steps := 20000
	if testing.Short() || raceEnabled {
		steps = 3000
	}
	x := New(Config{Blocks: 2000, Predicted: time.Millisecond, Chain: 20000})
	ids, _ := blocksOf(1, 400)
	var wg sync.WaitGroup
	for slot := range uint32(4) {
		wg.Go(func() {
			if slot == 3 {
				slot = Shared
			}
			write(x, slot, ids, steps)
		})
	}
	for seed := range uint64(3) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			slots, out := []uint32{0, 1, 2, 3}, make([]Held, 4)
			var q Query
			for range steps {
				q.Reset("", "", ids[:r.IntN(len(ids))])
				switch slot := uint32(r.IntN(4)); r.IntN(8) {
				case 0:
					if t := x.Predict(slot, &q); t&1 == 0 {
						x.Withdraw(t)
					}
				case 1:
					x.Worker(slot)
				default:
					x.Match(&q, slots, out)
				}
			}
		})
	}
	wg.Wait()
	if err := x.check(); err != nil {
		t.Error(err)
	}
	for slot := range uint32(3) {
		x.Forget(slot)
	}
	x.Forget(Shared)
	time.Sleep(2 * time.Millisecond) // for what was predicted after that
	held(x, 0, ids)
	if x.dir.total.Load() != 0 || x.dir.n != 0 {
		t.Errorf("%d blocks and %d planes left", x.dir.total.Load(), x.dir.n)
	}
}

// TestMedia: what a worker has on its disk counts as in its memory, and no view has what is on another medium.
func TestMedia(t *testing.T) {
	f := func(m blocks.Medium, want [2]int) {
		t.Helper()
		x := New(Config{})
		w := x.Writer(0)
		w.Store(&blocks.Stored{Medium: m, Hashes: []uint64{7}, Tokens: []uint32{1, 2}, BlockSize: 2})
		if got := x.Worker(0).Held; got != want {
			t.Errorf("stored on %v: %v are held; want %v", m, got, want)
		}
		w.Remove(m, []uint64{7})
		if got := x.Worker(0).Held; got != [2]int{} {
			t.Errorf("removed from %v: %v are held", m, got)
		}
	}
	f(blocks.GPU, [2]int{1, 0})
	f(blocks.CPU, [2]int{0, 1})
	f(blocks.Disk, [2]int{0, 1})
	f(blocks.Other, [2]int{})
}
