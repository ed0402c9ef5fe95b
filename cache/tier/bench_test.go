package tier

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const benchKeys = 10_000

var binding = []byte(`{"worker":"10.0.0.17:8000","opened":1790000000,"expires":1790003600}`)

func names() []string {
	keys := make([]string, benchKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)
	}
	return keys
}

func BenchmarkMemory(b *testing.B) {
	s, keys := memoryOnly(b, 0), names()
	for _, k := range keys {
		s.Set("session", k, binding, time.Hour)
	}
	run := func(name string, f func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f(i)
			}
		})
		b.Run(name+"-parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					f(i)
				}
			})
		})
	}
	run("get-hit", func(i int) { s.Get("session", keys[i%benchKeys]) })
	run("get-miss", func(i int) { s.Get("session", "none") })
	run("set", func(i int) { s.Set("session", keys[i%benchKeys], binding, time.Hour) })
	run("touch", func(i int) { s.Touch("session", keys[i%benchKeys], time.Hour) })
	var shards [16]*Store // what sharding would give
	for i := range shards {
		shards[i] = memoryOnly(b, 4<<20)
	}
	for i, k := range keys {
		shards[i%16].Set("session", k, binding, time.Hour)
	}
	run("16-shards-get-hit", func(i int) { shards[i%16].Get("session", keys[i%benchKeys]) })
	var n int
	b.Run("set-evicting", func(b *testing.B) {
		small := memoryOnly(b, 1<<20)
		b.ReportAllocs()
		for ; b.Loop(); n++ {
			small.Set("session", keys[n%benchKeys], binding, time.Hour)
		}
	})
}

// BenchmarkEach lists 100,000 values and reports how long a Get takes meanwhile.
func BenchmarkEach(b *testing.B) {
	s := memoryOnly(b, 256<<20)
	for i := range 100_000 {
		s.Set("session", fmt.Sprint(i), binding, time.Hour)
	}
	var took []time.Duration
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			start := time.Now()
			s.Get("session", "7")
			took = append(took, time.Since(start))
			time.Sleep(50 * time.Microsecond)
		}
	}()
	for b.Loop() {
		s.Each("session", func(string, []byte, time.Time) bool { return true })
	}
	cancel()
	<-done
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100]), "get-p99-ns")
	b.ReportMetric(float64(took[len(took)*999/1000]), "get-p999-ns")
}

// BenchmarkRedis puts every operation beside the same trip by the client alone.
func BenchmarkRedis(b *testing.B) {
	r := startRedis(b)
	s, _ := open(b, Config{Redis: r.URL(), Timeout: patient})
	keys, ctx := names(), context.Background()
	run := func(name string, f func(key string)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f(keys[i%benchKeys])
			}
		})
	}
	run("bare-set", func(key string) { r.bare.Set(ctx, key, binding, time.Hour) })
	run("set", func(key string) { s.Set("session", key, binding, time.Hour) })
	run("bare-get", func(key string) { r.bare.Get(ctx, key) })
	for _, k := range keys {
		s.Set("session", k, binding, time.Hour)
	}
	run("get-l1", func(key string) { s.Get("session", keys[0]) })
	run("get-l2", func(key string) {
		s.l1.delete(id{"session", key}, s.now())
		s.Get("session", key)
	})
	run("get-miss", func(key string) { s.Get("session", "none") })
	run("touch", func(key string) { s.Touch("session", key, time.Hour) })
	run("add", func(key string) { s.Add("session", "n", 1, time.Hour) })
	echo := redis.NewScript(`return {'v', redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}`)
	run("bare-script", func(key string) { echo.Run(ctx, r.bare, []string{s.l2.keys.key(id{"session", key})}) })
	if st := s.Stats().L2; st.Failures > 0 {
		b.Errorf("%+v", st)
	}
}
