package prefix

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
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

// lightest returns the namespace that holds the fewest blocks, of equal ones the one longest unused. It passes over
// those used after recent: one that has just been made is about to get its first blocks. So clients that make up salts
// push out each other's, and no namespace that workers hold much of. It walks all namespaces: an ordered list would
// make every lookup a writer.
func (d directory) lightest(recent int64) *Namespace {
	var found *Namespace
	least := math.MaxInt
	d.tree.Walk(func(_ string, v any) bool {
		n := v.(*Namespace)
		if n.used.Load() > recent {
			return false
		}
		held := n.root.weigh(least)
		if found == nil || held < least || held == least && n.used.Load() < found.used.Load() {
			found, least = n, held
		}
		return false
	})
	return found
}

// weigh returns how many blocks are held in the tree below a root, by all workers together. It stops
// counting above most.
func (n *node) weigh(most int) (blocks int) {
	stack := []*node{n}
	for len(stack) > 0 && blocks <= most {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i := range n.held {
			blocks += int(n.held[i].length)
		}
		for k := range n.kids.all {
			stack = append(stack, k)
			if len(stack) > most {
				return len(stack) // each holds a block at least
			}
		}
	}
	return blocks
}
