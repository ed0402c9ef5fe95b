package tier

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// table runs the same steps on memory alone, with a Redis, and with one that is down.
func table(t *testing.T, f func(t *testing.T, s *Store)) {
	t.Run("memory", func(t *testing.T) {
		s, _ := open(t, Config{})
		f(t, s)
	})
	t.Run("redis", func(t *testing.T) {
		s, _ := open(t, Config{Redis: startRedis(t).URL(), Timeout: patient})
		f(t, s)
		if st := s.Stats().L2; st.Failures > 0 || st.Calls == 0 {
			t.Errorf("L2: %+v; want calls and no failures", st)
		}
	})
	t.Run("redis down", func(t *testing.T) {
		s, _ := open(t, Config{Redis: "unix://" + t.TempDir() + "/none"})
		f(t, s)
	})
}

func TestOperations(t *testing.T) {
	table(t, func(t *testing.T, s *Store) {
		wantNone(t, s, "a")
		s.Set("ns", "a", []byte("1"), time.Hour)
		want(t, s, "a", "1")
		if _, ok := s.Get("other", "a"); ok {
			t.Error("another namespace sees the value")
		}
		if now, set := s.SetIfAbsent("ns", "a", []byte("2"), 0); set || string(now) != "1" {
			t.Errorf("SetIfAbsent on a live value: %q, %v", now, set)
		}
		if !s.Touch("ns", "a", time.Minute) || s.Touch("ns", "b", time.Minute) {
			t.Error("Touch: want true for a value, false for none")
		}
		s.Delete("ns", "a")
		wantNone(t, s, "a")
		if s.Touch("ns", "a", time.Hour) {
			t.Error("Touch brought back what was deleted")
		}
		if now, set := s.SetIfAbsent("ns", "a", []byte("2"), 0); !set || string(now) != "2" {
			t.Errorf("SetIfAbsent after Delete: %q, %v", now, set)
		}
		want(t, s, "a", "2")
		s.Set("ns", "empty", nil, 0)
		want(t, s, "empty", "")
		binary := string([]byte{0, 255, '\n', 't', 0})
		s.Set("ns", binary, []byte(binary), 0)
		want(t, s, binary, binary)
	})
}

func TestCompareAndSwap(t *testing.T) {
	table(t, func(t *testing.T, s *Store) {
		f := func(want bool, old, new []byte) {
			t.Helper()
			if got := s.CompareAndSwap("ns", "k", old, new, time.Hour); got != want {
				t.Errorf("CompareAndSwap(%q, %q) = %v", old, new, got)
			}
		}
		f(false, []byte("a"), []byte("b"))
		f(false, []byte{}, []byte("b"))
		f(true, nil, []byte("a"))
		f(false, nil, []byte("b"))
		f(false, []byte("b"), []byte("c"))
		f(true, []byte("a"), []byte{})
		f(false, nil, []byte("c"))
		f(true, []byte{}, []byte("c"))
		want(t, s, "k", "c")
		s.Delete("ns", "k")
		f(false, []byte("c"), []byte("d"))
		f(true, nil, []byte("d"))
	})
}

func TestAdd(t *testing.T) {
	table(t, func(t *testing.T, s *Store) {
		f := func(want int64, ok bool, key string, delta int64) {
			t.Helper()
			if got, is := s.Add("ns", key, delta, time.Hour); got != want || is != ok {
				t.Errorf("Add(%q, %d) = %d, %v; want %d, %v", key, delta, got, is, want, ok)
			}
		}
		f(5, true, "n", 5)
		f(3, true, "n", -2)
		want(t, s, "n", "3")
		f(0, true, "zero", 0)
		f(math.MaxInt64, true, "big", math.MaxInt64) // a double would round it
		f(math.MaxInt64-1, true, "big", -1)
		f(0, false, "big", 2)
		want(t, s, "big", "9223372036854775806")
		f(math.MinInt64, true, "small", math.MinInt64)
		f(0, false, "small", -1)
		for _, word := range []string{"", "seven", "+1", " 1", "1 ", "01", "-0", "1.0", "0x1", "9223372036854775808"} {
			s.Set("ns", "word", []byte(word), 0)
			f(0, false, "word", 1)
			want(t, s, "word", word)
		}
		s.Delete("ns", "n")
		f(1, true, "n", 1)
	})
}

