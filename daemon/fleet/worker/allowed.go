package worker

import (
	"cmp"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/labels"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Allowed are the workers that alone may get a request, as its pool's filters have said of their rows. A worker whose
// labels have changed since is none of them. nil = all workers. It is never changed.
type Allowed struct {
	set *labels.Set // of the labels' bits
	of  []allowed   // by slot
}

type allowed struct {
	worker *Worker
	labels uint64
}

// AllowedOf makes the workers of rows those that are allowed. c is the Count of their Snapshot.
func AllowedOf(c *Count, workers []*Worker, rows []abi.Row) *Allowed {
	a := &Allowed{set: c.labels, of: make([]allowed, len(workers))}
	for i, w := range workers {
		a.of[i] = allowed{w, rows[i].Labels}
	}
	slices.SortFunc(a.of, func(x, y allowed) int { return cmp.Compare(x.worker.slot, y.worker.slot) })
	return a
}

// find returns the worker in a slot, nil if none there is allowed.
func (a *Allowed) find(slot uint32) *allowed {
	i, ok := slices.BinarySearchFunc(a.of, slot, func(x allowed, slot uint32) int {
		return cmp.Compare(x.worker.slot, slot)
	})
	if !ok {
		return nil
	}
	return &a.of[i]
}

// Has reports whether the worker in a slot was allowed.
func (a *Allowed) Has(slot uint32) bool { return a == nil || a.find(slot) != nil }

// Keys returns the hashes of the workers' ids.
func (a *Allowed) Keys() (keys []uint64) {
	if a != nil {
		for i := range a.of {
			keys = append(keys, a.of[i].worker.key)
		}
	}
	return keys
}

// admits reports whether w may get the request.
func (a *Allowed) admits(w *Worker) bool {
	if a == nil {
		return true
	}
	one := a.find(w.slot)
	return one != nil && one.worker == w && one.labels == w.labels && a.set == w.set
}

// within is a fence, as labels, for their bits change with the fleet, and what filters have left.
type within struct {
	fence Fence
	only  *Allowed
}

// admits reports whether w may get the request. nil lets all have it.
func (x *within) admits(w *Worker) bool { return x == nil || w.inside(x.fence) && x.only.admits(w) }
