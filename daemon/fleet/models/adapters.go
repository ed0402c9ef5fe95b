package models

import (
	"math"
	"slices"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// What is not measured of an adapter's load, in seconds.
const (
	// LoadTime is how long a load takes, until one was measured: vLLM reads an adapter of rank 32 of an 8B model, 100 MB,
	// from a disk in some 0.3 s, and puts it in its place in 0.1 s.
	LoadTime = .4
	// placeTime is the wait for a place while requests run with every adapter there: half of an answer of 400 tokens,
	// at 10 ms each.
	placeTime = 2.
	// coolTime is how long an adapter goes unused until the chance that it is wanted again soon has fallen to 1/e.
	coolTime = 60.
)

// maxUsed bounds the adapters that are kept of a worker. vLLM takes some tens at a time.
const maxUsed = 256

// Use is how much an adapter is used by the router's own requests at a worker.
type Use struct {
	name string
	n    int           // requests in flight, and loads
	At   time.Duration // when a request last began or ended
}

// Uses lists the adapters of the router's requests at a worker, the one used last first. As many of them are in their
// places as the worker has: vLLM replaces the one that was not used for the longest time. Pages of metrics are up to a
// scrape old, and name those with requests alone.
type Uses []*Use

// find returns the index of an adapter, -1 if it was not used.
func (u Uses) find(name string) int {
	return slices.IndexFunc(u, func(a *Use) bool { return a.name == name })
}

// Of returns how many use an adapter, and when one last began or ended; -1 = never.
func (u Uses) Of(name string) (n int, last time.Duration) {
	if i := u.find(name); i >= 0 {
		return u[i].n, u[i].At
	}
	return 0, -1
}

// Begin counts a request. It returns nil if the list is full of adapters in flight.
func (u *Uses) Begin(name string, now time.Duration) *Use {
	if u.find(name) < 0 {
		if len(*u) >= maxUsed && !u.dropOldest() {
			return nil
		}
		*u = append(*u, &Use{name: name})
	}
	a := (*u)[u.find(name)]
	a.n++
	u.touch(a, now)
	return a
}

// End counts a request down. The list may have been cleared since, and have the adapter of a new process.
func (u *Uses) End(a *Use, now time.Duration) {
	a.n = max(0, a.n-1)
	u.touch(a, now)
}

// EndName is end for the adapter of that name.
func (u *Uses) EndName(name string, now time.Duration) {
	if i := u.find(name); i >= 0 {
		u.End((*u)[i], now)
	}
}

// touch puts an adapter first.
func (u *Uses) touch(a *Use, now time.Duration) {
	a.At = now
	if i := slices.Index(*u, a); i > 0 {
		copy((*u)[1:i+1], (*u)[:i])
		(*u)[0] = a
	}
}

// dropOldest removes the idle adapter that was not used for the longest time.
func (u *Uses) dropOldest() bool {
	for i := len(*u) - 1; i >= 0; i-- {
		if (*u)[i].n == 0 {
			*u = slices.Delete(*u, i, i+1)
			return true
		}
	}
	return false
}

// Keep removes the idle adapters that the worker does not list.
func (u *Uses) Keep(listed *Listing) {
	*u = slices.DeleteFunc(*u, func(a *Use) bool { return a.n == 0 && !listed.Has(a.name) })
}

// Stock is what is known of a worker's adapters when a request for one comes.
type Stock struct {
	Uses
	Running, Waiting []string // of its page; none, if that is old
	Most             int      // places; 0 = no bound is known
	Load             float64  // seconds of a load
	Now              time.Duration
	Listed           bool // the worker lists the request's adapter, or its list was not read yet
}

// State returns the bits of a row for an adapter's request.
func (s *Stock) State(name string) (bits uint32) {
	i, load := s.find(name), s.Load
	switch {
	case i >= 0 && s.Uses[i].n > 0, slices.Contains(s.Running, name),
		i >= 0 && s.Listed && (s.Most == 0 || i < s.Most):
		return abi.RowAdapter
	case slices.Contains(s.Waiting, name):
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

// priceOfPlace returns the cost in seconds of a place for one more adapter, without its load. It is zero if a place
// is free. Otherwise it is the chance that the evicted adapter is needed again, or the wait until one may be evicted.
func (s *Stock) priceOfPlace() (price float64, full bool) {
	taken := len(s.Uses)
	for _, name := range s.Running { // those of other routers
		if s.find(name) < 0 {
			taken++
		}
	}
	if s.Most == 0 || taken < s.Most {
		return 0, false
	}
	for i := min(len(s.Uses), s.Most) - 1; i >= 0; i-- {
		if a := s.Uses[i]; a.n == 0 {
			return s.Load * math.Exp((a.At-s.Now).Seconds()/coolTime), false
		}
	}
	return placeTime, true
}
