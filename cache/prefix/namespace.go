package prefix

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync/atomic"
)

// Namespace is one tree: prompts of different namespaces never share a block, whatever their hashes. Safe for concurrent
// use. It may be kept; once evicted it matches nothing and learns nothing.
type Namespace struct {
	index *Index
	key   string
	used  atomic.Int64
	root  node // guarded by index.mu
	gone  bool // guarded by index.mu
}

// maxName bounds a key of the directory: the salt is the client's, and 4096 of a megabyte each would be its memory attack.
const maxName = 256

// Namespace returns the tree of that name ("model:adapter#salt"), making it if need be. When there are too many, the one
// longest unused goes, with all that was known in it.
func (x *Index) Namespace(name string) *Namespace {
	key := bounded(name)
	x.mu.RLock()
	v, ok := x.names.Get(key)
	x.mu.RUnlock()
	if !ok {
		return x.create(key)
	}
	n := v.(*Namespace)
	n.used.Store(x.ticks.Add(1))
	return n
}

func bounded(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName-hex.EncodedLen(len(sum))] + hex.EncodeToString(sum[:])
}

func (x *Index) create(key string) *Namespace {
	x.mu.Lock()
	defer x.mu.Unlock()
	if v, ok := x.names.Get(key); ok { // made between the two locks
		return v.(*Namespace)
	}
	for x.names.Len() >= x.maxNames {
		x.forget(x.idlest())
	}
	n := &Namespace{index: x, key: strings.Clone(key)} // the name may be part of a request's body
	n.used.Store(x.ticks.Add(1))
	x.names.Insert(n.key, n)
	return n
}

// idlest scans: an ordered list would make every lookup a writer.
func (x *Index) idlest() *Namespace {
	var oldest *Namespace
	x.names.Walk(func(_ string, v any) bool {
		if n := v.(*Namespace); oldest == nil || n.used.Load() < oldest.used.Load() {
			oldest = n
		}
		return false
	})
	return oldest
}

// Forget drops every namespace whose name starts with prefix and returns how many: "model:" when a model is gone.
func (x *Index) Forget(prefix string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []*Namespace
	x.names.WalkPrefix(prefix, func(_ string, v any) bool {
		all = append(all, v.(*Namespace))
		return false
	})
	for _, n := range all {
		x.forget(n)
	}
	return len(all)
}

func (x *Index) forget(n *Namespace) {
	x.names.Delete(n.key)
	n.gone = true
	x.prune(&n.root)
	n.root.kids = kids{}
}

// prune takes every holder below n out of its worker's LRU. Its depth is that of the tree, so it keeps its own stack.
func (x *Index) prune(root *node) {
	stack := []*node{root}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, h := range n.held {
			w := &x.workers[h.slot]
			w.blocks -= int(h.length)
			w.drop(h.rec)
			x.crowded += uint64(h.length)
		}
		if n.parent != nil {
			x.nodes--
		}
		if n.kids.one != nil {
			stack = append(stack, n.kids.one)
		}
		for _, k := range n.kids.many {
			stack = append(stack, k)
		}
	}
}
