package tokens

import (
	"container/list"
	"sync"
)

// cache keeps the ids of texts, those used last, within a bound of bytes. Texts of which one continues the other share
// the memory of the longer one's ids. It is safe for concurrent use. The ids that it returns are never changed.
type cache struct {
	mu    sync.Mutex // guards all below
	max   int
	bytes int
	of    map[digest]*list.Element // of *entry
	used  *list.List               // the last used first
}

// cachedText is a text in the cache.
type cachedText struct {
	key digest
	run *run
	n   int // of the run's ids
}

// run is a list of ids that one or more entries begin with.
type run struct {
	ids  []uint32
	uses int // entries
}

const (
	idBytes    = 4
	entryBytes = 200 // of an entry without its ids: a map's slot, a list's element, entry and run
)

func newCache(bytes int) *cache {
	return &cache{max: bytes, of: map[digest]*list.Element{}, used: list.New()}
}

// get returns the ids of a text.
func (c *cache) get(key digest) ([]uint32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.of[key]
	if !ok {
		return nil, false
	}
	c.used.MoveToFront(e)
	is := e.Value.(*cachedText)
	return is.run.ids[:is.n:is.n], true
}

// put enters texts: that of keys[i] has the first counts[i] of the ids. Ids that would take a quarter of the cache for
// themselves are not kept.
func (c *cache) put(ids []uint32, keys []digest, counts []int) {
	if cap(ids)-len(ids) > len(ids)/8 {
		ids = append(make([]uint32, 0, len(ids)), ids...)
	}
	r := &run{ids: ids}
	c.mu.Lock()
	defer c.mu.Unlock()
	if idBytes*len(ids) > c.max/4 {
		return
	}
	for i, key := range keys {
		if old, ok := c.of[key]; ok {
			c.remove(old)
		}
		if r.uses == 0 {
			c.bytes += idBytes * len(ids)
		}
		r.uses++
		c.bytes += entryBytes
		c.of[key] = c.used.PushFront(&cachedText{key: key, run: r, n: counts[i]})
	}
	c.shrink()
}

// resize sets the bound.
func (c *cache) resize(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max = bytes
	c.shrink()
}

// shrink drops the texts used least recently. The caller holds c.mu.
func (c *cache) shrink() {
	for c.bytes > c.max && c.used.Len() > 0 {
		c.remove(c.used.Back())
	}
}

// remove drops a text. The caller holds c.mu.
func (c *cache) remove(e *list.Element) {
	is := c.used.Remove(e).(*cachedText)
	delete(c.of, is.key)
	c.bytes -= entryBytes
	is.run.uses--
	if is.run.uses == 0 {
		c.bytes -= idBytes * len(is.run.ids)
	}
}
