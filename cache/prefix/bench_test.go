package prefix

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

// crowdOf is a population of chats: conversations that share a few system prompts and grow turn by turn on one worker,
// near a length of size blocks of 16 tokens.
type crowdOf struct {
	r      *rand.Rand
	size   int
	turn   int
	system [][]uint64
	convs  []conv
	fresh  uint64
}

type conv struct {
	slot  uint32
	chain []uint64
}

func newCrowd(convs, workers, size int) *crowdOf {
	c := &crowdOf{r: rand.New(rand.NewPCG(1, uint64(size))), size: size, turn: 24}
	for range 8 {
		c.system = append(c.system, c.extend(nil, 64))
	}
	for i := range convs {
		cv := conv{slot: uint32(i % workers)}
		// Started at any length, so that as many end as begin.
		cv.chain = c.extend(c.begin(), size/2+c.r.IntN(size/2))
		c.convs = append(c.convs, cv)
	}
	return c
}

func (c *crowdOf) extend(chain []uint64, n int) []uint64 {
	for range n {
		c.fresh++
		chain = append(chain, mix(c.fresh))
	}
	return chain
}

func (c *crowdOf) begin() []uint64 {
	s := c.system[c.r.IntN(len(c.system))]
	return append(make([]uint64, 0, c.size+c.size/2), s...)
}

// grown takes a conversation one turn further, or starts it anew when it has got too long.
func (c *crowdOf) grown(i int) *conv {
	cv := &c.convs[i]
	if len(cv.chain) > c.size {
		cv.chain = c.extend(append(cv.chain[:0], c.system[c.r.IntN(len(c.system))]...), c.size/2)
	}
	cv.chain = c.extend(cv.chain, c.turn)
	return cv
}

// fill makes an index that holds the crowd, each worker with room for most of its conversations.
func fill(c *crowdOf, workers, capacity int) (*Index, *Namespace, []uint32, []uint32) {
	x := New(Config{Workers: workers, Capacity: capacity})
	n := x.Namespace("model")
	slots := make([]uint32, workers)
	for i := range slots {
		slots[i] = uint32(i)
	}
	for _, cv := range c.convs {
		n.Touch(cv.slot, cv.chain)
	}
	for i, s := range c.system { // a system prompt ends up on every worker
		for w := range workers {
			if (w+i)%2 == 0 {
				n.Touch(uint32(w), s)
			}
		}
	}
	return x, n, slots, make([]uint32, workers)
}

var sizes = []struct {
	name   string
	blocks int
}{{"8k", 512}, {"64k", 4096}}

// batches runs work on the chains of random conversations, in batches copied to memory that the cache still holds: a
// request's chain has just been hashed, and the tree is cold. prepare chooses a conversation's chain, off the clock.
func batches(b *testing.B, c *crowdOf, prepare func(i int) *conv, work func(cv *conv)) {
	const batch = 256
	warm := make([]conv, batch)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= batch {
		b.StopTimer()
		for k := range warm {
			cv := prepare(c.r.IntN(len(c.convs)))
			warm[k].slot = cv.slot
			warm[k].chain = append(warm[k].chain[:0], cv.chain...)
		}
		b.StartTimer()
		for k := range warm[:min(batch, left)] {
			work(&warm[k])
		}
	}
	b.StopTimer()
}

func BenchmarkLookup(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			const workers = 8
			c := newCrowd(1<<20/s.blocks, workers, s.blocks)
			_, n, slots, out := fill(c, workers, 1<<20)
			batches(b, c, func(i int) *conv { return &c.convs[i] }, func(cv *conv) { n.Match(cv.chain, slots, out) })
		})
	}
}

// BenchmarkInsertCold enters a further turn of a random conversation. Half of the population fits, so every insert
// evicts and about half of the conversations come back to an empty place.
func BenchmarkInsertCold(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			const workers, total = 8, 1 << 20
			c := newCrowd(total/s.blocks, workers, s.blocks)
			x, n, _, _ := fill(c, workers, total/workers/2)
			before := x.Stats().Evicted
			batches(b, c, func(i int) *conv { return c.grown(i) }, func(cv *conv) { n.Touch(cv.slot, cv.chain) })
			b.ReportMetric(float64(x.Stats().Evicted-before)/float64(b.N), "evicted/op")
		})
	}
}

