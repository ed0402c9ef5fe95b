package certificate

import (
	"errors"
	"time"
)

// All are the certificates of a process by who uses them; nil = that listener speaks no TLS.
type All struct{ Server, KVCache *Pair }

// Reload is [Pair.Reload] of each.
func (a *All) Reload() error { return errors.Join(a.Server.Reload(), a.KVCache.Reload()) }

// Look is [Pair.Look] of each.
func (a *All) Look(now time.Time) {
	a.Server.Look(now)
	a.KVCache.Look(now)
}

// Stats describes each that is in force.
func (a *All) Stats() (all []Stats) {
	for _, p := range []*Pair{a.Server, a.KVCache} {
		if s, ok := p.Stats(); ok {
			all = append(all, s)
		}
	}
	return all
}
