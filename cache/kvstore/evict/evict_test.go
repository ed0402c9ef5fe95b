package evict

import (
	"math/rand/v2"
	"testing"
)

type cache struct {
	t     testing.TB
	p     Policy[string]
	items map[string]*Item[string]
	most  int64
	bytes int64
}

func newCache(t testing.TB, policy string, most int64) *cache {
	t.Helper()
	p, err := New[string](policy)
	if err != nil {
		t.Fatal(err)
	}
	return &cache{t: t, p: p, items: map[string]*Item[string]{}, most: most}
}

// get reads a value of one byte, or puts it there.
func (c *cache) get(key string) (hit bool) {
	if i := c.items[key]; i != nil {
		c.p.Touch(i)
		return true
	}
	for c.bytes+1 > c.most {
		v := c.p.Victim(func(*Item[string]) bool { return true })
		if v == nil {
			c.t.Fatalf("no victim among %d items", len(c.items))
		}
		delete(c.items, v.Value)
		c.bytes -= v.Size
	}
	var hash uint64
	for _, b := range []byte(key) {
		hash = hash*31 + uint64(b)
	}
	i := &Item[string]{Value: key, Size: 1, Hash: hash}
	c.items[key] = i
	c.bytes++
	c.p.Add(i)
	return false
}

func TestPolicies(t *testing.T) {
	f := func(policy, reads, left string) {
		t.Helper()
		c := newCache(t, policy, 3)
		for _, k := range reads {
			c.get(string(k))
		}
		got := ""
		for k := 'a'; k <= 'z'; k++ {
			if c.items[string(k)] != nil {
				got += string(k)
			}
		}
		if got != left {
			t.Errorf("%s after %s: %s; want %s", policy, reads, got, left)
		}
	}
	f("lru", "abcad", "acd")
	f("fifo", "abcad", "bcd")
	f("lru", "abcabcd", "bcd")
	f("s3fifo", "abcd", "bcd")
	f("s3fifo", "aaabcdefg", "afg") // a scan leaves values with reads alone
	f("lru", "aaabcdefg", "efg")
}

func TestUnknownPolicy(t *testing.T) {
	if _, err := New[int]("lfu"); err == nil {
		t.Error("lfu is a policy")
	}
}

// The ghost recognises a returning item by its hash.
func TestGhost(t *testing.T) {
	c := newCache(t, "s3fifo", 10)
	for _, k := range "aaabbbcccdddeeefff" { // main needs items before the ghost remembers anything
		c.get(string(k))
	}
	for _, k := range "ghijklm" {
		c.get(string(k))
	}
	s := c.p.(*s3FIFO[string])
	if s.main.n == 0 || len(s.ghost.known) == 0 {
		t.Fatalf("main has %d items, ghost %d", s.main.n, len(s.ghost.known))
	}
	for k := 'g'; k <= 'm'; k++ {
		key := string(k)
		if c.items[key] == nil {
			before := s.main.n
			c.get(key)
			if i := c.items[key]; i.in != &s.main || s.main.n > before+1 {
				t.Errorf("%s came back and is not in main", key)
			}
			return
		}
	}
	t.Error("nothing was evicted")
}

// Random use under every policy: each victim is free, none is missed, and the bytes add up.
func TestVictimsAreFree(t *testing.T) {
	for _, name := range Names {
		p, err := New[int](name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		in, pinned := map[int]*Item[int]{}, map[int]bool{}
		free := func(i *Item[int]) bool { return !pinned[i.Value] }
		for n := range 20_000 {
			k := r.IntN(300)
			switch i := in[k]; {
			case i == nil:
				in[k] = &Item[int]{Value: k, Size: 1 + r.Int64N(100), Hash: uint64(k)}
				p.Add(in[k])
			case r.IntN(10) == 0:
				p.Remove(i)
				p.Remove(i) // a second call does no harm
				delete(in, k)
				delete(pinned, k)
			case r.IntN(3) == 0:
				pinned[k] = !pinned[k]
			default:
				p.Touch(i)
			}
			if n%3 != 0 {
				continue
			}
			unpinned := 0
			for k := range in {
				if !pinned[k] {
					unpinned++
				}
			}
			v := p.Victim(free)
			if (v == nil) != (unpinned == 0) {
				t.Fatalf("%s: victim %v of %d that may go", name, v, unpinned)
			}
			if v != nil {
				if in[v.Value] != v || pinned[v.Value] {
					t.Fatalf("%s: victim %d is pinned or unknown", name, v.Value)
				}
				delete(in, v.Value)
			}
		}
		for k := range pinned {
			delete(pinned, k)
		}
		for range in {
			if v := p.Victim(free); v == nil {
				t.Fatalf("%s: no victim among the rest", name)
			}
		}
		if v := p.Victim(free); v != nil {
			t.Fatalf("%s: a victim of none", name)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, name := range Names {
		b.Run(name, func(b *testing.B) {
			c := newCache(b, name, 5000)
			keys := make([]string, 20_000)
			for i := range keys {
				keys[i] = string([]byte{byte(i), byte(i >> 8)})
			}
			z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, uint64(len(keys)-1))
			b.ReportAllocs()
			for b.Loop() {
				c.get(keys[z.Uint64()])
			}
		})
	}
}
