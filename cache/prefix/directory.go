package prefix

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/armon/go-radix"
)

// maxName bounds a key of the directory. Clients choose the salt: with 4096 salts of a megabyte each one could attack
// the router's memory.
const maxName = 256

// bounded returns the directory's key for a name.
func bounded(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName-hex.EncodedLen(len(sum))] + hex.EncodeToString(sum[:])
}

// directory maps names to namespaces. It is not safe for concurrent use.
type directory struct{ tree *radix.Tree }

// get returns the namespace of a name; nil if there is none.
func (d directory) get(key string) *Namespace {
	v, ok := d.tree.Get(key)
	if !ok {
		return nil
	}
	return v.(*Namespace)
}

// add stores a namespace. It copies the name, which may be part of a request's body.
func (d directory) add(n *Namespace) {
	n.key = strings.Clone(n.key)
	d.tree.Insert(n.key, n)
}

func (d directory) remove(n *Namespace) { d.tree.Delete(n.key) }

func (d directory) len() int { return d.tree.Len() }

// all returns the namespaces.
func (d directory) all() (list []*Namespace) {
	d.tree.Walk(func(_ string, v any) bool {
		list = append(list, v.(*Namespace))
		return false
	})
	return list
}

// idlest returns the namespace longest unused. It walks all namespaces: an ordered list would make every lookup a
// writer.
func (d directory) idlest() *Namespace {
	var oldest *Namespace
	d.tree.Walk(func(_ string, v any) bool {
		if n := v.(*Namespace); oldest == nil || n.used.Load() < oldest.used.Load() {
			oldest = n
		}
		return false
	})
	return oldest
}
