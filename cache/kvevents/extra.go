package kvevents

import (
	"bytes"
	"hash/maphash"

	"github.com/tinylib/msgp/msgp"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// contentSeed makes the numbers that stand for what is not text.
var contentSeed = maphash.MakeSeed()

// readExtra reads extra_keys, one entry for each block: nil, or a list of the adapter's name, a pair (identifier,
// offset) for each image, cache_salt in the head's first block, and the digest of embeddings. It sets the salt and
// marks the tokens of blocks whose content is more than text. It reports whether there is an entry for each block.
func readExtra(extra []byte, s *blocks.Stored, adapter []byte) bool {
	if extra == nil {
		return true
	}
	c := cursor{b: extra}
	n, ok := c.array()
	if !ok || n != len(s.Hashes) {
		return false
	}
	for i := range n {
		if c.isNil() {
			continue
		}
		from := c.at
		if rich := readKeys(&c, s, adapter, i == 0 && !s.HasParent); rich && !c.bad && len(s.Tokens) > 0 {
			mark(s.Tokens[i*s.BlockSize:(i+1)*s.BlockSize], extra[from:c.at])
		}
	}
	return !c.bad
}

// readKeys reads the entry of one block and reports whether its content is more than text. Text in the first block of a
// prompt is the salt, which is the last of the texts there.
func readKeys(c *cursor, s *blocks.Stored, adapter []byte, head bool) (rich bool) {
	n, ok := c.array()
	if !ok {
		c.skip()
		return true
	}
	for range n {
		if c.next() == msgp.BinType { // a digest
			rich = true
			c.skip()
			continue
		}
		text, ok := c.text()
		switch {
		case !ok:
			rich = true
			c.skip()
		case len(adapter) > 0 && bytes.Equal(text, adapter):
		case head && s.Salt == "":
			s.Salt = string(text)
		default:
			rich = true
		}
	}
	return rich
}

// mark replaces the tokens of a block by numbers from 1<<31 on that depend on what else is in it.
func mark(tokens []uint32, content []byte) {
	h := maphash.Bytes(contentSeed, content)
	for i := range tokens {
		tokens[i] = 1<<31 | (uint32(h)+uint32(i)+tokens[i])&(1<<31-1)
	}
}
