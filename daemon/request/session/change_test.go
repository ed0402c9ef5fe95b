package session

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTwoRoutersAgreeOnTheFirst(t *testing.T) {
	store := newMemory()
	a, b := On(store, Config{}), On(store, Config{})
	now := time.Now()
	if got, _ := a.Bind(keyed("k"), "w1", now); got != "w1" {
		t.Fatal(got)
	}
	if got, _ := b.Bind(keyed("k"), "w2", now); got != "w1" {
		t.Fatalf("the second router binds to %s", got)
	}
	if got := a.Rebind(keyed("k"), "w1", "w3", now); got != "w3" {
		t.Fatalf("moved to %s", got)
	}
	if got := b.Rebind(keyed("k"), "w1", "w4", now); got != "w3" {
		t.Fatalf("the second move leads to %s; want where the first went", got)
	}
	if got := b.Rebind(keyed("none"), "w1", "w4", now); got != "" {
		t.Fatalf("an unknown key was moved to %s", got)
	}
	if n := a.Counts().Rebound[Key] + b.Counts().Rebound[Key]; n != 1 {
		t.Fatalf("%d moves were counted", n)
	}
	if got, _ := a.Bind(opened("x"), "w", now); got != "w" || where(a, opened("x")) != "unknown" {
		t.Fatal("Bind opened a session")
	}
}

func TestAMovedSessionIsNoLongerTheWorkersOwn(t *testing.T) {
	b := On(newMemory(), Config{})
	now := time.Now()
	first, _ := b.Open(opened("id"), Binding{Worker: "w1", Minted: true, WorkerSession: "there"}, now)
	if got := b.Rebind(opened("id"), "w1", "w2", now); got != "w2" {
		t.Fatal(got)
	}
	moved, s := b.Find(opened("id"), now)
	if s != Found || moved.Minted || moved.WorkerSession != "" || moved.Upstream("id") != "id" || !moved.Expires.Equal(first.Expires) {
		t.Fatalf("moved: %+v, %v; want w2, nothing of w1, the same end", moved, s)
	}
}

func TestALostSessionStaysLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := On(newMemory(), Config{Life: time.Minute})
		_, _ = b.Open(opened("id"), Binding{Worker: "w1", Minted: true}, time.Now())
		if !b.Lose(opened("id"), time.Now()) || b.Close(opened("id"), time.Now()) {
			t.Fatal("want it lost, and then nothing to close")
		}
		if got := b.Rebind(opened("id"), "w1", "w2", time.Now()); got != "" {
			t.Fatalf("moved to %s", got)
		}
		time.Sleep(50 * time.Second)
		if got := where(b, opened("id")); got != "lost" {
			t.Fatal(got)
		}
		time.Sleep(grace + 10*time.Second)
		if got := where(b, opened("id")); got != "unknown" {
			t.Fatalf("%s; want its mark gone with its time", got)
		}
		b.Bind(keyed("k"), "w1", time.Now())
		if !b.Lose(keyed("k"), time.Now()) || where(b, keyed("k")) != "unknown" || b.Close(keyed("k"), time.Now()) {
			t.Fatal("a key that is lost opens anew")
		}
		if c := b.Counts(); c.Lost[Opened] != 1 || c.Lost[Key] != 1 || c.Closed != [kinds]uint64{} {
			t.Fatalf("counts %+v", c)
		}
	})
}

func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	store := newMemory()
	b := On(store, Config{})
	for _, n := range []Name{opened("id"), keyed("id")} {
		store.Set(b.ns[n.Kind], key(n), []byte("\x63future"), time.Hour)
		if got := where(b, n); got != "unknown" {
			t.Fatal(got)
		}
	}
	if _, err := b.Open(opened("id"), Binding{Worker: "w1"}, time.Now()); err != nil || where(b, opened("id")) != "w1" {
		t.Fatalf("not opened over it: %v", err)
	}
	if got, _ := b.Bind(keyed("id"), "w1", time.Now()); got != "w1" || where(b, keyed("id")) != "w1" {
		t.Fatal("not bound over it")
	}
}

