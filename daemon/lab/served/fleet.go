package served

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// fleet knows the workers by their numbers. It is the pool's Watcher: that gives the number under which a worker's
// health checks and metrics are reported.
type fleet struct {
	watched     map[string]uint64 // by id
	numbers     map[string]int    // by id
	began       map[int]float64   // when the process of each began, by its metrics
	blockTokens int
}

func newFleet(blockTokens int) fleet {
	return fleet{watched: map[string]uint64{}, numbers: map[string]int{}, began: map[int]float64{},
		blockTokens: blockTokens}
}

// Watch implements [worker.Watcher].
func (f *fleet) Watch(id uint64, url, _ string) { f.watched[strings.TrimPrefix(url, "http://")] = id }

// WatchHealth implements [worker.Watcher].
func (f *fleet) WatchHealth(uint64) {}

// Unwatch implements [worker.Watcher].
func (f *fleet) Unwatch(uint64) {}

// CheckSoon implements [worker.Watcher].
func (f *fleet) CheckSoon(uint64) {}

// ScrapeSoon implements [worker.Watcher].
func (f *fleet) ScrapeSoon(uint64) {}

// ListSoon implements [worker.Watcher].
func (f *fleet) ListSoon(uint64) {}

var _ worker.Watcher = (*fleet)(nil)
