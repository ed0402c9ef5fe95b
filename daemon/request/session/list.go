package session

import (
	"context"
	"time"
)

// Entry is one live session. Its id is a secret. The fingerprint identifies a session, but gives no access to it.
type Entry struct {
	Fingerprint string    `json:"fingerprint"`
	Kind        string    `json:"kind"`
	Worker      string    `json:"worker"`
	Minted      bool      `json:"held_by_worker"`
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires,omitzero"`      // fixed
	Forgotten   time.Time `json:"forgotten_at,omitzero"` // without a fixed end: if it is not used
}

// List returns the live sessions of a worker, or of all for "", at most limit of them, as this router's memory holds
// them. It walks all bindings of the pool: for pages, not for requests.
func (b *Bindings) List(worker string, limit int, now time.Time) []Entry {
	all := []Entry{}
	b.each(now, func(key string, found Binding, expires time.Time) bool {
		if worker == "" || found.Worker == worker {
			if len(all) >= limit {
				return false
			}
			if !found.Expires.IsZero() {
				expires = time.Time{}
			}
			all = append(all, Entry{Fingerprint: key[:min(fingerprint, len(key))], Kind: found.Kind.String(),
				Worker: found.Worker, Minted: found.Minted, Created: found.Created, Expires: found.Expires, Forgotten: expires})
		}
		return true
	})
	return all
}

// Live counts the live sessions by worker and kind. Like List it walks all bindings.
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

// each calls f for the bindings that live, until f returns false.
func (b *Bindings) each(now time.Time, f func(key string, found Binding, expires time.Time) bool) {
	more := true
	for k := range kinds {
		if !more {
			return
		}
		b.store.Each(b.ns[k], func(key string, v []byte, expires time.Time) bool {
			var life time.Duration
			if !expires.IsZero() {
				life = expires.Sub(now)
			}
			if found, err := decode(v); err == nil && found.Kind == k && found.status(now, life) == Found {
				more = f(key, found, expires)
			}
			return more
		})
	}
}

// FillLive calls set with the number of live sessions, opened ones and keys, of each of n workers, whose ids worker
// returns. It is for requests: the numbers are kept ready, see [Bindings.Run]. set and worker call no method of b.
func (b *Bindings) FillLive(n int, worker func(i int) string, set func(i int, live uint32)) {
	b.live.each(n, worker, set)
}

// The pulse of counting again, and how many times as long as it takes it rests at least: it costs 2 % of a processor
// at most. A million sessions take half a second.
const (
	recountPulse = time.Second
	recountRest  = 50
)

// Run recounts the live sessions until ctx ends, so that FillLive finds those that expired and what other routers did.
// Call it once.
func (b *Bindings) Run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		b.live.replace(b.Live(began))
		select {
		case <-ctx.Done():
		case <-time.After(max(recountPulse, recountRest*time.Since(began))):
		}
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
		c.Opened[k] = b.count.opened[k].Load()
		c.Used[k] = b.count.used[k].Load()
		c.Closed[k] = b.count.closed[k].Load()
		c.Lost[k] = b.count.lost[k].Load()
		c.Rebound[k] = b.count.rebound[k].Load()
	}
	for s := range statuses {
		c.Refused[s] = b.count.refused[s].Load()
	}
	return c
}
