package lmcache

import (
	"slices"
	"strings"

	"github.com/warmpath/warmpath/cache/kvstore/chunks"
)

// lostAtOnce is how many are taken out under a lock that the workers' messages wait for: some 100 us.
const lostAtOnce = 256

// Forget takes parts out of what servers have reported of the store.
func (k *Controller) Forget(parts []chunks.Lost) {
	for some := range slices.Chunk(parts, lostAtOnce) {
		forget(k.fleet, some)
	}
}

// ForgetAll takes out all that servers have reported of the store.
func (k *Controller) ForgetAll(adapters []string) { forgetAll(k.fleet, adapters) }

func forget(f *fleet, parts []chunks.Lost) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range parts {
		p := &parts[n]
		o := objectKey{Hash: p.Hash, Model: p.Model, Rank: p.Rank, Salt: p.Salt}
		key, err := o.key()
		if err != nil {
			continue // no server reported it either
		}
		key = o.spread(key)
		for _, s := range f.dir.seatsOf(key) {
			if int(s.rank) == o.rank() && s.isBehind(p.Adapters) {
				f.dir.evict(s, key)
				f.count.StoreLost++
			}
		}
	}
}

func forgetAll(f *fleet, adapters []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count.StoreCleared++
	for _, s := range *f.dir.seats.Load() {
		if s.isBehind(adapters) {
			f.dir.clear(s)
		}
	}
}

// isBehind reports whether the seat is a store that servers reach by one of these adapters.
func (s *seat) isBehind(adapters []string) bool {
	_, backend, _ := strings.Cut(s.location, "/")
	return s.tier != local && slices.Contains(adapters, backend)
}
