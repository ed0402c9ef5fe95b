package worker

import "time"

// Standing is what a worker can do for a request, or the fleet: why a request does or does not go there.
type Standing uint8

// The values of Standing. A fleet's is that of the worker that comes nearest to taking the request.
const (
	Ready    Standing = iota // takes the request
	Gone                     // there is no worker of that id
	Starting                 // it has had no health check yet
	Down                     // it is down; of a fleet: no worker that may have the model takes requests
	Ejected                  // it is up, but has failed so often that it is left alone for a while
	Draining                 // it was asked to drain, or its answers say that it is going
	Lacking                  // it does not list the model; of a fleet: every worker's models are known
	Full                     // it has MaxInFlight requests
	Panicked                 // it is not up and is offered all the same, as nobody is: Config.Panic
)

// String returns the word for people and their scripts.
func (s Standing) String() string {
	return [...]string{"up", "gone", "starting", "down", "ejected", "draining", "lacks the model", "full", "panic"}[s]
}

// Standing tells why a Snapshot gives no row of the worker that a request is bound to.
func (p *Pool) Standing(id, model string, now time.Time) Standing {
	limit, at := p.conf().MaxInFlight, p.sec(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		switch s, _ := w.condition(); {
		case w.id != id:
			continue
		case w.health.state != up:
			return s
		case !w.breaker.lets(at):
			return w.breaker.standing()
		case model != "" && w.listing != nil && !w.listing.has(model):
			return Lacking
		case limit > 0 && w.inFlight >= limit:
			return Full
		}
		return Ready
	}
	return Gone
}
