package vllmsim

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// bench is a driver in a synctest bubble, where a minute takes no time.
type bench struct {
	*driver
	t *testing.T
}

func inBubble(t *testing.T, cfg Config, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg, err := cfg.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDriver(cfg, sinks{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		f(&bench{driver: d, t: t})
		if st, _ := d.stats(); st.Running+st.Waiting == 0 && st.BlocksHeld > 0 {
			t.Errorf("idle with %d blocks held", st.BlocksHeld)
		}
	})
}

// ask submits a prompt of n tokens named by label, for a reply of max tokens.
func (b *bench) ask(label uint64, n, max int) *choice {
	ids := engine.AppendTokens(nil, engine.TextOfTokens(label, n))
	c := &choice{seq: engine.NewSequence(ids, "", 0, engine.BlockTokens), notify: make(chan struct{}, 1)}
	c.seq.Owner = c
	c.seq.MaxTokens = max
	b.submit([]*choice{c})
	return c
}

func (b *bench) await(c *choice) *choice {
	for c.finish() == engine.Unfinished {
		<-c.notify
	}
	return c
}

func (b *bench) wantSeconds(what string, got time.Duration, want float64) {
	b.t.Helper()
	if math.Abs(got.Seconds()-want) > 1e-6 {
		b.t.Errorf("%s took %.6f s, want %.6f", what, got.Seconds(), want)
	}
}

// TestSpeedIsWallTime: a prefill takes its time by the engine's clock, and a part of that by the wall's.
func TestSpeedIsWallTime(t *testing.T) {
	model := engine.DefaultModel()
	cold := model.Prefill(15000, 0)
	for _, speed := range []float64{1, 20} {
		inBubble(t, Config{Speed: speed}, func(b *bench) {
			start := time.Now()
			q := b.await(b.ask(1, 15000, 1))
			b.wantSeconds("prefill", q.seq.Times().First-q.seq.Times().Arrived, cold)
			if wall := time.Since(start).Seconds(); math.Abs(wall-cold/speed) > 1e-3 {
				t.Errorf("at speed %g it took %.4f s of wall time, want %.4f", speed, wall, cold/speed)
			}
		})
	}
	inBubble(t, Config{Slowness: 2}, func(b *bench) {
		q := b.await(b.ask(1, 15000, 1))
		b.wantSeconds("prefill of a worker half as fast", q.seq.Times().First-q.seq.Times().Arrived, 2*cold)
	})
}

// TestSpeedChangesNoDecision: the simulated times of a mixed load are the same at any speed.
func TestSpeedChangesNoDecision(t *testing.T) {
	run := func(speed float64) (times []time.Duration) {
		inBubble(t, Config{KVTokens: 40000, Speed: speed}, func(b *bench) {
			var all []*choice
			for i := range 40 {
				all = append(all, b.ask(uint64(i%7), 100+i*131%6000, 20+i*17%200))
				time.Sleep(time.Duration(float64(80*time.Millisecond) / speed))
			}
			for _, c := range all {
				at := b.await(c).seq.Times()
				times = append(times, at.First.Round(time.Millisecond), at.Last.Round(time.Millisecond))
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
		c := b.ask(1, 16, 1000)
		start, events := time.Now(), 0
		for c.finish() == engine.Unfinished {
			<-c.notify
			events++
		}
		wall := time.Since(start)
		if most := int(wall/flushEvery) + 2; events > most || events < most/2 {
			t.Errorf("%d events in %v, want one in %v", events, wall, flushEvery)
		}
	})
}

// TestEveryTokenIsShown: at the speed of the wall each token is shown by itself.
func TestEveryTokenIsShown(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		c := b.ask(1, 16, 50)
		for want := 1; want <= 50; want++ {
			<-c.notify
			if got := c.tokens(); got != want {
				t.Fatalf("%d tokens shown, want %d", got, want)
			}
		}
		if c.finish() != engine.FinishLength {
			t.Errorf("ended by %q with its last token", c.finish())
		}
	})
}

func TestStallLosesTime(t *testing.T) {
	inBubble(t, Config{}, func(b *bench) {
		model := engine.DefaultModel()
		c := b.ask(1, 16, 11)
		time.Sleep(50 * time.Millisecond)
		b.freeze(true)
		n := c.tokens()
		time.Sleep(time.Minute)
		if got := c.tokens(); got != n {
			t.Errorf("%d tokens during a stall", got-n)
		}
		b.freeze(false)
		resumed := time.Now()
		b.await(c)
		if wall := time.Since(resumed); wall < 60*time.Millisecond || wall > 120*time.Millisecond { // 7 tokens are left
			t.Errorf("the rest took %v after the stall", wall)
		}
		at := c.seq.Times()
		b.wantSeconds("10 tokens, the stall not counted", at.Last-at.First, 10*(model.StepSeconds+model.DecodeSeconds))
	})
}

func TestCancelFreesAtOnce(t *testing.T) {
	inBubble(t, Config{KVTokens: 1040}, func(b *bench) {
		one, two := b.ask(1, 600, 100), b.ask(2, 600, 100)
		time.Sleep(100 * time.Millisecond)
		b.cancel([]*choice{one, two})
		if st, _ := b.stats(); st.Running+st.Waiting+st.BlocksHeld != 0 {
			t.Errorf("%d running, %d waiting, %d blocks held after cancel", st.Running, st.Waiting, st.BlocksHeld)
		}
		if b.await(one).finish() != engine.FinishAbort {
			t.Errorf("ended by %q, want abort", one.finish())
		}
		if c := b.await(b.ask(1, 600, 1)); c.cached.Load() == 0 {
			t.Error("nothing of the cancelled prompt is cached")
		}
	})
}

func TestCloseAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := Config{}.withDefaults()
		d, err := newDriver(cfg, sinks{})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{driver: d, t: t}
		c := b.ask(1, 16, 1000)
		var over sync.WaitGroup
		over.Go(func() { b.await(c) })
		time.Sleep(time.Second)
		b.close()
		over.Wait()
		late := b.await(b.ask(1, 16, 1))
		if c.finish() != engine.FinishAbort || late.finish() != engine.FinishAbort {
			t.Errorf("ended by %q and %q, want abort", c.finish(), late.finish())
		}
		if c.tokens() == 0 {
			t.Error("an aborted reply shows none of its tokens")
		}
	})
}
