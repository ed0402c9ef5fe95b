package kvstore

import (
	"cmp"
	"slices"

	"github.com/warmpath/warmpath/cache/kvstore/catalog"
)

// Lister is a Backing that can list its keys, as catalog.Page does. It waits for no network.
type Lister interface {
	Page(prefix, after string, limit int) []catalog.Item
}

// Listed is one key of the store, with the tiers that have it.
type Listed struct {
	catalog.Item
	Memory, Disk, Far bool // Disk and Far only of a Lister
}

// span selects the keys to list.
type span struct {
	prefix, after string
	limit         int
}

// pageStep is how many keys are listed under a lock that puts wait for.
const pageStep = 100

// page lists the keys of memory and of the tiers behind, one step after the other.
func page(memory *catalog.Catalog, b *behind, s span) (all []Listed) {
	for len(all) < s.limit {
		step := span{prefix: s.prefix, after: s.after, limit: min(pageStep, s.limit-len(all))}
		some := pageOnce(memory, b, step)
		all = append(all, some...)
		if len(some) < step.limit {
			break
		}
		s.after = some[len(some)-1].Key
	}
	return all
}

// pageOnce lists one step. Keys that the tiers together have beyond it are left to the next step.
func pageOnce(memory *catalog.Catalog, b *behind, s span) (some []Listed) {
	for _, i := range memory.Page(s.prefix, s.after, s.limit) {
		some = append(some, Listed{Item: i, Memory: true})
	}
	for n, t := range b.all {
		l, ok := t.(Lister)
		if !ok {
			continue
		}
		for _, i := range l.Page(s.prefix, s.after, s.limit) {
			at, both := slices.BinarySearchFunc(some, i.Key, byKey)
			if !both {
				some = slices.Insert(some, at, Listed{Item: i})
			}
			some[at].Disk = some[at].Disk || n < b.here
			some[at].Far = some[at].Far || n >= b.here
		}
	}
	return some[:min(len(some), s.limit)]
}

func byKey(l Listed, key string) int { return cmp.Compare(l.Key, key) }
