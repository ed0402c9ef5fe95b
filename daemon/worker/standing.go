package worker

import "time"

// Standing is what a worker can do for a request that is bound to it.
type Standing uint8

const (
	Gone     Standing = iota // there is no worker of that id
	Unheard                  // it has had no health check yet
	Down                     // it is down
	Resting                  // it is up, but has failed so often that it is left alone for a while, or it says that it is going
	Lacking                  // it does not list the model
	Occupied                 // it has MaxInFlight requests
	Ready                    // SnapshotFor gives a row of it
)

// Standing tells why SnapshotFor gives no row of the worker that a request is bound to.
func (p *Pool) Standing(id, model string, now time.Time) Standing {
	limit, at := p.conf().MaxInFlight, p.sec(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		switch {
		case w.id != id:
			continue
		case w.health.state == starting:
			return Unheard
		case w.health.state != up:
			return Down
		case !w.breaker.lets(at):
			return Resting
		case model != "" && w.listing != nil && !w.listing.has(model):
			return Lacking
		case limit > 0 && w.inFlight >= limit:
			return Occupied
		}
		return Ready
	}
	return Gone
}
