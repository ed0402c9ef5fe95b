package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/models"
)

// ErrNoAdapter is why an adapter is not loaded: a worker has refused it.
var ErrNoAdapter = errors.New("worker: the adapter is refused")

// usesOf returns how many use an adapter at the endpoint, and when it was used last; -1 = never.
func (e *endpoint) usesOf(name string) (n int, at time.Duration) {
	at = -1
	for _, w := range e.ranks {
		used, last := w.uses.Of(name)
		n += used
		at = max(at, last)
	}
	return n, at
}

// slot is the place of an adapter that is being loaded.
type slot struct {
	name string
	gone []string // adapters that are unloaded for it
}

// idleAdapters returns the endpoint's unused adapters, least recently used first, and the number of all its adapters,
// including those being loaded. It leaves out the adapter of that name.
func (e *endpoint) idleAdapters(but string) (idle []string, n int) {
	last := map[string]time.Duration{}
	for _, a := range e.listing.Adapters {
		if a == but {
			continue
		}
		n++
		if inUse, at := e.usesOf(a); inUse == 0 {
			idle = append(idle, a)
			last[a] = at
		}
	}
	for _, s := range e.slots {
		if s.name != but && !e.listing.Has(s.name) {
			n++
		}
	}
	slices.SortStableFunc(idle, func(a, b string) int { return cmp.Compare(last[a], last[b]) })
	return idle, n
}

// relist adds an adapter to the list of an endpoint, or takes it off if it has no entry.
func relist(f *fleet, e *endpoint, name string, entry json.RawMessage) {
	var ids []string
	var entries []json.RawMessage
	for i, id := range e.listing.IDs {
		if id != name {
			ids, entries = append(ids, id), append(entries, e.entries[i])
		}
	}
	if entry != nil {
		ids, entries = append(ids, name), append(entries, entry)
	}
	f.list(e, models.Read(ids, entries), entries)
}

// isAdapter reports whether a model is a LoRA adapter: some worker lists it as one, or it may be loaded. A pool without
// adapters has no look-up.
func isAdapter(f *fleet, model string) bool {
	if !f.adapters && f.conf.Adapters.Loads == nil || model == "" {
		return false
	}
	var last *models.Listing
	listed := false
	for _, e := range f.endpoints {
		if e.listing == nil && e.isUp() { // it may be a model of that worker
			listed = true
		}
		if e.listing == nil || e.listing == last {
			continue
		}
		last = e.listing
		if last.Adapts(model) {
			return true
		}
		listed = listed || last.Has(model)
	}
	return !listed && loads(f, "", model)
}

// loads reports whether an adapter may be loaded at a worker that does not list it, by its URL; "" = at any.
func loads(f *fleet, url, model string) bool {
	return f.conf.Adapters.Loads != nil && f.conf.Adapters.Loads.Loads(url, model)
}

// stockOf returns what is known of w's adapters for a request for one.
func stockOf(f *fleet, w *Worker, name string, m *moment) models.Stock {
	s := models.Stock{Uses: w.uses, Most: f.conf.Adapters.Max, Load: models.LoadTime, Now: m.now,
		Listed: w.listing == nil || w.listing.Has(name)}
	if f.loading.Value > 0 {
		s.Load = f.loading.Value
	}
	if a := w.readings.Adapters; a != nil {
		if a.Max > 0 && (s.Most == 0 || a.Max < s.Most) {
			s.Most = a.Max
		}
		if w.readings.age(m.now) <= w.staleAfter(m) {
			s.Running, s.Waiting = a.Running, a.Waiting
		}
	}
	return s
}
