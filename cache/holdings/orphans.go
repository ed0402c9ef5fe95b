package holdings

import (
	"slices"

	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/cache/parts/linked"
)

// orphan is a store whose parent is not known. It waits, and what happens to its blocks meanwhile is counted in it.
type orphan struct {
	s      blocks.Stored
	copies [][2]uint16 // of each hash, by tier; none of what is counted elsewhere
	left   int         // hashes that have a copy
	age    linked.Links[orphan]
	// The list of those with the same parent.
	before, after *orphan
}

// berth is where a parked hash is counted.
type berth struct {
	o *orphan
	i int
}

// orphans is the bounded table of what waits for a parent. The oldest goes first. Not safe for concurrent use.
type orphans struct {
	most     int // blocks
	blocks   int // hashes with a copy, of all
	byParent map[uint64]*orphan
	byHash   map[uint64]berth
	ages     linked.List[orphan]
}

// park takes a copy of s, without the hashes for which skip returns true, and returns how many blocks it dropped for
// it.
func (o *orphans) park(s *blocks.Stored, skip func(hash uint64) bool) (dropped int) {
	if len(s.Hashes) > o.most {
		return len(s.Hashes)
	}
	if o.byParent == nil {
		o.byParent = map[uint64]*orphan{}
		o.byHash = map[uint64]berth{}
	}
	n := &orphan{s: *s, copies: make([][2]uint16, len(s.Hashes))}
	for i, h := range s.Hashes {
		if skip(h) || o.count(h, s.Medium, 1) {
			continue
		}
		n.copies[i][s.Medium] = 1
		n.left++
		o.byHash[h] = berth{o: n, i: i}
	}
	if n.left == 0 {
		return 0
	}
	n.s.Hashes = slices.Clone(s.Hashes)
	n.s.Tokens = slices.Clone(s.Tokens)
	n.s.Adapter = "" // the parent's plane is its plane
	n.s.Salt, n.s.Session = "", ""
	o.blocks += n.left
	o.link(n)
	for o.blocks > o.most {
		dropped += o.ages.First.left
		o.unpark(o.ages.First)
	}
	return dropped
}

// count adds to the copies of a parked hash, or takes from them. It reports whether the hash is parked and, to take
// one, has a copy in that tier.
func (o *orphans) count(hash uint64, t blocks.Medium, by int) bool {
	b, ok := o.byHash[hash]
	if !ok {
		return false
	}
	c := &b.o.copies[b.i]
	n := int(c[t]) + by
	if n < 0 {
		return false
	}
	c[t] = uint16(min(n, 1<<16-1))
	if *c == [2]uint16{} {
		delete(o.byHash, hash)
		b.o.left--
		o.blocks--
		if b.o.left == 0 {
			o.unlink(b.o)
		}
	}
	return true
}

// take returns the copies of a parked hash, which it has no longer.
func (o *orphans) take(hash uint64) (copies [2]uint16) {
	b, ok := o.byHash[hash]
	if !ok {
		return copies
	}
	copies = b.o.copies[b.i]
	for t := GPU; t <= Local; t++ {
		if copies[t] > 0 {
			o.count(hash, t, -int(copies[t]))
		}
	}
	return copies
}

// unpark takes an orphan out of the table.
func (o *orphans) unpark(n *orphan) {
	o.blocks -= n.left
	for i, h := range n.s.Hashes {
		if n.copies[i] != [2]uint16{} {
			delete(o.byHash, h)
		}
	}
	o.unlink(n)
}

func age(n *orphan) *linked.Links[orphan] { return &n.age }

func (o *orphans) link(n *orphan) {
	o.ages.Add(n, age)
	n.after = o.byParent[n.s.Parent]
	if n.after != nil {
		n.after.before = n
	}
	o.byParent[n.s.Parent] = n
}

func (o *orphans) unlink(n *orphan) {
	o.ages.Remove(n, age)
	if n.after != nil {
		n.after.before = n.before
	}
	switch {
	case n.before != nil:
		n.before.after = n.after
	case n.after != nil:
		o.byParent[n.s.Parent] = n.after
	default:
		delete(o.byParent, n.s.Parent)
	}
}
