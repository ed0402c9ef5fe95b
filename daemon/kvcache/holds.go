package kvcache

import (
	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
)

// Sized is a kvstore.Backing that knows how many bytes of values it keeps at most; 0 = it does not know yet.
type Sized interface{ MaxBytes() int64 }

// Holds says how many tokens of KV the cache has room for, by what LMCache has put so far. Every value goes to what is
// behind the memory as well, so the larger of the two counts. It reports false if there is no cache.
func (k *Cache) Holds() (chunks.Estimate, bool) {
	k = k.now()
	if k == nil || k.store == nil {
		return chunks.Estimate{}, false
	}
	return k.holds(), true
}

func (k *Cache) holds() chunks.Estimate { return k.meter.Estimate(k.room()) }

// room is how many bytes of values the cache keeps.
func (k *Cache) room() int64 {
	bytes := k.store.Stats().ArenaBytes
	if k.far != nil {
		if s := k.far.remote.Stats(); s.Backend == "tieredstorage" { // the members are taken to be as large as this one
			bytes *= int64(max(1, len(s.Servers)))
		}
	}
	for _, b := range k.behind {
		if s, ok := b.(Sized); ok {
			bytes = max(bytes, s.MaxBytes())
		}
	}
	return bytes
}

// measure has the meter told of every put.
func (k *Cache) measure(c *Config, sc *kvstore.Config) {
	k.behind = []kvstore.Backing{sc.Disk, sc.Far}
	k.meter = chunks.NewMeter(c.MaxBytes, c.ChunkTokens)
	sc.Noted = k.meter.Put
}
