package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness/readinesstest"
)

// readings returns a pool's values on /metrics, where a metric has one value.
func readings(p *readinesstest.Fleet) map[string]float64 {
	all := map[string]float64{}
	for _, r := range ofPools {
		r.read(p.Pool, func(value float64, _ ...string) { all[strings.TrimPrefix(r.name, "warmpath_")] = value })
	}
	return all
}

// A pool whose requests wait for a paused worker can serve.
func TestPoolReadings(t *testing.T) {
	f := func(words string, ready, rests float64) {
		t.Helper()
		got := readings(readinesstest.NewFleet(t, words))
		if got["pool_ready"] != ready || got["pool_rests"] != rests {
			t.Errorf("%q: ready %v, rests %v; want %v, %v", words, got["pool_ready"], got["pool_rests"], ready, rests)
		}
	}
	f("", 0, 0)
	f("a", 1, 0)
	f("a:down", 0, 0)
	f("a:paused", 1, 1)
}

// A worker that was drained and then stopped is both, until its drain ends.
func TestDrainingReading(t *testing.T) {
	p := readinesstest.NewFleet(t, "a:draining")
	f := func(want float64) {
		t.Helper()
		for _, r := range ofWorkers {
			if r.name == "warmpath_worker_draining" {
				r.read(workerCounts{Stats: p.Workers.Stats(time.Now())[0]}, func(got float64, _ ...string) {
					if got != want {
						t.Errorf("worker_draining is %v; want %v", got, want)
					}
				})
			}
		}
	}
	f(1)
	p.Become(t, "a", "down")
	f(1)
	p.Workers.Drain("a", false, time.Now())
	f(0)
}