// BenchmarkInsert is BenchmarkInsertCold with conversations that are still held.
func BenchmarkInsert(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			const workers, total = 8, 1 << 20
			c := newCrowd(total/s.blocks, workers, s.blocks)
			x, n, _, _ := fill(c, workers, total/workers/2)
			active := func(i int) *conv { return c.grown(i * 2 / 5) }
			for range 4 * len(c.convs) {
				cv := active(c.r.IntN(len(c.convs)))
				n.Touch(cv.slot, cv.chain)
			}
			before := x.Stats().Evicted
			batches(b, c, active, func(cv *conv) { n.Touch(cv.slot, cv.chain) })
			b.ReportMetric(float64(x.Stats().Evicted-before)/float64(b.N), "evicted/op")
		})
	}
}

func BenchmarkLookup256Workers(b *testing.B) {
	const workers, size, convs = 256, 512, 10500
	c := newCrowd(convs, workers, size)
	x, n, slots, out := fill(c, workers, 1<<16)
	batches(b, c, func(i int) *conv { return &c.convs[i] }, func(cv *conv) { n.Match(cv.chain, slots, out) })
	b.ReportMetric(float64(x.Stats().Blocks), "pairs")
}

func BenchmarkBytesPerPair(b *testing.B) {
	for range b.N {
		const workers = 16
		c := newCrowd(4096, workers, 512)
		before := heap()
		x, n, _, _ := fill(c, workers, 1<<20)
		for i := range 3 * len(c.convs) { // turns, so that runs have grown
			cv := c.grown(i % len(c.convs))
			n.Touch(cv.slot, cv.chain)
		}
		grown := heap()
		pairs := float64(x.Stats().Blocks)
		b.ReportMetric(float64(grown-before)/pairs, "B/pair")
		for w := range workers {
			x.Remove(uint32(w))
		}
		b.ReportMetric(float64(heap()-before)/pairs, "B/pair-left")
		runtime.KeepAlive(x)
		runtime.KeepAlive(c)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkRemoveWorker(b *testing.B) {
	const workers, size = 16, 512
	c := newCrowd(1024, workers, size)
	x, n, _, _ := fill(c, workers, 1<<16)
	b.ResetTimer()
	for i := range b.N {
		w := uint32(i % workers)
		b.StopTimer()
		for _, cv := range c.convs {
			if cv.slot == w {
				n.Touch(w, cv.chain)
			}
		}
		b.StartTimer()
		x.Remove(w)
	}
}

// BenchmarkLookupBesideInserts does three lookups to two touches, all of which fit, on every processor.
func BenchmarkLookupBesideInserts(b *testing.B) {
	const workers, size = 8, 512
	c := newCrowd(2048, workers, size)
	_, n, _, _ := fill(c, workers, 1<<17)
	b.RunParallel(func(pb *testing.PB) {
		slots, out := []uint32{0, 1, 2, 3, 4, 5, 6, 7}, make([]uint32, workers)
		for i := 0; pb.Next(); i++ {
			cv := &c.convs[i*7919%len(c.convs)]
			if i%5 < 3 {
				n.Match(cv.chain, slots, out)
			} else {
				n.Touch(cv.slot, cv.chain)
			}
		}
	})
	b.ReportMetric(.6*float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
	b.ReportMetric(.4*float64(b.N)/b.Elapsed().Seconds(), "inserts/s")
}

func BenchmarkReuseNote(b *testing.B) {
	for _, s := range sizes {
		b.Run(s.name, func(b *testing.B) {
			c := newCrowd(1<<20/s.blocks, 8, s.blocks)
			r := NewReuse(1<<20, nil)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				r.Note(c.convs[i*31%len(c.convs)].chain, 16)
			}
		})
	}
}

func BenchmarkReuseR(b *testing.B) {
	r := NewReuse(1<<20, nil)
	for i := range 100 {
		r.Note(chained([]byte(fmt.Sprint(i%3, "x", i))), 16)
	}
	for i := range b.N {
		_ = r.R(1 << (20 + i%20))
	}
}
