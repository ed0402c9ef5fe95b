package host

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

func benchPick(b *testing.B, wasm []byte) {
	s := load(b, newHost(b, Config{}), wasm, Options{})
	for _, n := range []int{16, 256} {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			f := frame(n, n/2)
			if r := s.Pick(f); r.Fallback != "" {
				b.Fatalf("%+v", r)
			}
			b.ReportAllocs()
			var fuel int64
			for b.Loop() {
				fuel = s.Pick(f).Fuel
			}
			b.ReportMetric(float64(fuel), "fuel/op")
		})
	}
}

// BenchmarkPick is the floor: the push of the frame, the call, the order. The smallest module there is.
func BenchmarkPick(b *testing.B) { benchPick(b, wat(b, "tiny")) }

// BenchmarkPickGo is the same with a Go guest that reads one field of each row.
func BenchmarkPickGo(b *testing.B) { benchPick(b, goGuest(b)) }

// BenchmarkPickParallel shows how picks scale: compare -cpu=1,2.
func BenchmarkPickParallel(b *testing.B) {
	s := load(b, newHost(b, Config{}), goGuest(b), Options{})
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		f := frame(16, 3)
		for pb.Next() {
			s.Pick(f)
		}
	})
	if n := s.Stats().Fallbacks["busy"]; n > 0 {
		b.ReportMetric(float64(n)/float64(b.N), "busy/op")
	}
}

// BenchmarkPickAllocating has a guest allocate 1 KiB a pick. It reports what its instances hold at the end. Run it for
// 10 million picks.
func BenchmarkPickAllocating(b *testing.B) {
	s := load(b, newHost(b, Config{}), goGuest(b), Options{Values: map[string]string{"allocate": "true"}})
	f := frame(4, 1)
	for b.Loop() {
		if r := s.Pick(f); r.Row != 1 {
			b.Fatalf("got %+v: %s", r, s.Stats().LastError)
		}
	}
	st := s.Stats()
	b.ReportMetric(float64(st.MemoryBytes)/float64(st.Instances), "B/instance")
}

// BenchmarkPickOversubscribed has eight times as many goroutines as processors: how often is every instance taken?
func BenchmarkPickOversubscribed(b *testing.B) {
	s := load(b, newHost(b, Config{}), goGuest(b), Options{})
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		f := frame(16, 3)
		for pb.Next() {
			s.Pick(f)
		}
	})
	b.ReportMetric(float64(s.Stats().Fallbacks["busy"])/float64(b.N), "busy/op")
}

// untilFailure runs one failing pick on a fresh instance each time; only the pick is timed.
func untilFailure(b *testing.B, wasm []byte, reason string) {
	s := load(b, newHost(b, Config{Slots: 1, QuarantineAfter: 1 << 30}), wasm, Options{})
	f := frame(8, 5)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for s.Stats().Instances == 0 {
			s.wake.ring()
		}
		b.StartTimer()
		if r := s.Pick(f); r.Row != 5 || r.Fallback != reason {
			b.Fatalf("%+v: %s", r, s.Stats().LastError)
		}
	}
}

// BenchmarkTrapToFallback is a pick whose module traps at once: target 0.1 ms.
func BenchmarkTrapToFallback(b *testing.B) { untilFailure(b, wat(b, "trap"), "trap") }

// BenchmarkFault is a pick of each faulty module with the limits that a strategy has by default, until the fallback has
// answered: target 5 ms. The middle one is held to it: a machine that runs something else makes any of them longer.
func BenchmarkFault(b *testing.B) {
	for _, name := range []string{"loop", "recursion", "stack", "grow", "flood", "denormals", "branches", "chase", "straight",
		"sqrt", "indirect", "trap", "pointers", "order", "index", "hostcalls", "kvs", "logs", "frame_shrinks"} {
		b.Run(name, func(b *testing.B) {
			kv := &store{m: map[string]string{}, n: map[string]int64{}, most: 10_000}
			s := load(b, newHost(b, Config{Slots: 1, QuarantineAfter: 1 << 30, KV: kv}), wat(b, name), Options{Allow: []string{"kv"}})
			f := frame(100, 5)
			took := make([]time.Duration, b.N)
			for i := range took {
				for s.Stats().Instances == 0 {
					s.wake.ring()
					runtime.Gosched()
				}
				began := time.Now()
				f.Began = began
				if r := s.Pick(f); r.Row < 0 || len(r.Order) != len(f.Rows) {
					b.Fatalf("%+v: %s", r, s.Stats().LastError)
				}
				took[i] = time.Since(began)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
			b.ReportMetric(float64(took[len(took)*9/10]), "p90-ns")
		})
	}
}

// BenchmarkRunaway is a pick that is stopped by its fuel: target 2 ms.
func BenchmarkRunaway(b *testing.B) {
	for _, name := range []string{"loop", "recursion", "flood", "straight", "sqrt", "hostcalls", "indirect"} {
		b.Run(name, func(b *testing.B) { untilFailure(b, wat(b, name), "fuel") })
	}
	for _, name := range []string{"grow", "stack"} {
		b.Run(name, func(b *testing.B) { untilFailure(b, wat(b, name), "memory") })
	}
}

func benchStart(b *testing.B, dir string) {
	wasm := goGuest(b)
	b.ResetTimer()
	for range b.N {
		h, err := New(ctx, Config{CacheDir: dir, Slots: 1})
		if err != nil {
			b.Fatal(err)
		}
		s, err := h.Load(ctx, "guest", wasm, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s.Close(ctx)
		_ = h.Close(ctx)
		b.StartTimer()
	}
}

// BenchmarkColdStart loads a Go guest without a cache: target 0.8 s.
func BenchmarkColdStart(b *testing.B) { benchStart(b, "") }

// BenchmarkWarmStart loads it from the cache: target 0.1 s.
func BenchmarkWarmStart(b *testing.B) {
	dir := b.TempDir()
	h := newHost(b, Config{CacheDir: dir, Slots: 1})
	load(b, h, goGuest(b), Options{})
	benchStart(b, dir)
}
