package worker

import "time"

// Orders to a worker's engine that an operator sends through the router are known before its metrics tell of them.

// Slept records that the engines of the endpoint with that id were put to sleep or paused, before their metrics tell
// it. They are awake again if the next page of these does not.
func (p *Pool) Slept(id string, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	p.fleet.sleep(id, p.fleet.sec(now))
}

// Emptied records that the KV caches of the endpoint with that id were emptied.
func (p *Pool) Emptied(id string, now time.Time) {
	p.mu.Lock()
	defer p.unlock()
	p.fleet.empty(id, p.fleet.sec(now))
}

// sleep records that the engines of an endpoint have been put to sleep.
func (f *fleet) sleep(id string, now float64) {
	if e := f.at(id); e != nil {
		for _, w := range e.ranks {
			if !w.readings.Asleep {
				w.readings.Asleep = true
				f.turnIn(w, true, now)
			}
		}
	}
}

// empty records that the KV caches of an endpoint's engines have been emptied.
func (f *fleet) empty(id string, now float64) {
	if e := f.at(id); e != nil {
		f.noteAll(e.ranks, event{kind: emptied}, now)
	}
}
