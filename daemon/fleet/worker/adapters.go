package worker

import (
	"math"
	"slices"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Adapters is what a page of metrics says of a worker's LoRA adapters.
type Adapters struct {
	At      float64  // when the worker wrote it, Unix seconds
	Max     int      // adapters that run at a time; 0 = not known
	Running []string // adapters of requests that run
	Waiting []string // and of requests that wait
}

// What is not measured of an adapter's load, in seconds.
const (
	// loadTime is a load until one was measured: vLLM reads the 100 MB of a rank 32 of an 8B model from a disk in some
	// 0.3 s, and puts it in its place in 0.1 s.
	loadTime = .4
	// placeTime is the wait for a place while requests run with every adapter there: half of an answer of 400 tokens,
	// at 10 ms each.
	placeTime = 2.
	// coolTime is how long an adapter goes unused until the chance that it is wanted again soon has fallen to 1/e.
	coolTime = 60.
)

// maxUsed bounds the adapters that are kept of a worker. vLLM takes some tens at a time.
const maxUsed = 256

// adapterUse is how much an adapter is used by the router's own requests at a worker.
type adapterUse struct {
	name string
	n    int     // requests in flight, and loads
	at   float64 // when a request last began or ended
}

// uses lists the adapters of the router's requests at a worker, the one used last first. As many of them are in their
// places as the worker has: vLLM replaces the one that was not used for the longest time. Pages of metrics are up to a
// scrape old, and name those with requests alone.
type uses []*adapterUse

// find returns the index of an adapter, -1 if it was not used.
func (u uses) find(name string) int {
	return slices.IndexFunc(u, func(a *adapterUse) bool { return a.name == name })
}

// begin counts a request. It returns nil if the list is full of adapters in flight.
func (u *uses) begin(name string, now float64) *adapterUse {
	if u.find(name) < 0 {
		if len(*u) >= maxUsed && !u.dropOldest() {
			return nil
		}
		*u = append(*u, &adapterUse{name: name})
	}
	a := (*u)[u.find(name)]
	a.n++
	u.touch(a, now)
	return a
}

// end counts a request down. The list may have been cleared since, and have the adapter of a new process.
func (u *uses) end(a *adapterUse, now float64) {
	a.n = max(0, a.n-1)
	u.touch(a, now)
}

// endName is end for the adapter of that name.
func (u *uses) endName(name string, now float64) {
	if i := u.find(name); i >= 0 {
		u.end((*u)[i], now)
	}
}

// touch puts an adapter first.
func (u *uses) touch(a *adapterUse, now float64) {
	a.at = now
	if i := slices.Index(*u, a); i > 0 {
		copy((*u)[1:i+1], (*u)[:i])
		(*u)[0] = a
	}
}

// dropOldest forgets the idle adapter that was not used for the longest time.
func (u *uses) dropOldest() bool {
	for i := len(*u) - 1; i >= 0; i-- {
		if (*u)[i].n == 0 {
			*u = slices.Delete(*u, i, i+1)
			return true
		}
	}
	return false
}

// keep forgets the idle adapters that the worker does not list.
func (u *uses) keep(l *listing) {
	*u = slices.DeleteFunc(*u, func(a *adapterUse) bool { return a.n == 0 && !l.has(a.name) })
}

// fillAdapter writes into the worker's row what an adapter's request finds there. load is the seconds of a load, most
// the bound of the configuration; 0 = none.
func (w *Worker) fillAdapter(r *abi.Row, name string, m *moment, load float64, most int) {
	page := w.readings.Adapters
	if page == nil {
		page = &Adapters{}
	}
	if page.Max > 0 && (most == 0 || page.Max < most) {
		most = page.Max
	}
	i := w.uses.find(name)
	fresh := w.readings.age(m.now) <= m.stale
	listed := w.listing == nil || w.listing.has(name)
	switch {
	case i >= 0 && w.uses[i].n > 0, fresh && slices.Contains(page.Running, name),
		i >= 0 && listed && (most == 0 || i < most):
		r.State |= abi.RowAdapter
		return
	case fresh && slices.Contains(page.Waiting, name):
		r.State |= abi.RowAdapterWaiting
	default:
		price, full := w.priceOfPlace(page, m.now, load, most, fresh)
		if full {
			r.State |= abi.RowAdaptersFull
		}
		load += price
	}
	r.State |= uint32(min(abi.RowLoadMax, math.Round(1000*load))) << abi.RowLoadShift
}

// priceOfPlace returns the seconds that a place for one more adapter costs beside its load: none if one is free, else
// the chance that the adapter which goes is wanted again, or the wait for one that may go.
func (w *Worker) priceOfPlace(page *Adapters, now, load float64, most int, fresh bool) (price float64, full bool) {
	taken := len(w.uses)
	if fresh {
		for _, name := range page.Running { // those of other routers
			if w.uses.find(name) < 0 {
				taken++
			}
		}
	}
	if most == 0 || taken < most {
		return 0, false
	}
	for i := min(len(w.uses), most) - 1; i >= 0; i-- {
		if a := w.uses[i]; a.n == 0 {
			return load * math.Exp((a.at-now)/coolTime), false
		}
	}
	return placeTime, true
}

// isAdapter reports whether a model is a LoRA adapter: some worker lists it as one, or it may be loaded. A pool without
// adapters has no look-up.
func (f *fleet) isAdapter(model string) bool {
	if !f.adapters && f.conf.Adapters.Loads == nil || model == "" {
		return false
	}
	var last *listing
	listed := false
	for _, e := range f.endpoints {
		if e.listing == nil && e.isUp() { // it may be a model of that worker
			listed = true
		}
		if e.listing == nil || e.listing == last {
			continue
		}
		last = e.listing
		if last.adapts(model) {
			return true
		}
		listed = listed || last.has(model)
	}
	return !listed && f.loads(model)
}

// loads reports whether an adapter may be loaded at a worker that does not list it.
func (f *fleet) loads(model string) bool {
	return f.conf.Adapters.Loads != nil && f.conf.Adapters.Loads(model)
}

// loadTime returns the seconds of an adapter's load.
func (f *fleet) loadTime() float64 {
	if f.loading.value > 0 {
		return f.loading.value
	}
	return loadTime
}
