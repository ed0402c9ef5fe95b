package session

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// filled returns the counts that FillLive gives of workers.
func filled(b *Bindings, workers ...string) map[string]uint32 {
	got := map[string]uint32{}
	b.FillLive(len(workers), func(i int) string { return workers[i] }, func(i int, live uint32) { got[workers[i]] = live })
	return got
}

// recounted returns the same by a walk over all bindings, without those of no session.
func recounted(b *Bindings, workers ...string) map[string]uint32 {
	want := map[string]uint32{}
	live := b.Live(time.Now())
	for _, w := range workers {
		want[w] = uint32(live[w][Opened] + live[w][Key])
	}
	return want
}

func TestEachChangeCountsItself(t *testing.T) {
	store := newMemory()
	b, other := On(store, Config{}), On(store, Config{})
	now := time.Now()
	f := func(what string, change func(), a, c uint32) {
		t.Helper()
		change()
		if got := filled(b, "a", "c"); got["a"] != a || got["c"] != c {
			t.Errorf("%s: a has %d and c %d; want %d and %d", what, got["a"], got["c"], a, c)
		}
	}
	open := func(id, worker string, minted bool) {
		_, _ = b.Open(opened(id), Binding{Worker: worker, Minted: minted}, now)
	}
	f("nothing", func() {}, 0, 0)
	f("open", func() { open("1", "a", true) }, 1, 0)
	f("the worker answers it again", func() { open("1", "a", true) }, 1, 0)
	f("another worker claims the id", func() { open("1", "c", true) }, 1, 0)
	f("bind", func() { b.Bind(keyed("k"), "a", now) }, 2, 0)
	f("bound already", func() { b.Bind(keyed("k"), "c", now) }, 2, 0)
	f("keep", func() { b.Keep(keyed("l"), "c", now) }, 2, 1)
	f("a response is no session", func() { b.Bind(answers("r"), "a", now) }, 2, 1)
	f("rebind", func() { b.Rebind(keyed("k"), "a", "c", now) }, 1, 2)
	f("rebound already", func() { b.Rebind(keyed("k"), "a", "c", now) }, 1, 2)
	f("a response moves", func() { b.Rebind(answers("r"), "a", "c", now) }, 1, 2)
	f("nothing to move", func() { b.Rebind(keyed("none"), "a", "c", now) }, 1, 2)
	f("lose", func() { b.Lose(opened("1"), now) }, 0, 2)
	f("lost already", func() { b.Close(opened("1"), now) }, 0, 2)
	f("open over the mark", func() { open("1", "a", false) }, 1, 2)
	f("close a key", func() { b.Close(keyed("k"), now) }, 1, 1)
	f("close a response", func() { b.Close(answers("r"), now) }, 1, 1)
	f("another router binds", func() { other.Bind(keyed("o"), "c", now) }, 1, 1)
	f("counted again", func() { b.live.replace(b.Live(now)) }, 1, 2)
	f("another router closes", func() { other.Close(keyed("o"), now); other.Close(keyed("l"), now) }, 1, 2)
	f("and here nothing is left", func() { b.Close(keyed("o"), now) }, 1, 2)
	f("counted again", func() { b.live.replace(b.Live(now)) }, 1, 0)
	if len(b.live.byWorker) != 1 {
		t.Errorf("%v is kept; want no worker without a session", b.live.byWorker)
	}
}

// A move that another router made first is counted by nobody here.
func TestALostRaceOfRebindCountsNothing(t *testing.T) {
	store := newMemory()
	b := On(store, Config{})
	now := time.Now()
	b.Bind(keyed("k"), "a", now)
	b.store = racing{store, func() { On(store, Config{}).Rebind(keyed("k"), "a", "d", now) }}
	if at := b.Rebind(keyed("k"), "a", "c", now); at != "d" || b.Counts().Rebound[Key] != 0 {
		t.Errorf("at %s, %d moves counted; want d and none", at, b.Counts().Rebound[Key])
	}
	if got := filled(b, "a", "c"); got["a"] != 1 || got["c"] != 0 {
		t.Errorf("counts %v; want a's as before", got)
	}
	b.store = racing{store, func() { On(store, Config{}).Close(keyed("k"), now) }}
	if at := b.Rebind(keyed("k"), "d", "c", now); at != "" {
		t.Errorf("at %s; want it ended", at)
	}
}

// racing is a store in which another router is first.
type racing struct {
	*memory
	first func()
}

func (r racing) Replace(ns, key string, old, new []byte, ttl time.Duration) bool {
	r.first()
	return r.memory.Replace(ns, key, old, new, ttl)
}

func TestRunFindsWhatExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := On(newMemory(), Config{Life: time.Minute, TTL: 2 * time.Minute})
		ctx, stop := context.WithCancel(t.Context())
		go b.Run(ctx)
		_, _ = b.Open(opened("1"), Binding{Worker: "w"}, time.Now())
		b.Bind(keyed("used"), "w", time.Now())
		b.Bind(keyed("left"), "w", time.Now())
		f := func(after time.Duration, want uint32) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := filled(b, "w")["w"]; got != want {
				t.Fatalf("%d sessions; want %d", got, want)
			}
		}
		f(0, 3)
		f(58*time.Second, 3)
		f(4*time.Second, 2) // the opened one
		b.Find(keyed("used"), time.Now())
		f(time.Minute, 1)
		f(time.Minute+2*time.Second, 0)
		if len(b.live.byWorker) != 0 {
			t.Errorf("%v is kept", b.live.byWorker)
		}
		stop()
		synctest.Wait()
		b.Bind(keyed("after"), "w", time.Now())
		f(time.Hour, 1) // nobody counts again
	})
}

// As long as nothing expires and one router works, the counts are those of a walk after each step.
func TestCountsAgreeWithAWalk(t *testing.T) {
	b := On(newMemory(), Config{})
	r := rand.New(rand.NewPCG(1, 2))
	workers := []string{"w0", "w1", "w2", "w3"}
	any := func() string { return workers[r.IntN(len(workers))] }
	for step := range 5000 {
		n := Name{Kind: Kind(r.IntN(int(kinds))), ID: fmt.Sprint(r.IntN(20))}
		now := time.Now()
		switch r.IntN(6) {
		case 0:
			_, _ = b.Open(n, Binding{Worker: any(), Minted: r.IntN(2) == 0}, now)
		case 1:
			b.Bind(n, any(), now)
		case 2:
			b.Keep(n, any(), now)
		case 3:
			b.Rebind(n, any(), any(), now)
		case 4:
			b.Close(n, now)
		case 5:
			b.Lose(n, now)
		}
		if got, want := filled(b, workers...), recounted(b, workers...); !maps.Equal(got, want) {
			t.Fatalf("step %d: %v; a walk finds %v", step, got, want)
		}
	}
}

func TestHammerOfTheCounts(t *testing.T) {
	b := On(newMemory(), Config{})
	ctx, stop := context.WithCancel(t.Context())
	var wg, run sync.WaitGroup
	run.Go(func() { b.Run(ctx) })
	workers := []string{"w0", "w1", "w2"}
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(g)))
			for range 2000 {
				n, w := Name{Kind: Kind(r.IntN(2)), ID: fmt.Sprint(r.IntN(5))}, workers[r.IntN(3)]
				switch r.IntN(5) {
				case 0:
					_, _ = b.Open(n, Binding{Worker: w}, time.Now())
				case 1:
					b.Bind(n, w, time.Now())
				case 2:
					b.Rebind(n, w, workers[r.IntN(3)], time.Now())
				case 3:
					b.Close(n, time.Now())
				default:
					for _, live := range filled(b, workers...) {
						if live > 20 {
							t.Errorf("%d sessions on a worker; there are 10 names, and 4 changes at once", live)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	stop()
	run.Wait()
	b.live.replace(b.Live(time.Now()))
	if got, want := filled(b, workers...), recounted(b, workers...); !maps.Equal(got, want) {
		t.Fatalf("%v; a walk finds %v", got, want)
	}
}

func TestFillLiveTakesNoMemory(t *testing.T) {
	b := On(newMemory(), Config{})
	b.Bind(keyed("k"), "w", time.Now())
	rows := make([]uint32, 100)
	if n := testing.AllocsPerRun(100, func() {
		b.FillLive(len(rows), func(int) string { return "w" }, func(i int, live uint32) { rows[i] = live })
	}); n != 0 || rows[99] != 1 {
		t.Fatalf("%v allocations, %d sessions", n, rows[99])
	}
}

func BenchmarkFillLive(b *testing.B) {
	s := On(newMemory(), Config{})
	var workers [1000]string
	for i := range workers {
		workers[i] = fmt.Sprintf("http://10.0.%d.%d:8000", i/256, i%256)
		s.Bind(keyed(fmt.Sprint(i)), workers[i], time.Now())
	}
	var rows [1000]uint32
	b.ReportAllocs()
	for b.Loop() {
		s.FillLive(len(rows), func(i int) string { return workers[i] }, func(i int, live uint32) { rows[i] = live })
	}
}
