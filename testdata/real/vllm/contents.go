package main

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// contents is what a worker holds, rebuilt from its events in the plainest way: the oracle of these checks. A block's
// key stands for its tokens and all before them; the worker's own hashes only lead to keys.
type contents struct {
	keys   map[string]key // by the worker's hash
	copies map[key]int    // the same block may be held twice
	size   int            // tokens of a block; 0 = nothing stored yet
	orphan int            // stored after a block that is not known
}

type key [16]byte

func newContents() *contents { return &contents{keys: map[string]key{}, copies: map[key]int{}} }

// after returns the key of a block that follows another one; the zero key is the root.
func (k key) after(tokens []uint32) (next key) {
	h := fnv.New128a()
	_, _ = h.Write(k[:])
	for _, t := range tokens {
		_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, t))
	}
	h.Sum(next[:0])
	return next
}

func (c *contents) apply(e *event) {
	switch e.Kind {
	case "cleared":
		clear(c.keys)
		clear(c.copies)
	case "removed":
		for _, hash := range e.Hashes {
			k := c.keys[hash]
			c.copies[k]--
			if c.copies[k] <= 0 {
				delete(c.copies, k)
			}
		}
	case "stored":
		c.store(e)
	}
}

func (c *contents) store(e *event) {
	var k key
	if e.Parent != nil {
		var known bool
		k, known = c.keys[*e.Parent]
		if !known {
			c.orphan++
			return
		}
	}
	c.size = e.Size
	at := 0
	for tokens := range slices.Chunk(e.Tokens, e.Size) {
		if at == len(e.Hashes) {
			return
		}
		k = k.after(tokens)
		c.keys[e.Hashes[at]] = k
		c.copies[k]++
		at++
	}
}

// held returns how many leading tokens of a prompt the worker finds in its cache. It never takes the whole prompt from
// there: the last token is computed anew.
func (c *contents) held(ids []uint32) int {
	if c.size == 0 || len(ids) == 0 {
		return 0
	}
	var k key
	n := 0
	for tokens := range slices.Chunk(ids[:(len(ids)-1)/c.size*c.size], c.size) {
		k = k.after(tokens)
		if c.copies[k] == 0 {
			break
		}
		n += c.size
	}
	return n
}

// heldAfter returns held of the contents after the given batches.
func heldAfter(batches []*batch, ids []uint32) int {
	c := newContents()
	for _, b := range batches {
		for i := range b.Events {
			c.apply(&b.Events[i])
		}
	}
	return c.held(ids)
}
