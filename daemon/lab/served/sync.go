package served

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/world"
)

// Paused implements [world.Trainee], as an order to all workers does.
func (r *Router) Paused(now time.Duration) {
	for id := range r.fleet.watched {
		r.pool.Workers.Paused(id, r.at(now))
	}
}

// Updated implements [world.Trainee].
func (r *Router) Updated(now time.Duration, version int) {
	at := r.at(now)
	for id := range r.fleet.watched {
		r.pool.Workers.Updated(id, worker.Weights(version+1), at)
		r.pool.Workers.Emptied(id, time.Time{}, at)
		r.pool.Workers.Woke(id, at)
	}
}

var _ world.Trainee = (*Router)(nil)
