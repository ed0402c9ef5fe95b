package worker

import (
	"math"
	"slices"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

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
	n    int           // requests in flight, and loads
	at   time.Duration // when a request last began or ended
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
func (u *uses) begin(name string, now time.Duration) *adapterUse {
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
func (u *uses) end(a *adapterUse, now time.Duration) {
	a.n = max(0, a.n-1)
	u.touch(a, now)
}

// endName is end for the adapter of that name.
func (u *uses) endName(name string, now time.Duration) {
	if i := u.find(name); i >= 0 {
		u.end((*u)[i], now)
	}
}

// touch puts an adapter first.
func (u *uses) touch(a *adapterUse, now time.Duration) {
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
func (u *uses) keep(listed map[string]struct{}) {
	*u = slices.DeleteFunc(*u, func(a *adapterUse) bool {
		_, has := listed[a.name]
		return a.n == 0 && !has
	})
}

// stock is what is known of a worker's adapters when a request for one comes.
type stock struct {
	uses
	page   Adapters // none, if it is old
	most   int      // places; 0 = no bound is known
	load   float64  // seconds of a load
	now    time.Duration
	listed bool // the worker lists the request's adapter, or its list was not read yet
}

// state returns the bits of a row for an adapter's request.
func (s *stock) state(name string) (bits uint32) {
	i, load := s.find(name), s.load
	switch {
	case i >= 0 && s.uses[i].n > 0, slices.Contains(s.page.Running, name),
		i >= 0 && s.listed && (s.most == 0 || i < s.most):
		return abi.RowAdapter
	case slices.Contains(s.page.Waiting, name):
		bits = abi.RowAdapterWaiting
	default:
		price, full := s.priceOfPlace()
		if full {
			bits = abi.RowAdaptersFull
		}
		load += price
	}
	return bits | uint32(min(abi.RowLoadMax, math.Round(1000*load)))<<abi.RowLoadShift
}

// priceOfPlace returns the seconds that a place for one more adapter costs beside its load: none if one is free, else
// the chance that the adapter which goes is wanted again, or the wait for one that may go.
func (s *stock) priceOfPlace() (price float64, full bool) {
	taken := len(s.uses)
	for _, name := range s.page.Running { // those of other routers
		if s.find(name) < 0 {
			taken++
		}
	}
	if s.most == 0 || taken < s.most {
		return 0, false
	}
	for i := min(len(s.uses), s.most) - 1; i >= 0; i-- {
		if a := s.uses[i]; a.n == 0 {
			return s.load * math.Exp((a.at-s.now).Seconds()/coolTime), false
		}
	}
	return placeTime, true
}
