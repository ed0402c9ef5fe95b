package worker

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"
)

// ErrNoAdapter is why an adapter is not loaded: a worker has refused it.
var ErrNoAdapter = errors.New("worker: the adapter is refused")

// This file is for one who loads and unloads the adapters of a worker.

// HoldAdapter counts an adapter as used at w until release is called. lacks reports whether w does not list it, so that
// it is to be loaded there. For a model that is no adapter HoldAdapter counts nothing.
func (p *Pool) HoldAdapter(w *Worker, name string, now time.Time) (release func(), lacks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lacks = name != "" && w.listing != nil && !w.listing.has(name)
	if !isAdapter(&p.fleet, name) {
		return func() {}, lacks
	}
	a := w.uses.begin(name, p.fleet.sec(now))
	if a == nil {
		return func() {}, lacks
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		w.uses.end(a, a.at)
	}, lacks
}

// DropIdleAdapter makes room for one more adapter at w, where most may be: it takes the idle one off the list that was
// not used for the longest time, and returns its name, "" if there is room. The caller unloads it. It returns false if
// all are in use.
func (p *Pool) DropIdleAdapter(w *Worker, name string, most int) (idle string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := w.endpoint
	if e.listing == nil {
		return "", true
	}
	count, oldest := 0, math.Inf(1)
	for _, a := range e.listing.adapters {
		if a == name {
			continue
		}
		count++
		if n, at := e.usesOf(a); n == 0 && at < oldest {
			idle, oldest = a, at
		}
	}
	for _, r := range e.ranks {
		for _, u := range r.uses { // they are being loaded
			if u.n > 0 && u.name != name && !e.listing.has(u.name) {
				count++
			}
		}
	}
	if count < most {
		return "", true
	}
	if idle == "" {
		return "", false
	}
	relist(&p.fleet, e, idle, nil)
	return idle, true
}

// usesOf returns how many use an adapter at the endpoint, and when it was used last; -1 = never.
func (e *endpoint) usesOf(name string) (n int, at float64) {
	at = -1
	for _, w := range e.ranks {
		if i := w.uses.find(name); i >= 0 {
			n += w.uses[i].n
			at = max(at, w.uses[i].at)
		}
	}
	return n, at
}

// AdapterLoaded records that w has loaded an adapter from that path, before its own list tells it. took is 0 if it had
// it before.
func (p *Pool) AdapterLoaded(w *Worker, name, path string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took > 0 {
		p.fleet.loading.add(took.Seconds())
	}
	e := w.endpoint
	if e.place != configured || e.listing == nil || e.listing.has(name) {
		return
	}
	entry := map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "vllm", "root": path,
		"parent": e.listing.base()}
	raw, _ := json.Marshal(entry)
	relist(&p.fleet, e, name, raw)
}

// ListedAnywhere reports whether the list of some worker that is up has the model.
func (p *Pool) ListedAnywhere(model string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.fleet.endpoints, func(e *endpoint) bool {
		return e.isUp() && e.listing != nil && e.listing.has(model)
	})
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

// relist adds an adapter to the list of an endpoint, or takes it off if it has no entry, and has the list read.
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
	l := newListing(ids)
	lengths, adapters := lengthsOf(ids, entries)
	l.setLengths(lengths)
	l.adapters = adapters
	f.list(e, l, entries)
	f.renew(e)
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
	return !listed && loads(f, model)
}

// loads reports whether an adapter may be loaded at a worker that does not list it.
func loads(f *fleet, model string) bool {
	return f.conf.Adapters.Loads != nil && f.conf.Adapters.Loads.Loads(model)
}

// stockOf returns what is known of w's adapters for a request for one.
func stockOf(f *fleet, w *Worker, name string, m *moment) stock {
	s := stock{uses: w.uses, most: f.conf.Adapters.Max, load: loadTime, now: m.now,
		listed: w.listing == nil || w.listing.has(name)}
	if f.loading.value > 0 {
		s.load = f.loading.value
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
