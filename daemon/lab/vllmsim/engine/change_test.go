package engine

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// place is where a view believes a block.
type place struct {
	medium Medium
	hash   uint64
}

// view is what a reader of all changes believes: the number of copies of each block.
type view map[place]int

// apply plays changes, and fails if a parent is unknown or something is removed that is not there.
func (v view) apply(t *testing.T, changes []Change) {
	t.Helper()
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case Cleared:
			clear(v)
		case Removed:
			for _, h := range c.Hashes {
				at := place{c.Medium, h}
				if v[at]--; v[at] < 0 {
					t.Fatalf("%x is removed from medium %d and was not there", h, c.Medium)
				}
				if v[at] == 0 {
					delete(v, at)
				}
			}
		case Stored:
			if c.HasParent && c.Medium == OnGPU && v[place{OnGPU, c.Parent}] == 0 {
				t.Fatalf("%x is stored behind %x, which is not there", c.Hashes, c.Parent)
			}
			for _, h := range c.Hashes {
				v[place{c.Medium, h}]++
			}
		}
	}
}

// proveView holds a view of all changes, those of the present step too, to what pool and CPU tier hold.
func (s *simulation) proveView() {
	s.t.Helper()
	for _, b := range s.TakeBatches() {
		if len(b.Changes) == 0 || b.At > s.sched.clock {
			s.t.Fatalf("a batch of %d changes at %v, the last step ended at %v", len(b.Changes), b.At, s.sched.clock)
		}
		s.view.apply(s.t, b.Changes)
	}
	now := maps.Clone(s.view)
	now.apply(s.t, s.sched.pool.log.open)
	held := view{}
	for i := range s.sched.pool.blocks {
		if b := &s.sched.pool.blocks[i]; b.full {
			held[place{OnGPU, b.hash}]++
		}
	}
	if s.sched.cpu != nil {
		for h := range s.sched.cpu.at {
			held[place{OnCPU, h}]++
		}
	}
	if !maps.Equal(now, held) {
		s.t.Fatalf("the changes give %d blocks, the caches hold %d, or others", len(now), len(held))
	}
}

// TestChangesOfAChain: tokens, parents and salt determine where blocks stand, so a reader finds each block's whole
// prefix.
func TestChangesOfAChain(t *testing.T) {
	s := simulate(t, Config{KVTokens: 4000, MaxBatchedTokens: 50, CPUTokens: 8000, ChunkTokens: 32, Changes: true})
	ids := AppendTokens(nil, TextOfTokens(7, 200))
	q := NewSequence(ids, "pepper", 1, BlockTokens)
	q.MaxTokens = 60
	s.submit(&q)
	s.await(&q)
	all := append([]uint32(nil), ids...)
	for i := range q.OutputTokens() {
		all = append(all, q.Reply.Token(i))
	}
	ends := map[place]int{} // tokens up to the end of a block
	stored := map[Medium]int{}
	for _, b := range s.TakeBatches() {
		for _, c := range b.Changes {
			from := 0
			if c.HasParent {
				end, ok := ends[place{c.Medium, c.Parent}]
				if !ok {
					t.Fatalf("%+v: unknown parent", c)
				}
				from = end
			}
			size := len(c.Tokens) / len(c.Hashes)
			if want := [...]int{OnGPU: BlockTokens, OnCPU: 32}[c.Medium]; size != want || c.Salt != "pepper" {
				t.Errorf("%d tokens a block on medium %d, salt %q", size, c.Medium, c.Salt)
			}
			for i, id := range c.Tokens {
				if all[from+i] != id {
					t.Fatalf("token %d is %d in a change and %d in the prompt", from+i, id, all[from+i])
				}
			}
			for i, h := range c.Hashes {
				ends[place{c.Medium, h}] = from + (i+1)*size
			}
			stored[c.Medium] += len(c.Tokens)
		}
	}
	// The last token is never fed back, so 259 tokens were computed.
	if stored[OnGPU] != 256 || stored[OnCPU] != 256 {
		t.Errorf("%v tokens stored of 259", stored)
	}
}

