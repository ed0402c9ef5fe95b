package limit

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Book has the keys of a process that have limits. It outlives reloads, and what a key has taken outlives a change of
// its limits. It is safe for concurrent use. Its zero value is ready.
type Book struct {
	mu      sync.Mutex // guards all below
	keys    map[string]*Key
	routers int
}

// Configure makes these the limits of the keys, by their names. It returns the keys that have one, nil if none has. The
// map is the caller's.
func (b *Book) Configure(all map[string]Limits, at time.Time) map[string]*Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := map[string]*Key{}
	for name, l := range all {
		if l.InFlight == 0 && l.Requests == 0 && l.Tokens == 0 {
			continue
		}
		k := b.keys[name]
		if k == nil {
			k = &Key{name: name, whole: map[*Spending]struct{}{}}
			k.join(b.routers)
		}
		k.configure(l, at)
		next[name] = k
	}
	b.keys = next
	if len(next) == 0 {
		return nil
	}
	return maps.Clone(next)
}

// Share sets how many routers share the limits, this one too.
func (b *Book) Share(routers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.routers == routers {
		return
	}
	b.routers = routers
	for _, k := range b.keys {
		k.join(routers)
	}
}

// Messages appends to all those of the keys.
func (b *Book) Messages(all []Message, at time.Time) []Message {
	for _, k := range b.list() {
		all = append(all, messageOf(k, at))
	}
	return all
}

// list returns the keys by their names.
func (b *Book) list() []*Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*Key, 0, len(b.keys))
	for _, name := range slices.Sorted(maps.Keys(b.keys)) {
		all = append(all, b.keys[name])
	}
	return all
}
