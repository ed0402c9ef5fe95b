package holdings

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// crowd is a chat-like population: conversations that share a few system prompts and go turn by turn to one worker.
type crowd struct {
	workers int
	convs   []conv
}

// conv is a conversation as its worker's engine knows it.
type conv struct {
	slot   uint32
	shared int // blocks of a system prompt, stored by the first conversation of the worker that has it
	ids    []uint32
	hashes []uint64
}

const (
	blockSize = 16
	turnOf    = 24 // blocks
)

func newCrowd(convs, workers, size int) *crowd {
	r := rand.New(rand.NewPCG(1, uint64(size)))
	c := &crowd{workers: workers}
	fresh := func(n int) (ids []uint32, hashes []uint64) {
		ids = make([]uint32, n*blockSize)
		for i := range ids {
			ids[i] = r.Uint32N(128000)
		}
		hashes = make([]uint64, n)
		for i := range hashes {
			hashes[i] = r.Uint64()
		}
		return ids, hashes
	}
	const systems = 8
	var prompts [systems][]uint32
	for i := range prompts {
		prompts[i], _ = fresh(64)
	}
	seen := map[[2]int][]uint64{}
	for i := range convs {
		slot, s := i%workers, r.IntN(systems)
		cv := conv{slot: uint32(slot)}
		ids, hashes := fresh(size - 64)
		cv.ids = append(append(cv.ids, prompts[s]...), ids...)
		first := seen[[2]int{slot, s}]
		if first == nil {
			_, first = fresh(64)
			seen[[2]int{slot, s}] = first
		} else {
			cv.shared = 64
		}
		cv.hashes = append(append(cv.hashes, first...), hashes...)
		c.convs = append(c.convs, cv)
	}
	return c
}

// events calls visit with the stores of a conversation, a turn each.
func (c *conv) events(visit func(*blocks.Stored)) {
	for from := c.shared; from < len(c.hashes); from += turnOf {
		s := c.event(from, min(from+turnOf, len(c.hashes)))
		visit(&s)
	}
}

func (c *conv) event(from, to int) blocks.Stored {
	s := blocks.Stored{Hashes: c.hashes[from:to], Tokens: c.ids[from*blockSize : to*blockSize], BlockSize: blockSize}
	if from > 0 {
		s.HasParent = true
		s.Parent = c.hashes[from-1]
	}
	return s
}

// fill stores the crowd, turn after turn as the conversations take turns.
func (c *crowd) fill(x *Index) (writers []*Writer, count int) {
	for i := range c.workers {
		writers = append(writers, x.Writer(uint32(i)))
	}
	for i := range c.convs {
		cv := &c.convs[i]
		cv.events(func(s *blocks.Stored) {
			writers[cv.slot].Store(s)
			count += len(s.Hashes)
		})
	}
	return writers, count
}

// BenchmarkEvents is 16 workers with a million blocks that evict as much as they store: a conversation goes leaf first and
// comes back. An event stores 24 blocks. A removal is of 24 hashes, as an engine frees room for a prompt, or of one.
func BenchmarkEvents(b *testing.B) {
	b.Run("prompts", func(b *testing.B) { events(b, turnOf) })
	b.Run("single", func(b *testing.B) { events(b, 1) })
}

func events(b *testing.B, each int) {
	c := newCrowd(2048, 16, 512)
	x := New(Config{})
	writers, _ := c.fill(x)
	r := rand.New(rand.NewPCG(3, 3))
	var stored, removed time.Duration
	blocks, evicted := 0, make([]uint64, 0, each)
	const batch = 64
	for range b.N {
		for range len(c.convs) / batch {
			from := r.IntN(len(c.convs) - batch)
			convs := c.convs[from : from+batch]
			start := cpu()
			for i := range convs {
				w, hashes := writers[convs[i].slot], convs[i].hashes
				for n := len(hashes); n > convs[i].shared; n -= each {
					evicted := append(evicted[:0], hashes[max(n-each, convs[i].shared):n]...)
					slices.Reverse(evicted)
					w.Remove(GPU, evicted)
				}
			}
			half := cpu()
			removed += half - start
			for i := range convs {
				for from := convs[i].shared; from < len(convs[i].hashes); from += each {
					s := convs[i].event(from, min(from+each, len(convs[i].hashes)))
					writers[convs[i].slot].Store(&s)
					blocks += len(s.Hashes)
				}
			}
			stored += cpu() - half
		}
	}
	b.ReportMetric(float64(blocks)/stored.Seconds(), "stored/s")
	b.ReportMetric(float64(blocks)/removed.Seconds(), "removed/s")
}

