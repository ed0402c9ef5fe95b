package worker

import "time"

// A worker's list of models is read every ten seconds, and adapters come and go between. So a list is no ground for a
// refusal before it is read anew, and an answer that contradicts it has it read anew.

// renewEvery is the least number of seconds between two readings of all lists: clients may ask for nonsense again and
// again.
const renewEvery = 1

// renewal is how far the reading of an endpoint's list is that somebody waits for.
type renewal uint8

const (
	renewed renewal = iota // nobody waits
	wanted                 // the worker has not been asked since
	reading                // it has been asked
)

// begun records that the worker is asked now.
func (r *renewal) begun() {
	if *r == wanted {
		*r = reading
	}
}

// answered records that a reading has ended. One that began before the list was wanted anew does not count.
func (r *renewal) answered() {
	if *r == reading {
		*r = renewed
	}
}

// renew has an endpoint's list read anew.
func (f *fleet) renew(e *endpoint) {
	e.renewal = wanted
	f.watcher.ListSoon(e.number)
}

// RenewLists has the models of all workers that are up read anew, unless that was done within the last second.
func (p *Pool) RenewLists(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, at := &p.fleet, p.fleet.sec(now)
	if f.asked > 0 && at-f.asked < renewEvery {
		return
	}
	f.asked = at
	for _, e := range f.endpoints {
		if e.isUp() {
			f.renew(e)
		}
	}
}

// RenewList has the models of w read anew.
func (p *Pool) RenewList(w *Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.isUp() && w.endpoint.place == configured {
		p.fleet.renew(w.endpoint)
	}
}

// Renewing counts the lists that are being read anew, of workers that are up.
func (p *Pool) Renewing() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.fleet.endpoints {
		if e.renews() {
			n++
		}
	}
	return n
}

// Renews reports whether w is up and its list is being read anew.
func (p *Pool) Renews(w *Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.endpoint.place == configured && w.renews()
}

func (e *endpoint) renews() bool { return e.renewal != renewed && e.isUp() }

// Lists reports whether the list of w has been read and has the model.
func (p *Pool) Lists(w *Worker, model string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.listing != nil && w.listing.has(model)
}
