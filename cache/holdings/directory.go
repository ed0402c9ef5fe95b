package holdings

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/armon/go-radix"
)

const (
	// maxName bounds a key: the salt is the client's.
	maxName = 256
	// maxSizes bounds the block sizes of one adapter and salt. A fleet has one or two: the engine's and its offload's.
	maxSizes = 8
)

var escaped = strings.NewReplacer("%", "%25", "#", "%23")

// keyOf returns the directory's key, "adapter#salt". The first # ends the adapter, whatever its name.
func keyOf(adapter, salt string) string {
	if adapter == "" && salt == "" {
		return "#"
	}
	key := escaped.Replace(adapter) + "#" + salt
	if len(key) <= maxName {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:maxName-hex.EncodedLen(len(sum))] + hex.EncodeToString(sum[:])
}

// directory leads from adapter and salt to the planes, one for each block size.
type directory struct {
	total atomic.Int64 // blocks of all runs
	most  int          // planes

	mu   sync.RWMutex // guards tree and n. No other lock is taken under it
	tree *radix.Tree  // key -> []*plane, which is never changed in place
	n    int
}

// planes returns those of a key, of any block size.
func (d *directory) planes(key string) []*plane {
	d.mu.RLock()
	defer d.mu.RUnlock()
	v, ok := d.tree.Get(key)
	if !ok {
		return nil
	}
	return v.([]*plane)
}

// plane returns the one of a key and size with its lock held, making it if need be; nil if there are too many.
func (d *directory) plane(key string, size int) *plane {
	for {
		p := d.find(key, size)
		if p == nil {
			p = d.create(key, size)
		}
		if p == nil {
			return nil
		}
		p.mu.Lock()
		if !p.gone {
			return p
		}
		p.mu.Unlock()
		d.discard(p)
	}
}

func (d *directory) find(key string, size int) *plane {
	for _, p := range d.planes(key) {
		if p.size == size {
			return p
		}
	}
	return nil
}

func (d *directory) create(key string, size int) *plane {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []*plane
	if v, ok := d.tree.Get(key); ok {
		all = v.([]*plane)
	}
	if i := slices.IndexFunc(all, func(p *plane) bool { return p.size == size }); i >= 0 {
		return all[i] // made between the two locks
	}
	if len(all) >= maxSizes || d.n >= d.most {
		return nil
	}
	p := &plane{key: strings.Clone(key), size: size, total: &d.total}
	d.tree.Insert(p.key, append(slices.Clip(all), p))
	d.n++
	return p
}

// unlock ends what d.plane began, or p.mu.Lock, and discards the plane if nothing is left in it.
func (d *directory) unlock(p *plane) {
	gone := p.nodes == 0
	p.gone = gone
	p.mu.Unlock()
	if gone {
		d.discard(p)
	}
}

func (d *directory) discard(p *plane) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.tree.Get(p.key)
	if !ok {
		return
	}
	all := v.([]*plane)
	i := slices.Index(all, p)
	switch {
	case i < 0:
		return
	case len(all) == 1:
		d.tree.Delete(p.key)
	default:
		d.tree.Insert(p.key, slices.Concat(all[:i], all[i+1:]))
	}
	d.n--
}
