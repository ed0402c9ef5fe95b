package kvcache

import (
	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
)

// Sized is a kvstore.Backing that reports how many bytes of values it keeps at most; 0 = it does not know yet.
type Sized interface{ MaxBytes() int64 }

// Holds returns how many tokens of KV the cache has room for, estimated from LMCache's puts so far. Every value goes to
// the tiers behind the memory as well, so the larger size counts. It returns false if there is no cache.
func (k *Cache) Holds() (chunks.Estimate, bool) {
	k = k.now()
	if k == nil || k.store == nil {
		return chunks.Estimate{}, false
	}
	return k.holds(), true
}

func (k *Cache) holds() chunks.Estimate { return k.meter.Estimate(k.room()) }

// room returns how many bytes of values the cache keeps.
func (k *Cache) room() int64 {
	bytes := k.store.Stats().ArenaBytes
	for _, b := range k.behind {
		if s, ok := b.(Sized); ok {
			bytes = max(bytes, s.MaxBytes())
		}
	}
	if k.far.isPool() && k.far.remote.MaxBytes() == 0 { // until the members have said how large they are
		bytes = max(bytes, k.store.Stats().ArenaBytes*int64(len(k.far.remote.Stats().Servers)))
	}
	return bytes
}

// measure makes the store report every put to the meter.
func (k *Cache) measure(c *Config, sc *kvstore.Config) {
	k.behind = []kvstore.Backing{sc.Disk, sc.Far}
	k.meter = chunks.NewMeter(c.MaxBytes, c.ChunkTokens)
	sc.Noted = k.meter.Put
}
