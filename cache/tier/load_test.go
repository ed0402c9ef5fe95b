package tier

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestARestartUnderLoadKnowsEverything: what was read ahead is answered whatever Redis has to do.
func TestARestartUnderLoadKnowsEverything(t *testing.T) {
	r := startRedis(t)
	first, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	const n = 3000
	for i := range n {
		first.Set(fmt.Sprintf("ns:%d", i%3), fmt.Sprintf("key:%d", i), fmt.Appendf(nil, "value %d", i), time.Hour)
	}
	first.Set("ns:0", "forever", []byte("x"), 0)
	first.Set("ns:0", "gone", []byte("x"), time.Hour)
	first.Delete("ns:0", "gone")
	second, _ := open(t, Config{Redis: r.URL()})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if got, err := second.Load(ctx); got != n+1 || err != nil {
		t.Fatalf("%d values, %v; want %d", got, err, n+1)
	}
	var missed atomic.Int64
	var all sync.WaitGroup
	for w := range 100 {
		all.Go(func() {
			for i := w; i < n; i += 100 {
				if v, ok := second.Get(fmt.Sprintf("ns:%d", i%3), fmt.Sprintf("key:%d", i)); !ok || string(v) != fmt.Sprintf("value %d", i) {
					missed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if missed.Load() > 0 {
		t.Errorf("%d of %d are unknown", missed.Load(), n)
	}
	wantNone(t, second, "gone")
	if _, ok := second.Get("ns:0", "forever"); !ok {
		t.Error("a value without expiry is unknown")
	}
}

func TestLoadOfNothing(t *testing.T) {
	alone, _ := open(t, Config{})
	down, _ := open(t, Config{Redis: "unix://" + t.TempDir() + "/none"})
	if n, err := alone.Load(context.Background()); n != 0 || err != nil {
		t.Errorf("memory alone: %d, %v", n, err)
	}
	if n, err := down.Load(context.Background()); n != 0 || err == nil {
		t.Errorf("Redis down: %d, %v; want an error that says so", n, err)
	}
}

func TestKeysBothWays(t *testing.T) {
	const p = keys("warm*path:")
	for _, c := range [][2]string{{"", ""}, {"a", "b"}, {"a:b", "c:d"}, {"3:x", ""}} {
		if k, ok := p.id(p.key(id{c[0], c[1]})); !ok || k != (id{c[0], c[1]}) {
			t.Errorf("%q: %q %v", c, k, ok)
		}
	}
	for _, bad := range []string{"", "warm*path:", "warm*path:probe", "other:1:a:b", "warm*path:9:a:b", "warm*path:-1:a"} {
		if _, ok := p.id(bad); ok {
			t.Errorf("%q is taken for a key", bad)
		}
	}
	if got := p.pattern(); got != `warm\*path:*` {
		t.Errorf("the pattern is %s", got)
	}
}
