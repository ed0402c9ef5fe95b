package engine

import (
	"math/rand/v2"
	"testing"
	"time"
)

// prove checks what must hold after every call:
//
//  1. a block's references are the sequences that list it, and the free queue holds those without any
//  2. a running sequence has blocks for what is computed and for its share of the step, a waiting one has none
//  3. what a sequence has entered is full, and the pool finds some block of that hash
//  4. the shares of a step fit into its budget, and not more sequences run than may
//  5. who replays all changes holds what the caches hold, copy by copy
//  6. no sequence has more tokens than it may, and none that has ended is still listed
func (s *simulation) prove() {
	s.t.Helper()
	refs := map[int32]int32{}
	for _, q := range s.sched.running {
		for _, i := range q.blocks {
			refs[i]++
		}
		if q.state != running || q.finish != Unfinished || q.left() <= 0 {
			s.t.Fatalf("state %d, %q, %d tokens left, and it runs", q.state, q.finish, q.left())
		}
		if need := q.blocksFor(q.done); len(q.blocks) < need {
			s.t.Fatalf("%d tokens are computed in %d blocks", q.done, len(q.blocks))
		}
		s.proveEntered(q)
	}
	for _, q := range s.sched.loading {
		for _, i := range q.blocks {
			refs[i]++
		}
		if q.state != loading || q.load.blocks < 1 || len(q.blocks) != q.blocksFor(q.length()) {
			s.t.Fatalf("state %d, %d blocks to load into %d, and it loads", q.state, q.load.blocks, len(q.blocks))
		}
	}
	for _, q := range s.sched.waiting {
		if q.state != waiting || len(q.blocks) > 0 {
			s.t.Fatalf("state %d with %d blocks, and it waits", q.state, len(q.blocks))
		}
	}
	queued := queueOf(s.t, s.sched.pool)
	for i := range s.sched.pool.blocks {
		if got, want := s.sched.pool.blocks[i].refs, refs[int32(i)]; got != want {
			s.t.Fatalf("block %d has %d references, %d sequences hold it", i, got, want)
		}
	}
	if len(queued)+len(refs) != s.sched.pool.usable() {
		s.t.Fatalf("%d blocks free and %d held of %d", len(queued), len(refs), s.sched.pool.usable())
	}
	if len(s.sched.running)+len(s.sched.loading) > s.cfg.MaxSeqs {
		s.t.Fatalf("%d sequences run", len(s.sched.running))
	}
	s.proveStep()
	s.proveView()
}

func (s *simulation) proveEntered(q *Sequence) {
	s.t.Helper()
	if q.entered > len(q.hashes) || q.entered > len(q.blocks) {
		s.t.Fatalf("%d blocks entered of %d hashes and %d blocks", q.entered, len(q.hashes), len(q.blocks))
	}
	for k := range q.entered {
		b := &s.sched.pool.blocks[q.blocks[k]]
		if _, ok := s.sched.pool.byHash[q.hashes[k]]; !ok || !b.full || b.hash != q.hashes[k] {
			s.t.Fatalf("block %d of a sequence is not found by its hash", k)
		}
	}
}

func (s *simulation) proveStep() {
	s.t.Helper()
	if !s.sched.step.active {
		return
	}
	sum := 0
	for _, sh := range s.sched.step.shares {
		sum += sh.n
		if sh.n < 1 {
			s.t.Fatalf("a share of %d tokens", sh.n)
		}
	}
	if sum < 1 || sum > s.cfg.MaxBatchedTokens {
		s.t.Fatalf("a step of %d tokens, budget %d", sum, s.cfg.MaxBatchedTokens)
	}
	if s.sched.step.end <= s.sched.clock || s.sched.step.end <= s.now {
		s.t.Fatalf("a step ends at %v, at %v after one that ended at %v", s.sched.step.end, s.now, s.sched.clock)
	}
}

