package catalog

import (
	"strings"
	"sync"
	"time"

	radix "github.com/armon/go-radix"

	"github.com/warmpath/warmpath/cache/parts/linked"
)

// Item is one key of a tier.
type Item struct {
	Key     string
	Size    int64     // bytes of the value
	Expires time.Time // zero = never
}

// Catalog holds the keys of one tier. Many goroutines may call its methods at once.
type Catalog struct {
	mu       sync.Mutex // guards all below
	tree     *radix.Tree
	seen     [256]bool // bytes that have occurred in a key
	longest  int       // bytes of the longest key so far
	maxBytes int64
	bytes    int64 // of keys and records
	values   int64 // of the values
	dropped  uint64
	used     linked.List[node] // the last used last
}

// node is an item in the order of use.
type node struct {
	Item
	order linked.Links[node]
}

// recordBytes is the memory of a key without its own bytes: the item, its leaf and its share of the tree's inner nodes,
// as measured (TestRecordBytes).
const recordBytes = 200

// New makes an empty catalogue with that many bytes for keys and records; 0 = no bound.
func New(maxBytes int64) *Catalog { return &Catalog{tree: radix.New(), maxBytes: maxBytes} }

// Put enters a key, or updates its item.
func (c *Catalog) Put(i Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &node{Item: i}
	if v, ok := c.tree.Insert(i.Key, n); ok {
		old := v.(*node)
		c.values += i.Size - old.Size
		n.Key = old.Key // the tree keeps its bytes
		c.used.Remove(old, order)
		c.used.Add(n, order)
		return
	}
	c.used.Add(n, order)
	c.bytes += recordBytes + int64(len(i.Key))
	c.values += i.Size
	c.longest = max(c.longest, len(i.Key))
	for _, b := range []byte(i.Key) {
		c.seen[b] = true
	}
	for c.maxBytes > 0 && c.bytes > c.maxBytes && c.used.First != n {
		c.dropped++
		c.drop(c.used.First)
	}
}

// Delete drops a key and reports whether it was there.
func (c *Catalog) Delete(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.tree.Delete(key)
	if ok {
		c.forget(v.(*node))
	}
	return ok
}

// Get returns the item of a key, and counts as its use.
func (c *Catalog) Get(key string) (Item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.tree.Get(key)
	if !ok {
		return Item{}, false
	}
	n := v.(*node)
	c.used.Remove(n, order)
	c.used.Add(n, order)
	return n.Item, true
}

func (c *Catalog) drop(n *node) {
	c.tree.Delete(n.Key)
	c.forget(n)
}

// forget takes a node out of the order of use, and out of the sums. The caller has taken it out of the tree.
func (c *Catalog) forget(n *node) {
	c.used.Remove(n, order)
	c.bytes -= recordBytes + int64(len(n.Key))
	c.values -= n.Size
}

func order(n *node) *linked.Links[node] { return &n.order }

// Stats describes the content of a catalogue.
type Stats struct {
	Keys       int
	Bytes      int64  // of keys and records
	ValueBytes int64  // of the values that they name
	Dropped    uint64 // keys dropped because there were too many
}

// Stats returns the counts.
func (c *Catalog) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Keys: c.tree.Len(), Bytes: c.bytes, ValueBytes: c.values, Dropped: c.dropped}
}

// Page returns the first keys after one, in their order, that begin with a prefix: at most limit of them. after need
// not be a key; "" is before all keys. Expired items are listed until their owner deletes them.
func (c *Catalog) Page(prefix, after string, limit int) []Item {
	if limit <= 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := pager{catalog: c, after: after, limit: limit}
	switch {
	case after < prefix:
		p.walk(prefix)
	case strings.HasPrefix(after, prefix):
		after = after[:min(len(after), c.longest)]
		p.walkBehind(prefix, after)
	}
	return p.items
}

// pager collects a page. The catalogue's mu is held.
type pager struct {
	catalog *Catalog
	after   string
	limit   int
	items   []Item
}

func (p *pager) full() bool { return len(p.items) >= p.limit }

// walk adds the keys that begin with the prefix, and reports whether the page is full.
func (p *pager) walk(prefix string) bool {
	p.catalog.tree.WalkPrefix(prefix, func(key string, v any) bool {
		if key > p.after {
			p.items = append(p.items, v.(*node).Item)
		}
		return p.full()
	})
	return p.full()
}

// walkBehind adds the keys after a key: first those of which it is a prefix, then, for each of its own prefixes from
// the longest on, those that continue with a larger byte.
func (p *pager) walkBehind(prefix, key string) {
	if p.walk(key) {
		return
	}
	buffer := []byte(key)
	for at := len(key) - 1; at >= len(prefix); at-- {
		for b := int(key[at]) + 1; b < 256; b++ {
			if !p.catalog.seen[b] {
				continue
			}
			buffer[at] = byte(b)
			if p.walk(string(buffer[:at+1])) {
				return
			}
		}
	}
}
