package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// ErrNoAdapter is why an adapter is not loaded: a worker has refused it.
var ErrNoAdapter = errors.New("worker: the adapter is refused")

// usesOf returns how many use an adapter at the endpoint, and when it was used last; -1 = never.
func (e *endpoint) usesOf(name string) (n int, at time.Duration) {
	at = -1
	for _, w := range e.ranks {
		if i := w.uses.find(name); i >= 0 {
			n += w.uses[i].n
			at = max(at, w.uses[i].at)
		}
	}
	return n, at
}

// slot is the place of an adapter that is being loaded.
type slot struct {
	name string
	gone []string // adapters that are unloaded for it
}

// idleAdapters returns those of the endpoint that nobody uses, the one used last at the end, and how many adapters it
// has with those that are being loaded. It leaves out the adapter of that name.
func (e *endpoint) idleAdapters(but string) (idle []string, n int) {
	last := map[string]time.Duration{}
	for _, a := range e.listing.adapters {
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
		if s.name != but && !e.listing.has(s.name) {
			n++
		}
	}
	slices.SortStableFunc(idle, func(a, b string) int { return cmp.Compare(last[a], last[b]) })
	return idle, n
}

// base returns the first model that is no adapter.
func (l *listing) base() string {
	for _, id := range l.ids {
		if !l.adapts(id) {
			return id
		}
	}
	return ""
}

// relist adds an adapter to the list of an endpoint, or takes it off if it has no entry.
func relist(f *fleet, e *endpoint, name string, entry json.RawMessage) {
	var ids []string
	var entries []json.RawMessage
	for i, id := range e.listing.ids {
		if id != name {
			ids, entries = append(ids, id), append(entries, e.entries[i])
		}
	}
	if entry != nil {
		ids, entries = append(ids, name), append(entries, entry)
	}
	f.list(e, readListing(ids, entries), entries)
}

// isAdapter reports whether a model is a LoRA adapter: some worker lists it as one, or it may be loaded. A pool without
// adapters has no look-up.
func isAdapter(f *fleet, model string) bool {
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
	return !listed && loads(f, "", model)
}

// loads reports whether an adapter may be loaded at a worker that does not list it, by its URL; "" = at any.
func loads(f *fleet, url, model string) bool {
	return f.conf.Adapters.Loads != nil && f.conf.Adapters.Loads.Loads(url, model)
}

// stockOf returns what is known of w's adapters for a request for one.
func stockOf(f *fleet, w *Worker, name string, m *moment) stock {
	s := stock{uses: w.uses, most: f.conf.Adapters.Max, load: loadTime, now: m.now,
		listed: w.listing == nil || w.listing.has(name)}
	if f.loading.Value > 0 {
		s.load = f.loading.Value
	}
	if a := w.readings.Adapters; a != nil {
		if a.Max > 0 && (s.most == 0 || a.Max < s.most) {
			s.most = a.Max
		}
		if w.readings.age(m.now) <= m.stale {
			s.page = *a
		}
	}
	return s
}
