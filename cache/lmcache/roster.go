package lmcache

import (
	"slices"
	"sync/atomic"
)

// Worker is a worker of a pool as a Roster has to know it.
type Worker struct {
	Slot uint32
	ID   string
	Host string // of its URL
}

// Roster maps the workers of a pool to their instances. Its methods may be called side by side.
type Roster struct {
	fleet   *fleet
	learn   *learner
	names   map[string]string // instance -> worker, from the configuration
	workers atomic.Pointer[[]Worker]
	table   atomic.Pointer[roll]
}

// roll is a roster worked out.
type roll struct {
	bySlot  map[uint32]*instance
	changed uint64 // the fleet's count for which it holds
}

// Set makes these the workers of the pool.
func (r *Roster) Set(workers []Worker) {
	if old := r.workers.Load(); old != nil && slices.Equal(*old, workers) {
		return // the controller has kept the table up to date
	}
	r.workers.Store(&workers)
	r.table.Store(assign(r.fleet, workers, r.names))
}

// refresh works the table out again if instances have come or gone.
func (r *Roster) refresh() {
	if w := r.workers.Load(); w != nil && r.table.Load().changed != r.fleet.changed.Load() {
		r.table.Store(assign(r.fleet, *w, r.names))
	}
}

// Instance returns the id of the instance that belongs to the worker at slot, or "".
func (r *Roster) Instance(slot uint32) string {
	if t := r.table.Load(); t != nil && t.bySlot[slot] != nil {
		return t.bySlot[slot].id
	}
	return ""
}

// assign finds the instance of each worker: the one that the configuration names, else the one whose id is the
// worker's, else the only one at its host. A server belongs to all workers of its host, an instance within a worker
// only to one that is alone there.
func assign(f *fleet, workers []Worker, names map[string]string) *roll {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &roll{bySlot: make(map[uint32]*instance, len(workers)), changed: f.changed.Load()}
	named := map[string]*instance{} // by worker
	hosts := map[string][]*instance{}
	for _, i := range f.instances {
		if w, ok := names[i.id]; ok {
			named[w] = i
			continue
		}
		for host := range i.hosts() {
			hosts[host] = append(hosts[host], i)
		}
	}
	crowd := map[string]int{}
	for _, w := range workers {
		crowd[w.Host]++
	}
	for _, w := range workers {
		at := hosts[w.Host]
		switch own := f.instances[w.ID]; {
		case named[w.ID] != nil:
			t.bySlot[w.Slot] = named[w.ID]
		case own != nil && names[w.ID] == "":
			t.bySlot[w.Slot] = own
		case len(at) == 1 && (at[0].server || crowd[w.Host] == 1):
			t.bySlot[w.Slot] = at[0]
		}
	}
	return t
}

// hosts returns where the ranks of i are: as they report it, and where their connections come from.
func (i *instance) hosts() map[string]bool {
	all := map[string]bool{i.ip: true, i.from: true}
	for _, r := range i.ranks {
		all[r.ip] = true
		all[r.from] = true
	}
	delete(all, "")
	return all
}