// TestInvariants plays random calls against engines of which each is short of something.
func TestInvariants(t *testing.T) {
	var preemptions, cached, loaded, shared int64
	for _, cfg := range []Config{
		{KVTokens: 2000},
		{KVTokens: 4000, MaxBatchedTokens: 100},
		{KVTokens: 5000, MaxSeqs: 3, ShowEvery: 100 * time.Millisecond},
		{KVTokens: 3000, BlockTokens: 128},
		{KVTokens: 600, BlockTokens: 1, MaxModelLen: 500},
		{KVTokens: 2000, CPUTokens: 6000},
		{KVTokens: 2000, CPUTokens: 1000, Shared: NewTier(5000, 16), ShowEvery: 100 * time.Millisecond},
		{KVTokens: 4000, CPUTokens: 9000, ChunkTokens: 64, MaxSeqs: 3, CPUSeconds: 0.001},
		{KVTokens: 3000, Shared: NewTier(9000, 256), ChunkTokens: 256, MaxBatchedTokens: 100},
	} {
		for seed := range uint64(4) {
			st := playRandomly(t, cfg, rand.New(rand.NewPCG(seed, 11)))
			preemptions += st.Preemptions
			cached += st.CachedTokens
			loaded += st.CPUTokens
			shared += st.SharedTokens
		}
	}
	if preemptions == 0 || cached == 0 || loaded == 0 || shared == 0 {
		t.Errorf("%d preemptions, tokens: %d cached, %d from CPU tiers, %d shared: the calls try too little",
			preemptions, cached, loaded, shared)
	}
}

// playRandomly submits, cancels and advances at random, and proves the invariants on the way.
func playRandomly(t *testing.T, cfg Config, rng *rand.Rand) Stats {
	t.Helper()
	cfg.Changes = true
	s := simulate(t, cfg)
	var live, all []*Sequence
	for range 200 {
		switch rng.IntN(7) {
		case 0, 1:
			max := 1 + rng.IntN(min(200, s.cfg.MaxModelLen/2))
			prompt := 1 + rng.IntN(s.cfg.MaxModelLen-max)
			ids := AppendTokens(nil, TextOfTokens(uint64(rng.IntN(4)), prompt))
			q := NewSequence(ids, "", rng.Uint64(), s.cfg.BlockTokens)
			q.MaxTokens = max
			q.Recompute = rng.IntN(8) == 0
			s.submit(&q)
			live = append(live, &q)
			all = append(all, &q)
		case 2:
			if len(live) > 0 {
				k := rng.IntN(len(live))
				s.Cancel(live[k])
				live = append(live[:k], live[k+1:]...)
			}
		case 3:
			preempt := rng.IntN(2) == 0
			held := s.Stats().BlocksHeld
			if ok := s.ResetCache(preempt, true); ok != (preempt || held == 0) {
				t.Fatalf("reset with preempt %v: %v while %d blocks are held", preempt, ok, held)
			}
		case 4:
			s.to(s.clock + time.Duration(rng.IntN(300))*time.Millisecond)
		default:
			s.next()
		}
		s.prove()
	}
	for i := 0; s.next(); i++ {
		if i%32 == 0 {
			s.prove()
		}
	}
	generated := int64(0)
	for _, q := range all {
		generated += int64(q.OutputTokens())
		if q.Finish() == Unfinished {
			t.Fatalf("a sequence of %d tokens and up to %d never ended", q.PromptTokens(), q.MaxTokens)
		}
	}
	st := s.Stats()
	ended := st.Finished[FinishStop] + st.Finished[FinishLength]
	if st.GeneratedTokens != generated || ended != st.Latency.Count || st.BlocksHeld != 0 {
		t.Errorf("%d tokens counted of %d, %d ends of %d, %d blocks held",
			st.GeneratedTokens, generated, ended, st.Latency.Count, st.BlocksHeld)
	}
	return st
}

// TestRefusals: what could never run is refused, and leaves no trace.
func TestRefusals(t *testing.T) {
	s := simulate(t, Config{KVTokens: 1040})
	f := func(what string, prompt, max, block int, ok bool) {
		t.Helper()
		q := NewSequence(AppendTokens(nil, TextOfTokens(1, prompt)), "", 0, block)
		q.MaxTokens = max
		if err := s.Submit(s.clock, &q); (err == nil) != ok {
			t.Errorf("%s: %v", what, err)
		} else if ok {
			s.await(&q)
		} else if _, more := s.NextEvent(); more {
			t.Errorf("%s: something is to come", what)
		}
	}
	f("fits to the token", 1000, 24, 16, true)
	f("one too many", 1000, 25, 16, false)
	f("no reply", 10, 0, 16, false)
	f("no prompt", 0, 10, 16, false)
	f("blocks of another size", 10, 10, 128, false)
}