// TestLoadIsFasterThanPrefill: what the GPU has forgotten comes from a tier in the tier's time, counts as cached, and
// does not keep another sequence from computing.
func TestLoadIsFasterThanPrefill(t *testing.T) {
	shared := NewTier(100000, BlockTokens)
	f := func(what string, cfg Config, first bool, seconds float64) {
		t.Helper()
		cfg.KVTokens = 20000
		cfg.MaxModelLen = 20000
		s := simulate(t, cfg)
		if first {
			s.await(s.ask(1, 12001, 1))
		}
		s.await(s.ask(uint64(len(what)), 19983, 1)) // takes every block
		q := s.ask(1, 12001, 1)
		s.await(q)
		if q.CachedTokens() != 12000 {
			t.Errorf("%s: %d tokens cached", what, q.CachedTokens())
		}
		if took := (q.Times().First - q.Times().Arrived).Seconds(); took < seconds || took > seconds+0.03 {
			t.Errorf("%s: first token after %.3f s; the load alone takes %.3f", what, took, seconds)
		}
		if st := s.Stats(); st.CPUTokens+st.SharedTokens != 12000 {
			t.Errorf("%s: %d tokens loaded from the CPU tier and %d from the shared one", what, st.CPUTokens, st.SharedTokens)
		}
	}
	f("cpu", Config{CPUTokens: 40000}, true, 0.1)
	f("cpu, slower", Config{CPUTokens: 40000, CPUSeconds: 0.001}, true, 12)
	f("shared", Config{Shared: shared}, true, 0.3)
	f("of another worker", Config{Shared: shared}, false, 0.3)
}

// TestLoadsQueue: two loads at once share the way from the tier, so the second one takes twice as long.
func TestLoadsQueue(t *testing.T) {
	s := simulate(t, Config{KVTokens: 40000, CPUTokens: 100000, MaxModelLen: 39000})
	s.await(s.ask(1, 10001, 1))
	s.await(s.ask(2, 10001, 1))
	s.await(s.ask(3, 39000-1, 1))
	if !s.ResetCache(false, false) {
		t.Fatal("no reset of an idle engine")
	}
	a, b := s.ask(1, 10001, 1), s.ask(2, 10001, 1)
	s.await(a)
	s.await(b)
	for i, q := range []*Sequence{a, b} {
		load := float64(i+1) * 10000 * cpuSeconds
		took := (q.Times().First - q.Times().Arrived).Seconds()
		if q.CachedTokens() != 10000 || took < load || took > load+0.03 {
			t.Errorf("load %d: %d tokens, first token after %.3f s, the loads alone take %.3f", i, q.CachedTokens(), took, load)
		}
	}
}

// TestTierIsLRU: a tier holds what fits and drops what was not touched for longest.
func TestTierIsLRU(t *testing.T) {
	tier := NewTier(3*16+15, 16)
	for h := range uint64(3) {
		if fresh, dropped := tier.put(h, 0); !fresh || dropped != nil {
			t.Errorf("chunk %d of 3: new %v, dropped %d", h, fresh, dropped)
		}
	}
	tier.touch(0)
	if fresh, dropped := tier.put(1, 0); fresh || dropped != nil {
		t.Error("a chunk that is there was stored again")
	}
	if _, dropped := tier.put(9, 0); len(dropped) != 1 || dropped[0] != 2 || tier.Len() != 3 {
		t.Errorf("dropped %d of %d chunks, want chunk 2", dropped, tier.Len())
	}
}

// TestTierAgainstAList: over random puts and touches, and a clear between, a tier holds what a plain list would, in its
// order.
func TestTierAgainstAList(t *testing.T) {
	const size = 8
	tier, list := NewTier(size*16, 16), []uint64{} // the most recent first
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		h := r.Uint64N(2 * size)
		at := slices.Index(list, h)
		if at >= 0 {
			list = slices.Insert(slices.Delete(list, at, at+1), 0, h)
		}
		if i%3 == 0 {
			if _, ok := tier.touch(h); ok != (at >= 0) {
				t.Fatalf("step %d: touch of chunk %d says %v", i, h, at < 0)
			}
		} else {
			var want []uint64
			if at < 0 && len(list) == size {
				want, list = slices.Clone(list[size-1:]), list[:size-1]
			}
			if at < 0 {
				list = slices.Insert(list, 0, h)
			}
			if fresh, dropped := tier.put(h, 0); fresh != (at < 0) || !slices.Equal(dropped, want) {
				t.Fatalf("step %d: put of chunk %d is new %v, dropped %d; want %v, %d", i, h, fresh, dropped, at < 0, want)
			}
		}
		if i%5000 == 4999 {
			tier.Clear()
			list = list[:0]
		}
		if got := tier.hashes(); !slices.Equal(got, list) || tier.Len() != len(list) {
			t.Fatalf("step %d: %d, %d of them; want %d", i, got, tier.Len(), list)
		}
	}
}
