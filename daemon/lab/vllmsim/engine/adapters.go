package engine

import (
	"slices"
	"time"
)

// adapters are the LoRA adapters on the GPU, the one used last first. As in vLLM a sequence needs the place of its
// adapter while it runs, one without a place lets others pass, and what was not used for the longest time goes.
type adapters struct {
	places []*seat
	loads  int64         // since the start
	due    time.Duration // of loads that the step to come does
}

// seat is the place of one adapter on the GPU.
type seat struct {
	name    string
	running int // sequences
}

// find returns the place of an adapter, -1 if it has none.
func (a *adapters) find(name string) int {
	return slices.IndexFunc(a.places, func(p *seat) bool { return p.name == name })
}

// take gives an adapter a place of most, and loads it if it has none. It returns false if sequences of other adapters
// run in all of them.
func (a *adapters) take(name string, most int, load time.Duration) bool {
	i := a.find(name)
	if i < 0 {
		if len(a.places) >= most && !a.drop() {
			return false
		}
		a.loads++
		a.due += load
		a.places = slices.Insert(a.places, 0, &seat{name: name})
		return true
	}
	p := a.places[i]
	copy(a.places[1:i+1], a.places[:i])
	a.places[0] = p
	return true
}

// drop removes the idle adapter that was not used for the longest time. It returns false if there is none.
func (a *adapters) drop() bool {
	for i := len(a.places) - 1; i >= 0; i-- {
		if a.places[i].running == 0 {
			a.places = slices.Delete(a.places, i, i+1)
			return true
		}
	}
	return false
}

// run and leave count the sequences of an adapter.
func (s *scheduler) run(q *Sequence) {
	if q.Adapter != "" && !q.placed {
		s.adapters.places[s.adapters.find(q.Adapter)].running++
		q.placed = true
	}
}

func (s *scheduler) leave(q *Sequence) {
	if q.placed {
		s.adapters.places[s.adapters.find(q.Adapter)].running--
		q.placed = false
		s.step.blocked = false
	}
}

// hasPlace reports whether a sequence's adapter can run now, and brings it to its place.
func (s *scheduler) hasPlace(q *Sequence) bool {
	return q.Adapter == "" || s.cfg.MaxLoras == 0 || s.adapters.take(q.Adapter, s.cfg.MaxLoras, s.cfg.loraLoad())
}

func (c *Config) loraLoad() time.Duration { return time.Duration(c.LoraSeconds * float64(time.Second)) }

// LoadAdapter brings an adapter to a place, if one is free or idle: the caller has waited for the load.
func (e *Engine) LoadAdapter(name string) { e.sched.adapters.take(name, max(1, e.cfg.MaxLoras), 0) }

// DropAdapter takes an idle adapter from its place.
func (e *Engine) DropAdapter(name string) {
	a := &e.sched.adapters
	if i := a.find(name); i >= 0 && a.places[i].running == 0 {
		a.places = slices.Delete(a.places, i, i+1)
	}
}

// Adapters returns the adapters of the sequences that run, and of those that wait.
func (e *Engine) Adapters() (running, waiting []string) {
	for _, p := range e.sched.adapters.places {
		if p.running > 0 {
			running = append(running, p.name)
		}
	}
	for _, q := range e.sched.waiting {
		if q.Adapter != "" && !slices.Contains(waiting, q.Adapter) {
			waiting = append(waiting, q.Adapter)
		}
	}
	return running, waiting
}
