package arena

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCost(t *testing.T) {
	f := func(size, cost int64) {
		t.Helper()
		if got := Cost(size); got != cost {
			t.Errorf("Cost(%d) = %d; want %d", size, got, cost)
		}
	}
	f(0, 0)
	f(1, 64)
	f(28, 64)
	f(64, 64)
	f(65, 96)
	f(32<<10, 32<<10)
	f(32<<10+1, 64<<10)
	f(1<<20, 1<<20)
	f(1<<20+28, 1<<20+64)
	f(128<<20, 128<<20)
}

// checker compares the extents of a space with a map of every byte's owner.
type checker struct {
	t     testing.TB
	s     *Space
	owner []int32 // by units of 32 bytes, half of the smallest slot
	held  map[int32][]Extent
	sizes map[int32]int64
	next  int32
}

func newChecker(t testing.TB, size int64) *checker {
	return &checker{t: t, s: NewSpace(size), owner: make([]int32, size/32), held: map[int32][]Extent{}, sizes: map[int32]int64{}}
}

func (c *checker) alloc(size int64) (int32, bool) {
	free := c.s.Free()
	list, ok := c.s.Alloc(size)
	if !ok {
		if free >= Cost(size)+PageSize {
			c.t.Fatalf("no room for %d with %d free", size, free)
		}
		if c.s.Free() != free {
			c.t.Fatalf("a refused value of %d took %d bytes", size, free-c.s.Free())
		}
		return 0, false
	}
	c.next++
	var sum int64
	for _, e := range list {
		if e.Len <= 0 || e.Offset < 0 || e.Offset+e.Len > c.s.Size() {
			c.t.Fatalf("value of %d has extent %+v", size, e)
		}
		for u := e.Offset / 32; u*32 < e.Offset+e.Len; u++ {
			if c.owner[u] != 0 {
				c.t.Fatalf("value %d of %d bytes gets byte %d of value %d", c.next, size, u*32, c.owner[u])
			}
			c.owner[u] = c.next
		}
		sum += e.Len
	}
	if sum != size {
		c.t.Fatalf("value of %d got %d bytes: %v", size, sum, list)
	}
	c.held[c.next] = list
	c.sizes[c.next] = size
	return c.next, true
}

func (c *checker) release(id int32) {
	for _, e := range c.held[id] {
		for u := e.Offset / 32; u*32 < e.Offset+e.Len; u++ {
			c.owner[u] = 0
		}
	}
	c.s.Release(c.held[id])
	delete(c.held, id)
	delete(c.sizes, id)
}

func TestSpace(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	c := newChecker(t, 6<<20+100)
	size := func() int64 {
		switch r.IntN(4) {
		case 0:
			return 28
		case 1:
			return r.Int64N(100_000)
		case 2:
			return 1<<20 + r.Int64N(2)*28
		}
		return r.Int64N(2 << 20)
	}
	for range 10_000 {
		if _, ok := c.alloc(size()); ok && r.IntN(3) > 0 {
			continue
		}
		ids := make([]int32, 0, len(c.held))
		for id := range c.held {
			ids = append(ids, id)
		}
		if len(ids) > 0 {
			slices.Sort(ids)
			c.release(ids[r.IntN(len(ids))])
		}
	}
	for id := range c.held {
		c.release(id)
	}
	if c.s.Free() != c.s.Size() || len(c.s.slabs) != 0 {
		t.Errorf("all is given back and %d of %d bytes are free, %d slabs", c.s.Free(), c.s.Size(), len(c.s.slabs))
	}
	if _, ok := c.alloc(c.s.Size()); !ok {
		t.Error("the whole space is not to be had")
	}
	if _, ok := c.alloc(1); ok {
		t.Error("a byte more than there is")
	}
}

// An exact fit of a value whose rest needs a new slab: the slab's page must not be one of the value's.
func TestTailNeedsAPage(t *testing.T) {
	c := newChecker(t, 2*PageSize)
	if _, ok := c.alloc(2*PageSize + 0); !ok {
		t.Fatal("two pages do not fit into two pages")
	}
	c = newChecker(t, 2*PageSize)
	if _, ok := c.alloc(PageSize + 28); !ok {
		t.Fatal("a page and a tail do not fit into two pages")
	}
	if _, ok := c.alloc(PageSize); ok {
		t.Fatal("three pages fit into two")
	}
	if _, ok := c.alloc(64); !ok {
		t.Fatal("the slab has no second slot")
	}
}

// TestFragmentation fills an arena with LMCache's sizes and metadata, evicts oldest first and at random, and counts how
// much of it is used and in how many pieces a value lies.
func TestFragmentation(t *testing.T) {
	const metadata = 28
	f := func(name string, random bool, sizes ...int64) {
		t.Helper()
		r := rand.New(rand.NewPCG(5, 6))
		s := NewSpace(252 << 20)
		type value struct {
			list []Extent
			size int64
		}
		var held []value
		var bytes, worst, pieces, values, cost int64
		for n := range 20_000 {
			size := sizes[r.IntN(len(sizes))]
			for _, size := range []int64{size, metadata} {
				list, ok := s.Alloc(size)
				for ; !ok; list, ok = s.Alloc(size) {
					i := 0
					if random {
						i = r.IntN(len(held))
					}
					s.Release(held[i].list)
					bytes -= held[i].size
					cost -= Cost(held[i].size)
					held = slices.Delete(held, i, i+1)
				}
				held = append(held, value{list: list, size: size})
				bytes += size
				cost += Cost(size)
				if size != metadata && n > 1000 {
					worst = max(worst, int64(len(list)))
					pieces += int64(len(list))
					values++
				}
			}
		}
		used := float64(bytes) / float64(s.Size())
		t.Logf("%-28s used %.3f  slots half empty %.4f  pieces a value: mean %.2f, most %d", name, used,
			float64(s.Size()-s.Free()-cost)/float64(s.Size()), float64(pieces)/float64(values), worst)
		if used < 0.80 {
			t.Errorf("%s: only %.3f of the arena holds values", name, used)
		}
	}
	f("1 MiB", false, 1<<20)
	f("1 MiB, random", true, 1<<20)
	f("1, 4, 16 MiB", false, 1<<20, 4<<20, 16<<20)
	f("1, 4, 16 MiB, random", true, 1<<20, 4<<20, 16<<20)
	f("1 MiB behind metadata, random", true, 1<<20+28)
	f("576 KiB, random", true, 576<<10)
	f("1.09 MB, 6.55 MB, random", true, 1_090_000, 6_553_600)
}

func BenchmarkAlloc(b *testing.B) {
	s := NewSpace(4 << 30)
	r := rand.New(rand.NewPCG(7, 8))
	var held [][]Extent
	sizes := []int64{28, 1 << 20, 4 << 20, 16 << 20}
	for b.Loop() {
		size := sizes[r.IntN(len(sizes))]
		list, ok := s.Alloc(size)
		for ; !ok; list, ok = s.Alloc(size) {
			i := r.IntN(len(held))
			s.Release(held[i])
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
		held = append(held, list)
	}
}