// cpu is the time that the process has had of the processors: the figures stand for a core, and neighbours take nothing.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkBytesPerPair(b *testing.B) {
	for range b.N {
		c := newCrowd(2048, 16, 512)
		before := heap()
		x := New(Config{})
		writers, blocks := c.fill(x)
		b.ReportMetric(float64(heap()-before)/float64(blocks), "B/pair")
		for i := range c.convs {
			cv := &c.convs[i]
			for k := len(cv.hashes) - 1; k >= cv.shared; k-- {
				writers[cv.slot].Remove(GPU, cv.hashes[k:k+1])
			}
		}
		b.ReportMetric(float64(heap()-before)/float64(blocks), "B/pair-left")
		runtime.KeepAlive(x)
		runtime.KeepAlive(c)
	}
}

// lookups matches prompts of the crowd in batches. A request's chain has just been hashed and is in the cache; the tree is
// cold.
func lookups(b *testing.B, c *crowd, x *Index) {
	slots, out := make([]uint32, c.workers), make([]Held, c.workers)
	for i := range slots {
		slots[i] = uint32(i)
	}
	chains := make([][]uint64, len(c.convs))
	for i := range chains {
		chains[i] = appendChain(nil, x.seed, c.convs[i].ids, blockSize)
	}
	const batch = 256
	r := rand.New(rand.NewPCG(2, 2))
	queries := make([]Query, batch)
	var took time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= batch {
		b.StopTimer()
		for i := range queries {
			k := r.IntN(len(chains))
			queries[i].Reset("", "", c.convs[k].ids)
			queries[i].seed = x.seed
			queries[i].chains = append(queries[i].chains[:0], chain{size: blockSize, hashes: slices.Clone(chains[k])})
		}
		b.StartTimer()
		start := cpu()
		for i := range queries[:min(batch, left)] {
			x.Match(&queries[i], slots, out)
		}
		took += cpu() - start
	}
	b.StopTimer()
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkHash hashes the ids of a prompt, which Match does once for each block size.
func BenchmarkHash(b *testing.B) {
	for _, l := range lengths {
		b.Run(l.name, func(b *testing.B) {
			c := newCrowd(1, 1, l.blocks)
			var q Query
			b.ReportAllocs()
			for range b.N {
				q.Reset("", "", c.convs[0].ids)
				q.hashes(1, blockSize)
			}
		})
	}
}

var lengths = []struct {
	name   string
	blocks int
}{{"8k", 512}, {"64k", 4096}}

func BenchmarkLookup(b *testing.B) {
	for _, l := range lengths {
		b.Run(l.name, func(b *testing.B) {
			c := newCrowd(1<<20/l.blocks, 8, l.blocks)
			x := New(Config{})
			c.fill(x)
			lookups(b, c, x)
		})
	}
}

// BenchmarkLookup256Workers has 256 workers and four million pairs.
func BenchmarkLookup256Workers(b *testing.B) {
	c, x := big()
	lookups(b, c, x)
}

// big is an index of 256 workers and 4.1 million pairs.
func big() (*crowd, *Index) {
	c := newCrowd(8960, 256, 512)
	x := New(Config{})
	c.fill(x)
	return c, x
}

// BenchmarkLookupBesideEvents is BenchmarkLookup256Workers beside a writer that never rests.
func BenchmarkLookupBesideEvents(b *testing.B) { lookupsBeside(b, func(int) {}) }

// BenchmarkLookupBesideFleet is BenchmarkLookup256Workers beside the events of such a fleet that computes all the time:
// blocks of 16 tokens, at sdk/abi's 15,000 tokens a second of each worker, and as many removed for them.
func BenchmarkLookupBesideFleet(b *testing.B) {
	const rate = 2 * 256 * 15_000 / 16 // blocks a second
	start, all := time.Now(), 0
	lookupsBeside(b, func(blocks int) {
		all += blocks
		time.Sleep(time.Duration(all)*time.Second/rate - time.Since(start))
	})
}

func lookupsBeside(b *testing.B, rest func(blocks int)) {
	c, x := big()
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		blocks := 0
		for i := 0; ; i = (i + 1) % len(c.convs) {
			select {
			case <-stop:
				done <- blocks
				return
			default:
			}
			cv := &c.convs[i]
			w := x.Writer(cv.slot)
			w.Remove(GPU, cv.hashes[cv.shared:])
			cv.events(w.Store)
			blocks += 2 * len(cv.hashes[cv.shared:])
			rest(2 * len(cv.hashes[cv.shared:]))
		}
	}()
	start := time.Now()
	lookups(b, c, x)
	took := time.Since(start)
	close(stop)
	b.ReportMetric(float64(<-done)/took.Seconds(), "blocks/s")
}
