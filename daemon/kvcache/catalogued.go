package kvcache

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
)

// catalogued is a tier behind that keeps a catalogue of its keys, those that this daemon put there or found there. What
// the tier has lost since is found out when keys are listed.
type catalogued struct {
	kvstore.Backing
	keys *catalog.Catalog
}

// cataloguePart of max_bytes is for the catalogue of L2: 340,000 keys at 4 GiB.
const cataloguePart = 1. / 64

func newCatalogued(b kvstore.Backing, maxBytes int64) *catalogued {
	return &catalogued{Backing: b, keys: catalog.New(int64(cataloguePart * float64(maxBytes)))}
}

// Put implements kvstore.Backing.
func (c *catalogued) Put(key string, expires time.Time, value *kvstore.Lease) (written <-chan struct{}, taken bool) {
	i := catalog.Item{Key: key, Size: value.Size(), Expires: expires} // the lease is gone once it is taken
	written, taken = c.Backing.Put(key, expires, value)
	if taken {
		c.keys.Put(i)
	}
	return written, taken
}

// Get implements kvstore.Backing.
func (c *catalogued) Get(ctx context.Context, key string, place kvstore.Place) (bool, error) {
	i := catalog.Item{Key: key}
	found, err := c.Backing.Get(ctx, key, func(a kvstore.Arrival) ([][]byte, error) {
		i.Size, i.Expires = a.Size, a.Expires
		return place(a)
	})
	if found && err == nil {
		c.keys.Put(i)
	}
	return found, err
}

// MaxBytes implements Sized, as far as the tier does.
func (c *catalogued) MaxBytes() int64 {
	if s, ok := c.Backing.(Sized); ok {
		return s.MaxBytes()
	}
	return 0
}

// Sure implements kvstore.Sure, as far as the tier does.
func (c *catalogued) Sure(key string) bool {
	s, ok := c.Backing.(kvstore.Sure)
	return !ok || s.Sure(key)
}

// Delete implements kvstore.Backing.
func (c *catalogued) Delete(key string) bool {
	c.keys.Delete(key)
	return c.Backing.Delete(key)
}

// Page implements kvstore.Lister.
func (c *catalogued) Page(prefix, after string, limit int) (there []catalog.Item) {
	for len(there) < limit {
		page := c.keys.Page(prefix, after, limit-len(there))
		if len(page) == 0 {
			break
		}
		for _, i := range page {
			after = i.Key
			if c.Exists(i.Key, time.Time{}) {
				there = append(there, i)
			} else {
				c.keys.Delete(i.Key)
			}
		}
	}
	return there
}

var (
	_ kvstore.Lister = (*catalogued)(nil)
	_ kvstore.Sure   = (*catalogued)(nil)
)
