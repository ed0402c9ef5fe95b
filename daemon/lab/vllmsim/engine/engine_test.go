package engine

import (
	"math"
	"testing"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

func (s *simulation) wantSeconds(what string, got time.Duration, want float64) {
	s.t.Helper()
	if math.Abs(got.Seconds()-want) > 1e-6 {
		s.t.Errorf("%s took %.6f s, want %.6f", what, got.Seconds(), want)
	}
}

// ttft is the time from arrival to the first token.
func ttft(q *Sequence) time.Duration { return q.times.First - q.times.Arrived }

// decode is the time from the first token to the last.
func decode(q *Sequence) time.Duration { return q.times.Last - q.times.First }

var model = DefaultModel()

func TestPrefillTime(t *testing.T) {
	const n = 15000
	cold := n*abi.PrefillSeconds + abi.ContextSeconds*n*n/2 // 1.229 s; the two chunks add up to it
	s := simulate(t, Config{})
	q := s.ask(1, n, 1)
	s.await(q)
	s.wantSeconds("prefill", ttft(q), cold)
	again := s.ask(1, n, 1)
	s.await(again)
	if got, want := again.CachedTokens(), (n-1)/16*16; got != want {
		t.Errorf("%d tokens cached, want %d", got, want)
	}
	s.wantSeconds("a cached prompt", ttft(again), model.StepSeconds)
	slow := simulate(t, Config{Model: Model{Slowness: 2}})
	q = slow.ask(1, n, 1)
	slow.await(q)
	slow.wantSeconds("prefill of a worker half as fast", ttft(q), 2*cold)
	other := simulate(t, Config{Model: Model{PrefillSeconds: 1e-3, Slowness: 1}})
	q = other.ask(1, n, 1)
	other.await(q)
	other.wantSeconds("prefill of another model", ttft(q), n*1e-3)
}

func TestDecodesAreBatched(t *testing.T) {
	s := simulate(t, Config{})
	var all []*Sequence
	for i := range 8 {
		all = append(all, s.ask(uint64(i), 16, 101))
	}
	s.await(all...)
	for _, q := range all {
		s.wantSeconds("100 tokens beside 7 others", decode(q), 100*(model.StepSeconds+8*model.DecodeSeconds))
	}
}

// TestPrefillLeavesDecodesAlive: while a long prompt is prefilled in chunks, a running stream gets a token a chunk.
func TestPrefillLeavesDecodesAlive(t *testing.T) {
	s := simulate(t, Config{})
	chat := s.ask(1, 16, 1000)
	for chat.OutputTokens() == 0 {
		s.next()
	}
	long := s.ask(2, 5*8192, 1)
	before := chat.OutputTokens()
	s.await(long)
	const chunks = 6 // the decode takes a token of each chunk's budget, so the fifth leaves a rest
	if got := chat.OutputTokens() - before; got < chunks || got > chunks+2 {
		t.Errorf("the stream got %d tokens during the prefill, want about %d", got, chunks)
	}
	s.Cancel(chat)
}

func TestBudgetIsSharedInOrder(t *testing.T) {
	s := simulate(t, Config{})
	first, second := s.ask(1, 8192, 1), s.ask(2, 4000, 1)
	s.await(second)
	if first.times.First >= second.times.First {
		t.Errorf("first token of the first at %v, of the second at %v", first.times.First, second.times.First)
	}
	s.wantSeconds("the second", ttft(second), model.Prefill(8192, 0)+model.Prefill(4000, 0))
}

func TestFullCacheMakesRequestsWait(t *testing.T) {
	s := simulate(t, Config{KVTokens: 1024 + 16})
	a, c := s.ask(1, 600, 100), s.ask(2, 600, 10)
	s.to(100 * time.Millisecond)
	if st := s.Stats(); st.Running != 1 || st.Waiting != 1 {
		t.Errorf("%d running, %d waiting; want 1 and 1", st.Running, st.Waiting)
	}
	s.await(c)
	if c.times.Admitted < a.times.Last {
		t.Errorf("admitted at %v, before the other had ended at %v", c.times.Admitted, a.times.Last)
	}
	if st := s.Stats(); st.Preemptions != 0 {
		t.Errorf("%d preemptions", st.Preemptions)
	}
}

func TestMaxSeqsMakesRequestsWait(t *testing.T) {
	s := simulate(t, Config{MaxSeqs: 2})
	all := []*Sequence{s.ask(1, 16, 10), s.ask(2, 16, 10), s.ask(3, 16, 10)}
	s.to(20 * time.Millisecond)
	if st := s.Stats(); st.Running != 2 || st.Waiting != 1 {
		t.Errorf("%d running, %d waiting; want 2 and 1", st.Running, st.Waiting)
	}
	s.await(all...)
	if all[2].times.Admitted < all[0].times.Last {
		t.Errorf("the third was admitted at %v, before %v", all[2].times.Admitted, all[0].times.Last)
	}
}

// TestPreemption: two that fit as prompts outgrow the cache; the later one gives way and ends all the same.
func TestPreemption(t *testing.T) {
	for _, every := range []time.Duration{0, 200 * time.Millisecond} {
		s := simulate(t, Config{KVTokens: 1024 + 16, ShowEvery: every})
		a, c := s.ask(1, 480, 300), s.ask(2, 480, 300)
		s.await(a, c)
		if st := s.Stats(); st.Preemptions == 0 || st.GeneratedTokens != 600 || st.QueriedTokens != 960 {
			t.Errorf("%d preemptions, %d tokens, %d queried; want some, 600 and 960",
				st.Preemptions, st.GeneratedTokens, st.QueriedTokens)
		}
		if c.Preemptions() == 0 || a.Preemptions() != 0 {
			t.Errorf("preempted %d and %d times, want none and some", a.Preemptions(), c.Preemptions())
		}
		admitted, preempted := 0, 0
		for _, k := range s.kinds(c) {
			switch k {
			case Admitted:
				admitted++
			case Preempted:
				preempted++
			}
		}
		if preempted != c.Preemptions() || admitted != preempted+1 {
			t.Errorf("%d events of admission and %d of preemption for %d", admitted, preempted, c.Preemptions())
		}
	}
}

// TestLRU: the prompt that was used longest ago is the one that goes, and its head is the last to go.
func TestLRU(t *testing.T) {
	s := simulate(t, Config{KVTokens: 64*16 + 16})
	for _, label := range []uint64{1, 2, 3, 1} { // 3*20 of 64 blocks
		s.await(s.ask(label, 320, 1))
	}
	// 60 blocks hold the three; the second 1 computes its last block anew, in a fresh one. So 4 takes 3 fresh ones, the
	// stale last block of 1 and the last 16 of 2; the lookups of 1 and 3 below take one of 2's remaining 4 each.
	s.await(s.ask(4, 320, 1))
	f := func(label uint64, want int) {
		t.Helper()
		q := s.ask(label, 320, 1)
		s.await(q)
		if got := q.CachedTokens(); got != want {
			t.Errorf("prompt %d: %d tokens cached, want %d", label, got, want)
		}
	}
	f(1, 304)
	f(3, 304)
	f(2, 32)
}

func TestRecomputeReadsNothing(t *testing.T) {
	s := simulate(t, Config{})
	s.await(s.ask(1, 320, 1))
	anew := newAsk(1, 320, 1)
	anew.Recompute = true
	s.submit(anew)
	s.await(anew)
	if anew.CachedTokens() != 0 {
		t.Errorf("%d tokens read from the cache", anew.CachedTokens())
	}
}

// TestTokensAreGathered: with ShowEvery a stream has at most one event in so much simulated time.
func TestTokensAreGathered(t *testing.T) {
	const every = 200 * time.Millisecond
	s := simulate(t, Config{ShowEvery: every})
	q := s.ask(1, 16, 1000)
	calls := 0
	for q.Finish() == Unfinished {
		s.next()
		calls++
	}
	if most := int(s.clock/every) + 3; calls > most || calls < most/2 {
		t.Errorf("%d calls in %v, want one in %v", calls, s.clock, every)
	}
	shown, last := 0, time.Duration(-every)
	for _, ev := range s.events {
		if ev.Kind == Tokens {
			shown++
			if ev.At-last < every-20*time.Millisecond { // steps end when they end
				t.Errorf("tokens at %v and %v", last, ev.At)
			}
			last = ev.At
		}
	}
	if shown > calls {
		t.Errorf("%d events of kind Tokens in %d calls", shown, calls)
	}
}

func TestCancelFreesAtOnce(t *testing.T) {
	s := simulate(t, Config{KVTokens: 1040})
	a, c := s.ask(1, 600, 100), s.ask(2, 600, 100)
	s.to(100 * time.Millisecond)
	told := s.Cancel(a, c, a)
	if len(told) != 2 || told[0].Kind != Finished || told[0].Seq != a || told[1].At != s.clock {
		t.Errorf("events %v, want two ends", told)
	}
	if a.Finish() != FinishAbort || c.Finish() != FinishAbort {
		t.Errorf("ended by %q and %q", a.Finish(), c.Finish())
	}
	if st := s.Stats(); st.Running+st.Waiting+st.BlocksHeld != 0 || st.KVUsage() != 0 {
		t.Errorf("%d running, %d waiting, %d blocks held after Cancel", st.Running, st.Waiting, st.BlocksHeld)
	}
	q := s.ask(1, 600, 1)
	s.await(q)
	if q.CachedTokens() == 0 {
		t.Error("nothing of the cancelled prompt is cached")
	}
	if told := s.Cancel(q); len(told) != 0 {
		t.Errorf("one that had ended was cancelled: %v", told)
	}
}

func TestCancelAll(t *testing.T) {
	s := simulate(t, Config{MaxSeqs: 1})
	a, c := s.ask(1, 16, 1000), s.ask(2, 16, 1000)
	s.to(time.Second)
	if told := s.CancelAll(); len(told) != 2 {
		t.Errorf("%d events, want an end of each", len(told))
	}
	if a.Finish() != FinishAbort || c.Finish() != FinishAbort || a.OutputTokens() == 0 {
		t.Errorf("ended by %q and %q", a.Finish(), c.Finish())
	}
	if _, ok := s.NextEvent(); ok && s.next() && s.next() {
		t.Error("a cancelled engine goes on")
	}
}

func TestConfigIsChecked(t *testing.T) {
	f := func(cfg Config, ok bool) {
		t.Helper()
		if _, err := New(cfg); (err == nil) != ok {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	f(Config{}, true)
	f(Config{KVTokens: 16}, false)
	f(Config{KVTokens: 32}, true)
	f(Config{MaxSeqs: -1}, false)
	f(Config{Model: Model{Slowness: -1}}, false)
	f(Config{BlockTokens: 128, KVTokens: 255}, false)
	c, err := Config{KVTokens: 1040}.Complete()
	if err != nil || c.MaxModelLen != 1024 || c.Model != model {
		t.Errorf("completed to %+v, %v", c, err)
	}
}

// TestSums holds the sums against a load whose figures are known.
func TestSums(t *testing.T) {
	s := simulate(t, Config{})
	for range 2 {
		s.await(s.ask(1, 4000, 11))
	}
	st := s.Stats()
	f := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	f("prompt tokens", float64(st.PromptTokens), 8000)
	f("queried", float64(st.QueriedTokens), 8000)
	f("cached", float64(st.CachedTokens), 3984)
	f("computed", float64(st.ComputedTokens), 4016)
	f("generated", float64(st.GeneratedTokens), 22)
	f("steps", float64(st.Steps), 22)
	f("ended by length", float64(st.Finished[FinishLength]), 2)
	f("first tokens", float64(st.TTFT.Count), 2)
	f("prefill seconds", st.PrefillSeconds, model.Prefill(4000, 0)+model.Prefill(16, 3984))
	f("seconds to the first tokens", st.TTFT.Sum, model.Prefill(4000, 0)+model.StepSeconds)
	f("seconds a token", st.PerToken.Sum, 2*(model.StepSeconds+model.DecodeSeconds))
	f("between tokens", float64(st.InterToken.Count), 20)
	sum := int64(0)
	for _, n := range st.Latency.Buckets {
		sum += n
	}
	f("buckets", float64(sum), 2)
}

// BenchmarkStep32 is one decode step of 32 sequences: what a simulated 15 ms costs.
func BenchmarkStep32(b *testing.B) {
	var e *Engine
	fill := func() {
		e, _ = New(Config{})
		for i := range 32 {
			q := newAsk(uint64(i), 100, 1<<30)
			e.sched.waiting = append(e.sched.waiting, q)
		}
		e.sched.startStep(0)
	}
	fill()
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		if i%10000 == 0 { // before the cache is full
			b.StopTimer()
			fill()
			b.StartTimer()
		}
		e.journal.clear()
		e.sched.endStep()
		e.sched.startStep(e.sched.clock)
	}
}