func TestPages(t *testing.T) {
	b := On(newMemory(), Config{})
	now := time.Now()
	for i := range 5 {
		_, _ = b.Open(opened(fmt.Sprint(i)), Binding{Worker: fmt.Sprint("w", i%2)}, now)
	}
	b.Bind(keyed("k"), "w0", now)
	b.Close(opened("4"), now)
	if live := b.Live(now); live["w0"] != [kinds]int{Opened: 2, Key: 1} || live["w1"] != [kinds]int{Opened: 2} {
		t.Fatalf("live %v", live)
	}
	if all := b.List("", 100, now); len(all) != 5 {
		t.Fatalf("%d in all; want 4 opened, 1 key", len(all))
	}
	if one := b.List("w1", 100, now); len(one) != 2 || one[0].Worker != "w1" || len(one[0].Fingerprint) != fingerprint {
		t.Fatalf("w1 has %+v", one)
	}
	if some := b.List("", 3, now); len(some) != 3 {
		t.Fatalf("%d; want the limit", len(some))
	}
	if got := b.List("w0", 100, now.Add(time.Hour)); len(got) != 1 || got[0].Kind != Key.String() {
		t.Fatalf("after the end of the opened ones: %+v", got)
	}
	if Fingerprint(opened("1")) == Fingerprint(opened("2")) {
		t.Fatal("fingerprints are alike")
	}
}

// A move to where it is already is none: the worker still holds what it held.
func TestAMoveToItself(t *testing.T) {
	b := On(newMemory(), Config{})
	now := time.Now()
	_, _ = b.Open(opened("id"), Binding{Worker: "w1", Minted: true, Heard: true, WorkerSession: "there"}, now)
	if at := b.Rebind(opened("id"), "w1", "w1", now); at != "w1" {
		t.Errorf("moved to %q", at)
	}
	if got, s := b.Peek(opened("id"), now); s != Found || !got.Minted || !got.Heard || got.WorkerSession != "there" {
		t.Errorf("%+v, %v; want it as it was opened", got, s)
	}
	if n := b.Counts().Rebound[Opened]; n != 0 {
		t.Errorf("%d moves were counted", n)
	}
}

// contended is a store in which others change a value so often before a swap of ours meets it.
type contended struct {
	*memory
	others int
}

func (c *contended) Replace(ns, key string, old, new []byte, ttl time.Duration) bool {
	if c.others > 0 {
		c.others--
		touched := append(bytes.Clone(old), 0) // what a newer router has added
		c.memory.Replace(ns, key, old, touched, ttl)
	}
	return c.memory.Replace(ns, key, old, new, ttl)
}

func TestAMoveAgainstOthersChanges(t *testing.T) {
	f := func(others int, want string) {
		t.Helper()
		b := On(&contended{memory: newMemory(), others: others}, Config{})
		now := time.Now()
		b.Bind(keyed("k"), "w1", now)
		if at := b.Rebind(keyed("k"), "w1", "w2", now); at != want || where(b, keyed("k")) != want {
			t.Errorf("after %d changes by others: %q, found at %s; want %s", others, at, where(b, keyed("k")), want)
		}
	}
	f(0, "w2")
	f(1, "w2")
	f(7, "w2")
	f(8, "w1") // it is given up
}

// Routers do what they like with a few sessions; a session never has two workers that its users could both get, and
// every end is counted once.
func TestHammerOfTwoRouters(t *testing.T) {
	store := newMemory()
	routers := [2]*Bindings{On(store, Config{}), On(store, Config{})}
	var opens, ends atomic.Uint64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			b := routers[g%2]
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for range 3000 {
				n, w := opened(fmt.Sprint(r.IntN(5))), fmt.Sprint("w", r.IntN(3))
				switch r.IntN(6) {
				case 0:
					if _, err := b.Open(n, Binding{Worker: w}, time.Now()); err == nil {
						opens.Add(1)
					}
				case 1:
					if b.Close(n, time.Now()) {
						ends.Add(1)
					}
				case 2:
					if b.Lose(n, time.Now()) {
						ends.Add(1)
					}
				case 3:
					b.Rebind(n, w, "w9", time.Now())
				case 4:
					n.Kind = Key
					if got, _ := b.Bind(n, w, time.Now()); got != where(b, n) {
						t.Errorf("bound to %s, found at %s", got, where(b, n))
					}
				default:
					b.Find(n, time.Now())
				}
			}
		})
	}
	wg.Wait()
	live := uint64(0)
	for _, n := range routers[0].Live(time.Now()) {
		live += uint64(n[Opened])
	}
	if opens.Load() != ends.Load()+live {
		t.Fatalf("%d opened, %d ended, %d live", opens.Load(), ends.Load(), live)
	}
}

func BenchmarkFind(b *testing.B) {
	s := On(newMemory(), Config{})
	_, _ = s.Open(opened("5693c464-e905-4cb9-b9c7-67397aeb9186"), Binding{Worker: "http://10.0.0.1:8000", Minted: true}, time.Now())
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, st := s.Find(opened("5693c464-e905-4cb9-b9c7-67397aeb9186"), now); st != Found {
			b.Fatal(st)
		}
	}
}