func TestTwoRouters(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	b, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	a.Set("ns", "k", []byte("1"), time.Hour)
	want(t, b, "k", "1")
	if now, set := b.SetIfAbsent("ns", "k", []byte("2"), time.Hour); set || string(now) != "1" {
		t.Errorf("b took a's key: %q, %v", now, set)
	}
	b.Set("ns", "k", []byte("3"), time.Hour)
	waittest.Until(t, "a sees b's value", func() bool { v, _ := a.Get("ns", "k"); return string(v) == "3" })
	a.Delete("ns", "k")
	wantNone(t, a, "k")
	if b.Touch("ns", "k", time.Hour) {
		t.Error("b touched what a deleted")
	}
	b.Set("ns", "k", []byte("4"), time.Hour)
	want(t, b, "k", "4")
	waittest.Until(t, "a sees b's new value", func() bool { v, _ := a.Get("ns", "k"); return string(v) == "4" })
	start := time.Now()
	a.Delete("ns", "k")
	waittest.Until(t, "b forgets", func() bool { _, ok := b.Get("ns", "k"); return !ok })
	t.Logf("b forgot what a deleted after %v", time.Since(start))
	var never []string
	for i := range 20 {
		key := fmt.Sprint("never there ", i)
		a.Delete("ns", key)
		never = append(never, a.l2.keys.key(id{"ns", key}))
	}
	if n := r.bare.Exists(context.Background(), never...).Val(); n > 1 { // of one, where the healer comes first
		t.Errorf("deleting 20 keys that nobody knew left %d tombstones", n)
	}
	if d := r.bare.PTTL(context.Background(), b.l2.keys.key(id{"ns", "k"})).Val(); d < 50*time.Minute || d > time.Hour {
		t.Errorf("the tombstone lives for %v; want what was left of the value's hour", d)
	}
}

// Whoever sets, one wins; whoever counts, nothing is lost.
func TestAtomicAmongRouters(t *testing.T) {
	r := startRedis(t)
	const routers, keys = 3, 200
	var all [routers]*Store
	for i := range all {
		all[i], _ = open(t, Config{Redis: r.URL(), Timeout: patient})
	}
	var wins, swaps [keys]atomic.Int32
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			me := []byte{byte('0' + i)}
			for k := range keys {
				key := fmt.Sprint(k)
				now, set := s.SetIfAbsent("ns", key, me, time.Hour)
				if set {
					wins[k].Add(1)
				}
				if string(now) != "swapped" && s.CompareAndSwap("ns", key, now, []byte("swapped"), time.Hour) {
					swaps[k].Add(1)
				}
				s.Add("ns", "sum", int64(k), time.Hour)
			}
		})
	}
	wg.Wait()
	for k := range keys {
		if wins[k].Load() != 1 {
			t.Errorf("key %d was set by %d", k, wins[k].Load())
		}
		if swaps[k].Load() != 1 {
			t.Errorf("key %d was swapped by %d", k, swaps[k].Load())
		}
	}
	if sum, _ := all[0].Add("ns", "sum", 0, 0); sum != routers*keys*(keys-1)/2 {
		t.Errorf("sum = %d; want %d", sum, routers*keys*(keys-1)/2)
	}
}

func TestTTLInRedis(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	s, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	left := func(key string) time.Duration {
		return r.bare.PTTL(context.Background(), s.l2.keys.key(id{"ns", key})).Val()
	}
	f := func(key string, least, most time.Duration) {
		t.Helper()
		if d := left(key); d < least || d > most {
			t.Errorf("%s lives for %v; want %v to %v", key, d, least, most)
		}
	}
	s.Set("ns", "set", nil, time.Minute)
	f("set", 50*time.Second, time.Minute)
	s.Set("ns", "ever", nil, 0)
	f("ever", -1, -1)
	s.Touch("ns", "ever", time.Minute)
	f("ever", 50*time.Second, time.Minute)
	s.Touch("ns", "ever", 0)
	f("ever", -1, -1)
	s.SetIfAbsent("ns", "absent", nil, time.Minute)
	f("absent", 50*time.Second, time.Minute)
	s.Add("ns", "n", 1, time.Minute)
	s.Add("ns", "n", 1, time.Hour)
	f("n", 50*time.Second, time.Minute)
	s.CompareAndSwap("ns", "n", []byte("2"), []byte("3"), time.Hour)
	f("n", 50*time.Minute, time.Hour)

	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	want(t, other, "n", "3")
	other.Each("ns", func(key string, _ []byte, expires time.Time) bool {
		if d := time.Until(expires); d < 50*time.Minute || d > time.Hour {
			t.Errorf("%s from Redis expires in %v; want its remaining hour", key, d)
		}
		return true
	})
	s.Set("ns", "short", nil, 2*time.Second)
	want(t, other, "short", "")
	waittest.Until(t, "it expires on both", func() bool {
		_, a := s.Get("ns", "short")
		_, b := other.Get("ns", "short")
		return !a && !b
	})
}
