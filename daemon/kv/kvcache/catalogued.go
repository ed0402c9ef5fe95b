package kvcache

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
	"github.com/warmpath/warmpath/cache/kvstore/remote"
)

// catalogued is a tier behind with a catalogue of the keys that this daemon put there or found there. If the tier loses
// a key later, the key is removed from the catalogue when somebody lists it, or when tend checks it.
type catalogued struct {
	kvstore.Backing
	keys   *catalog.Catalog
	losses *kvstore.Losses // notes the keys that the tier has lost; nil = not needed
}

// cataloguePart is the part of max_bytes for the catalogue of L2: 340,000 keys at 4 GiB.
const cataloguePart = 1. / 64

func newCatalogued(b kvstore.Backing, maxBytes int64, losses *kvstore.Losses) *catalogued {
	return &catalogued{Backing: b, keys: catalog.New(int64(cataloguePart * float64(maxBytes))), losses: losses}
}

// Put implements kvstore.Backing.
func (c *catalogued) Put(key string, expires time.Time, value *kvstore.Lease) (written <-chan struct{}, taken bool) {
	i := catalog.Item{Key: key, Size: value.Size(), Expires: expires} // Put may release the lease
	written, taken = c.Backing.Put(key, expires, value)
	if taken {
		c.keys.Put(i)
	}
	return written, taken
}

// Get implements kvstore.Backing.
func (c *catalogued) Get(ctx context.Context, key string, place kvstore.Place) (bool, error) {
	i := catalog.Item{Key: key}
	unsure := c.unsure(key)
	found, err := c.Backing.Get(ctx, key, func(a kvstore.Arrival) ([][]byte, error) {
		i.Size, i.Expires = a.Size, a.Expires
		return place(a)
	})
	switch {
	case err != nil:
	case found:
		c.keys.Put(i)
	case !unsure && !c.unsure(key):
		c.lost(key)
	}
	return found, err
}

// MaxBytes implements Sized; 0 if the tier does not.
func (c *catalogued) MaxBytes() int64 {
	if s, ok := c.Backing.(Sized); ok {
		return s.MaxBytes()
	}
	return 0
}

// Sure implements kvstore.Sure; it is true if the tier does not.
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
			if c.confirm(i.Key) {
				there = append(there, i)
			}
		}
	}
	return there
}

// confirm reports whether the tier has a key of the catalogue, and drops the key if the tier has lost it.
func (c *catalogued) confirm(key string) bool {
	unsure := c.unsure(key) // before and after: its server may come back meanwhile
	if c.Exists(key, time.Time{}) {
		return true
	}
	if !unsure && !c.unsure(key) {
		c.lost(key)
	}
	return false
}

// lost drops a key that the tier does not have.
func (c *catalogued) lost(key string) {
	if c.keys.Delete(key) {
		c.losses.Note(key)
	}
}

func (c *catalogued) unsure(key string) bool {
	u, ok := c.Backing.(Unsure)
	return ok && u.Unsure(key)
}

// Unsure is a kvstore.Backing whose servers may be away for a while. Unsure reports whether the false of Exists for a
// key is no proof that the key is missing. It uses the tier's own memory.
type Unsure interface{ Unsure(key string) bool }

// Checked is a kvstore.Backing whose servers lose values without notice. Check sends them the keys and drops what they
// have lost. It waits for them as long as for a value.
type Checked interface {
	Check(ctx context.Context, keys []string)
}

// tended is how many keys of the catalogue are checked each second: all 340,000 of 4 GiB in six minutes.
const tended = 1000

// tend drops the keys that the tier has lost, until ctx ends.
func (c *catalogued) tend(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for after := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			after = c.tendFrom(ctx, after)
		}
	}
}

// tendFrom checks the keys after one, and returns the key after which to go on, or "" to begin again.
func (c *catalogued) tendFrom(ctx context.Context, after string) string {
	page := c.keys.Page("", after, tended)
	if b, ok := c.Backing.(Checked); ok {
		keys := make([]string, len(page))
		for n, i := range page {
			keys[n] = i.Key
		}
		b.Check(ctx, keys)
	}
	for _, i := range page {
		c.confirm(i.Key)
	}
	if len(page) < tended {
		return ""
	}
	return page[len(page)-1].Key
}

var (
	_ kvstore.Lister = (*catalogued)(nil)
	_ kvstore.Sure   = (*catalogued)(nil)
	_ Checked        = (*remote.Remote)(nil)
)
