package vllmsim

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// bench is an engine in a synctest bubble, where a minute takes no time.
type bench struct {
	*engine
	t *testing.T
}

func inBubble(t *testing.T, cfg Config, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg, err := cfg.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		e := newEngine(cfg)
		defer e.close()
		f(&bench{engine: e, t: t})
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.running)+len(e.waiting) > 0 {
			return
		}
		if n := len(queueOf(t, e.pool)); n != e.pool.usable() {
			t.Errorf("idle with %d of %d blocks free", n, e.pool.usable())
		}
	})
}

// newAsk is a prompt of n tokens named by label, for a reply of max tokens.
func newAsk(label uint64, n, max int) *sequence {
	q := newSequence(appendTokens(nil, TextOfTokens(label, n)), "", 0, BlockTokens)
	q.max, q.notify = max, make(chan struct{}, 1)
	return q
}

// ask submits newAsk.
func (b *bench) ask(label uint64, n, max int) *sequence {
	q := newAsk(label, n, max)
	b.submit([]*sequence{q})
	return q
}

func (b *bench) await(q *sequence) *sequence {
	for q.ended.Load() == 0 {
		<-q.notify
	}
	return q
}

func (b *bench) wantSeconds(what string, got time.Duration, want float64) {
	b.t.Helper()
	if math.Abs(got.Seconds()-want) > 1e-6 {
		b.t.Errorf("%s took %.6f s, want %.6f", what, got.Seconds(), want)
	}
}

func TestPrefillTime(t *testing.T) {
	const n = 15000
	cold := n*abi.PrefillSeconds + abi.ContextSeconds*n*n/2 // 1.229 s; the two chunks add up to it
	for _, speed := range []float64{1, 20} {
		inBubble(t, Config{Speed: speed, Slowness: 1}, func(b *bench) {
			start := time.Now()
			q := b.await(b.ask(1, n, 1))
			b.wantSeconds("prefill", q.first-q.arrived, cold)
			if wall := time.Since(start).Seconds(); math.Abs(wall-cold/speed) > 1e-3 {
				t.Errorf("at speed %g it took %.4f s of wall time, want %.4f", speed, wall, cold/speed)
			}
			again := b.await(b.ask(1, n, 1))
			if got, want := int(again.hit.Load()), (n-1)/16*16; got != want {
				t.Errorf("%d tokens cached, want %d", got, want)
			}
			b.wantSeconds("a cached prompt", again.first-again.arrived, stepSeconds)
		})
	}
	inBubble(t, Config{Slowness: 2}, func(b *bench) {
		q := b.await(b.ask(1, n, 1))
		b.wantSeconds("prefill of a worker half as fast", q.first-q.arrived, 2*cold)
	})
}

func TestDecodesAreBatched(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		var all []*sequence
		for i := range 8 {
			all = append(all, newAsk(uint64(i), 16, 101))
		}
		b.submit(all) // at once, or the first may start a step alone
		for _, q := range all {
			b.await(q)
			b.wantSeconds("100 tokens beside 7 others", q.last-q.first, 100*(stepSeconds+8*decodeSeconds))
		}
	})
}

// TestPrefillLeavesDecodesAlive: while a long prompt is prefilled in chunks, a running stream gets a token a chunk.
func TestPrefillLeavesDecodesAlive(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		chat := b.ask(1, 16, 1000)
		for chat.produced.Load() == 0 {
			<-chat.notify
		}
		long := b.ask(2, 5*8192, 1)
		before := chat.produced.Load()
		b.await(long)
		chunks := int32(6) // the decode takes a token of each chunk's budget, so the fifth leaves a rest
		if got := chat.produced.Load() - before; got < chunks || got > chunks+2 {
			t.Errorf("the stream got %d tokens during the prefill, want about %d", got, chunks)
		}
		b.cancel([]*sequence{chat})
	})
}

func TestBudgetIsSharedInOrder(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		first, second := b.ask(1, 8192, 1), b.ask(2, 4000, 1)
		b.await(second)
		if first.first >= second.first {
			t.Errorf("first token of the first at %v, of the second at %v", first.first, second.first)
		}
		b.wantSeconds("the second", second.first-second.arrived, prefillCost(8192, 0)+prefillCost(4000, 0))
	})
}

func TestFullCacheMakesRequestsWait(t *testing.T) {
	inBubble(t, Config{KVTokens: 1024 + 16}, func(b *bench) {
		a, c := b.ask(1, 600, 100), b.ask(2, 600, 10)
		time.Sleep(100 * time.Millisecond)
		if s := b.stats(); s.Running != 1 || s.Waiting != 1 {
			t.Errorf("%d running, %d waiting; want 1 and 1", s.Running, s.Waiting)
		}
		b.await(c)
		if c.admitted < a.last {
			t.Errorf("admitted at %v, before the other had ended at %v", c.admitted, a.last)
		}
		if s := b.stats(); s.Preemptions != 0 {
			t.Errorf("%d preemptions", s.Preemptions)
		}
	})
}

