package tier

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// locally makes a view of s and runs it until the test's end.
func locally(t *testing.T, s *Store, keys, bytes int) *Local {
	t.Helper()
	l := s.Local(keys, bytes)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return l
}

// TestLocalFloodWithAHungRedis: 60,000 calls in the middle of choices while Redis hangs ask it nothing that counts, and leave the
// breaker closed for sessions.
func TestLocalFloodWithAHungRedis(t *testing.T) {
	r := startRedis(t)
	s, err := New(Config{Redis: r.URL()}) // not run: its healer would find out by itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := locally(t, s, 100_000, 16<<20)
	r.Signal(syscall.SIGSTOP)
	defer r.Signal(syscall.SIGCONT)
	began := time.Now()
	for i := range 20_000 {
		key := fmt.Sprint("k", i)
		if _, ok := l.Get("mine", key); ok {
			t.Fatal("a value from nowhere")
		}
		if e := l.CompareAndSwap("mine", key, nil, []byte("v"), 0); e != 0 {
			t.Fatalf("CompareAndSwap: %d", e)
		}
		if n, e := l.Add("mine", "n", 1, 0); n != int64(i+1) || e != 0 {
			t.Fatalf("Add: %d, %d", n, e)
		}
	}
	t.Logf("60,000 calls took %v", time.Since(began))
	if st := s.Stats().L2; st.Calls != 0 || st.Failures != 0 || st.Open {
		t.Errorf("%d calls, %d failed, open %v; want none of it", st.Calls, st.Failures, st.Open)
	}
	if len(l.wanted) > wantedMost {
		t.Errorf("%d questions wait", len(l.wanted))
	}
}

// TestLocalIsTold: what one router's strategy writes reaches the other's, and what memory does not hold is there at a later call.
func TestLocalIsTold(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	a, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	b, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	la, lb := locally(t, a, 100, 1<<20), locally(t, b, 100, 1<<20)
	if e := la.CompareAndSwap("mine", "k", nil, []byte("from a"), time.Minute); e != 0 {
		t.Fatal(e)
	}
	waittest.Until(t, "the other router has it", func() bool { v, _ := lb.Get("mine", "k"); return string(v) == "from a" })
	if e := lb.CompareAndSwap("mine", "k", []byte("from a"), []byte("from b"), time.Minute); e != 0 {
		t.Fatal(e)
	}
	waittest.Until(t, "it comes back", func() bool { v, _ := la.Get("mine", "k"); return string(v) == "from b" })

	for _, l := range []*Local{la, lb} { // both at once: one of them stands in the end, on both
		if e := l.CompareAndSwap("mine", "both", nil, fmt.Append(nil, l == la), time.Minute); e != 0 {
			t.Fatal(e)
		}
	}
	waittest.Until(t, "both agree", func() bool {
		x, _ := la.Get("mine", "both")
		y, _ := lb.Get("mine", "both")
		return string(x) == string(y) && a.Stats().L2.Owing == 0 && b.Stats().L2.Owing == 0
	})
}

// TestLocalQuota: keys and bytes of a namespace are bounded, each on its own, and room comes back as keys expire.
func TestLocalQuota(t *testing.T) {
	t.Parallel()
	s, _ := open(t, Config{})
	l := locally(t, s, 10, 8<<10)
	put := func(ns, key string, n int, ttl time.Duration) int32 {
		return l.CompareAndSwap(ns, key, nil, make([]byte, n), ttl)
	}
	for i := range 10 {
		if e := put("many", fmt.Sprint(i), 1, 2*time.Second); e != 0 {
			t.Fatalf("key %d: %d", i, e)
		}
	}
	if e := put("many", "more", 1, 0); e != abi.ErrLimit {
		t.Errorf("an 11th key: %d; want ErrLimit", e)
	}
	if _, e := l.Add("many", "counter", 1, 0); e != abi.ErrLimit {
		t.Errorf("a counter as 11th key: %d; want ErrLimit", e)
	}
	if e := put("large", "k", 9<<10, 0); e != abi.ErrLimit {
		t.Errorf("9 KiB of 8: %d; want ErrLimit", e)
	}
	if e := put("large", "k", 4<<10, 0); e != 0 {
		t.Errorf("4 KiB of 8: %d", e)
	}
	if e := l.CompareAndSwap("large", "k", make([]byte, 4<<10), make([]byte, 9<<10), 0); e != abi.ErrLimit {
		t.Errorf("4 KiB that become 9: %d; want ErrLimit", e)
	}
	if e := put("large", "k", 1, 0); e != abi.ErrConflict {
		t.Errorf("a key that is there: %d; want ErrConflict", e)
	}
	waittest.Until(t, "room, as keys expire", func() bool { return put("many", "more", 1, 0) == 0 })
}

// What strategies ask is no sign of Redis's health, and is not asked of what Redis is owed. What they write gives way.
func TestLocalCountsForNothing(t *testing.T) {
	r := startRedis(t)
	s := notRun(t, Config{Redis: r.URL(), Timeout: patient})
	l := s.Local(100, 1<<20)
	s.Set("mine", "k", []byte("1"), time.Hour)
	s.l1.delete(id{"mine", "k"}, s.now())
	calls := s.Stats().L2.Calls
	l.fetch(t.Context(), id{"mine", "k"})
	if v, ok := l.Get("mine", "k"); !ok || string(v) != "1" {
		t.Errorf("%q, %v; want what was fetched", v, ok)
	}
	if st := s.Stats().L2; st.Calls != calls {
		t.Errorf("%d calls were counted", st.Calls-calls)
	}
	r.Kill()
	l.fetch(t.Context(), id{"mine", "other"})
	if st := s.Stats().L2; st.Calls != calls || st.Failures != 0 {
		t.Errorf("%d calls were counted, %d failures", st.Calls-calls, st.Failures)
	}
	l.CompareAndSwap("mine", "swapped", nil, []byte("1"), time.Hour)
	l.Add("mine", "n", 1, time.Hour)
	for _, key := range []string{"swapped", "n"} {
		if owes := s.l1.read(id{"mine", key}, s.now(), 0).owes; owes != oweReplace {
			t.Errorf("%s owes %v; want what gives way", key, owes)
		}
		s.l1.find(id{"mine", key}, s.now()).checked = doubt
		if l.Get("mine", key); len(l.wanted) != 0 {
			t.Errorf("Redis is asked for %s, which it is owed", key)
		}
	}
}
