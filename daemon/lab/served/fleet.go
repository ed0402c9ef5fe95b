package served

import (
	"fmt"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// workerNumbers knows the workers by their numbers. It is the pool's Watcher: that gives the number under which a
// worker's health checks and metrics are reported.
type workerNumbers struct {
	watched     map[string]uint64 // by id
	numbers     map[string]int    // by id
	began       map[int]float64   // when the process of each began, by its metrics
	blockTokens int
}

func newFleet(blockTokens int) workerNumbers {
	return workerNumbers{watched: map[string]uint64{}, numbers: map[string]int{}, began: map[int]float64{},
		blockTokens: blockTokens}
}

// Watch implements [worker.Watcher].
func (f *workerNumbers) Watch(id uint64, url, _ string) {
	f.watched[strings.TrimPrefix(url, "http://")] = id
}

// WatchHealth implements [worker.Watcher].
func (f *workerNumbers) WatchHealth(uint64) {}

// Unwatch implements [worker.Watcher].
func (f *workerNumbers) Unwatch(uint64) {}

// CheckSoon implements [worker.Watcher].
func (f *workerNumbers) CheckSoon(uint64) {}

// ScrapeSoon implements [worker.Watcher].
func (f *workerNumbers) ScrapeSoon(uint64) {}

// ListSoon implements [worker.Watcher].
func (f *workerNumbers) ListSoon(uint64) {}

// name is a worker's id.
func name(number int) string { return fmt.Sprintf("w%d", number) }

// slotOf returns a worker's slot.
func slotOf(p *route.Pool, number int, at time.Time) (uint32, bool) {
	for _, s := range p.Workers.Stats(at) {
		if s.ID == name(number) {
			return s.Slot, true
		}
	}
	return 0, false
}

var _ worker.Watcher = (*workerNumbers)(nil)
