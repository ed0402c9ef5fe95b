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