// TestPreemption: two that fit as prompts outgrow the cache; the later one gives way and ends all the same.
func TestPreemption(t *testing.T) {
	for _, speed := range []float64{1, 20} {
		inBubble(t, Config{KVTokens: 1024 + 16, Speed: speed}, func(b *bench) {
			a, c := b.ask(1, 480, 300), b.ask(2, 480, 300)
			b.await(a)
			b.await(c)
			if s := b.stats(); s.Preemptions == 0 || s.Generated != 600 || s.QueriedTokens != 960 {
				t.Errorf("%d preemptions, %d tokens, %d queried; want some, 600 and 960", s.Preemptions, s.Generated, s.QueriedTokens)
			}
			if c.preempt == 0 || a.preempt != 0 {
				t.Errorf("preempted %d and %d times, want none and some", a.preempt, c.preempt)
			}
		})
	}
}

// TestLRU: the prompt that was used longest ago is the one that goes, and its head is the last to go.
func TestLRU(t *testing.T) {
	inBubble(t, Config{KVTokens: 64*16 + 16}, func(b *bench) {
		for _, label := range []uint64{1, 2, 3, 1} { // 3*20 of 64 blocks
			b.await(b.ask(label, 320, 1))
		}
		// 60 blocks hold the three; the second 1 computes its last block anew, in a fresh one. So 4 takes 3 fresh ones, the
		// stale last block of 1 and the last 16 of 2; the lookups of 1 and 3 below take one of 2's remaining 4 each.
		b.await(b.ask(4, 320, 1))
		for _, c := range []struct {
			label uint64
			want  int32
		}{{1, 304}, {3, 304}, {2, 32}} {
			q := b.await(b.ask(c.label, 320, 1))
			if got := q.hit.Load(); got != c.want {
				t.Errorf("prompt %d: %d tokens cached, want %d", c.label, got, c.want)
			}
		}
	})
}

// TestSpeedChangesNoDecision: the simulated times of a mixed load are the same at any speed.
func TestSpeedChangesNoDecision(t *testing.T) {
	run := func(speed float64) (times []time.Duration) {
		inBubble(t, Config{KVTokens: 40000, Speed: speed}, func(b *bench) {
			var all []*sequence
			for i := range 40 {
				all = append(all, b.ask(uint64(i%7), 100+i*131%6000, 20+i*17%200))
				time.Sleep(time.Duration(float64(80*time.Millisecond) / speed))
			}
			for _, q := range all {
				b.await(q)
				times = append(times, q.first.Round(time.Millisecond), q.last.Round(time.Millisecond))
			}
		})
		return times
	}
	slow, fast := run(1), run(20)
	for i := range slow {
		if d := slow[i] - fast[i]; d > 2*time.Millisecond || d < -2*time.Millisecond {
			t.Fatalf("time %d: %v at speed 1, %v at speed 20", i, slow[i], fast[i])
		}
	}
}

func TestEventsAreCoalesced(t *testing.T) {
	inBubble(t, Config{Speed: 20}, func(b *bench) {
		q := b.ask(1, 16, 1000)
		start, events := time.Now(), 0
		for q.ended.Load() == 0 {
			<-q.notify
			events++
		}
		wall := time.Since(start)
		if most := int(wall/flushEvery) + 2; events > most || events < most/2 {
			t.Errorf("%d events in %v, want one in %v", events, wall, flushEvery)
		}
	})
}

func TestCancelFreesAtOnce(t *testing.T) {
	inBubble(t, Config{KVTokens: 1040}, func(b *bench) {
		a, c := b.ask(1, 600, 100), b.ask(2, 600, 100)
		time.Sleep(100 * time.Millisecond)
		b.cancel([]*sequence{a, c})
		if s := b.stats(); s.Running+s.Waiting+s.BlocksHeld != 0 {
			t.Errorf("%d running, %d waiting, %d blocks held after cancel", s.Running, s.Waiting, s.BlocksHeld)
		}
		if q := b.await(b.ask(1, 600, 1)); q.hit.Load() == 0 {
			t.Error("nothing of the cancelled prompt is cached")
		}
	})
}

func TestStallLosesTime(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		q := b.ask(1, 16, 11)
		time.Sleep(50 * time.Millisecond)
		b.freeze(true)
		n := q.produced.Load()
		time.Sleep(time.Minute)
		if got := q.produced.Load(); got != n {
			t.Errorf("%d tokens during a stall", got-n)
		}
		b.freeze(false)
		resumed := time.Now()
		b.await(q)
		if wall := time.Since(resumed); wall < 60*time.Millisecond || wall > 120*time.Millisecond { // 7 tokens are left
			t.Errorf("the rest took %v after the stall", wall)
		}
		b.wantSeconds("10 tokens, the stall not counted", q.last-q.first, 10*(stepSeconds+decodeSeconds))
	})
}

func TestCloseAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := Config{}.withDefaults()
		b := &bench{engine: newEngine(cfg), t: t}
		q := b.ask(1, 16, 1000)
		var over sync.WaitGroup
		over.Go(func() { b.await(q) })
		time.Sleep(time.Second)
		b.close()
		over.Wait()
		late := b.await(b.ask(1, 16, 1))
		if finish(q.ended.Load()) != finishAbort || finish(late.ended.Load()) != finishAbort {
			t.Errorf("ended by %d and %d, want abort", q.ended.Load(), late.ended.Load())
		}
	})
}
