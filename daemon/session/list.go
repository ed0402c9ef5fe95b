package session

import "time"

// Entry is a session on a page.
type Entry struct {
	Fingerprint string // as Fingerprint; the id itself is not kept
	Binding
	Forgotten time.Time // when the store lets go of it, if nobody uses it
}

// List returns the live sessions of a worker, or of all for "", at most limit of them, as this router's memory holds
// them. It walks all bindings of the pool: for pages, not for requests.
func (b *Bindings) List(worker string, limit int, now time.Time) []Entry {
	var all []Entry
	b.each(now, func(key string, found Binding, expires time.Time) bool {
		if worker == "" || found.Worker == worker {
			if len(all) >= limit {
				return false
			}
			all = append(all, Entry{Fingerprint: key[:min(fingerprint, len(key))], Binding: found, Forgotten: expires})
		}
		return true
	})
	return all
}

// Live counts the live sessions by worker and kind, as List does.
func (b *Bindings) Live(now time.Time) map[string][kinds]int {
	live := map[string][kinds]int{}
	b.each(now, func(_ string, found Binding, _ time.Time) bool {
		n := live[found.Worker]
		n[found.Kind]++
		live[found.Worker] = n
		return true
	})
	return live
}

// each calls f for the bindings that live.
func (b *Bindings) each(now time.Time, f func(key string, found Binding, expires time.Time) bool) {
	more := true
	for k := range kinds {
		if !more {
			return
		}
		b.store.Each(b.ns[k], func(key string, v []byte, expires time.Time) bool {
			if found, err := decode(v); err == nil && found.Kind == k && found.status(now) == Found {
				more = f(key, found, expires)
			}
			return more
		})
	}
}

// Counts is what happened since the start, by Kind, and refusals by Status.
type Counts struct {
	Opened, Used, Closed, Lost, Rebound [kinds]uint64
	Refused                             [statuses]uint64 // Found is always 0
}

// Counts returns the counts so far.
func (b *Bindings) Counts() Counts {
	var c Counts
	for k := range kinds {
		c.Opened[k], c.Used[k], c.Closed[k] = b.count.opened[k].Load(), b.count.used[k].Load(), b.count.closed[k].Load()
		c.Lost[k], c.Rebound[k] = b.count.lost[k].Load(), b.count.rebound[k].Load()
	}
	for s := range statuses {
		c.Refused[s] = b.count.refused[s].Load()
	}
	return c
}
