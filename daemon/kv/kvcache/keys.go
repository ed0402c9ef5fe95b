package kvcache

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// Entry is one key of the cache.
type Entry struct {
	Key     string    `json:"key"`
	Size    int64     `json:"size"`
	Tiers   []string  `json:"tiers"`            // that have it: "l1" is memory, "disk" the spill folder, "l2"
	Expires time.Time `json:"expires,omitzero"` // zero = never
}

// Page lists at most limit keys in their order that begin with a prefix and come after a key. A Cache without a door
// has none.
func (k *Cache) Page(prefix, after string, limit int) []Entry {
	k = k.now()
	if k == nil || k.store == nil {
		return nil
	}
	var all []Entry
	for _, l := range k.store.Page(prefix, after, limit) {
		e := Entry{Key: l.Key, Size: l.Size, Expires: l.Expires}
		for i, has := range [...]bool{l.Memory, l.Disk, l.Far} {
			if has {
				e.Tiers = append(e.Tiers, [...]string{"l1", "disk", "l2"}[i])
			}
		}
		all = append(all, e)
	}
	return all
}

// Delete deletes a key in all tiers and reports whether one had it.
func (k *Cache) Delete(key string) bool {
	k = k.now()
	return k != nil && k.store != nil && k.store.Delete(key)
}

// FlushL2 deletes all keys in L2 that begin with a prefix, whoever put them there, and returns how many. In a pool each
// other member deletes its own, on its disk too.
func (k *Cache) FlushL2(ctx context.Context, prefix string) (deleted int64, err error) {
	k = k.now()
	if k == nil || k.far == nil {
		return 0, nil
	}
	deleted, err = k.far.remote.Flush(ctx, prefix)
	if err != nil {
		return deleted, fmt.Errorf("kvcache: %w", err)
	}
	return deleted, nil
}

// Value leases a value; nil = there is none. It counts as a read. Release ends the lease.
func (k *Cache) Value(ctx context.Context, key string) *kvstore.Lease {
	k = k.now()
	if k == nil || k.store == nil {
		return nil
	}
	return k.store.Get(ctx, key, netip.Addr{})
}

// now returns the open cache; nil = there is none yet.
func (k *Cache) now() *Cache {
	if k == nil || k.heir == nil {
		return k
	}
	return k.heir.now()
}
