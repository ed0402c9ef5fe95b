package prompt

import (
	"encoding/binary"
	"slices"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/zeebo/xxh3"
)

const (
	// BlockBytes is the run of canonical text under one hash.
	BlockBytes = abi.BlockBytes
	// BlockTokens is the run of token ids under one hash: vLLM's default block size.
	BlockTokens = 16

	tokenBytes = 4
)

// The domains keep prompts of different kinds apart: a chat's canonical text, a completion's bare text and token ids
// never share a KV block, whatever their bytes. Anthropic's Messages are a chat to vLLM, with the same tokens.
// Responses are a chat with other tokens, since their renderer begins with the first token twice: it counts 19 for a
// prompt of 18 in 0.11.
const (
	domainChat = iota + 1
	domainText
	domainTokens
	domainResponses
)

// Chain is the chained block hashes of one prompt: hash i covers block i and all before it, so two chains agree up to
// a point and differ from there on. What does not fill a block yet is kept, so that the answer continues it. A copy
// shares Hashes; continue only one of the two.
type Chain struct {
	Hashes []uint64 // one per full block
	Bytes  int      // canonical length, the unhashed rest included
	Tokens int      // token ids; 0 if the prompt is text
	Media  bool     // it has images, sounds or films, whose tokens have nothing to do with its length
	Fine   Fine     // the block that Request.Watch has named, if the chain is so long

	hash  uint64 // of the last full block, or the seed
	size  int    // bytes in a block
	n     int    // bytes in tail
	watch int    // 1 + the index of the block for Fine; 0 = none
	fixed bool   // the answer does not come back behind this prompt (echo, continue_final_message, a body cut short)
	open  bool   // fixed, but the answer comes back as the rest of the last message, before the mark of that one's end
	tail  [BlockBytes]byte
}

func (c *Chain) reset(seed uint64, domain byte) {
	c.Hashes = c.Hashes[:0]
	c.Bytes = 0
	c.Tokens = 0
	c.Media = false
	c.Fine = Fine{}
	c.n = 0
	c.fixed, c.open = false, false
	c.size = BlockBytes
	if domain == domainTokens {
		c.size = BlockTokens * tokenBytes
	}
	c.hash = xxh3.HashSeed([]byte{domain}, seed)
}

// Append continues a text chain. For a completion that is the text itself; a chat's text is made by [Request.Hash]
// and [Reply.ExtendChoice].
func (c *Chain) Append(text []byte) {
	c.Bytes += len(text)
	if c.n > 0 {
		k := copy(c.tail[c.n:c.size], text)
		text = text[k:]
		c.n += k
		if c.n < c.size {
			return
		}
		c.fold(c.tail[:c.size])
	}
	if full := len(text) - len(text)%c.size; full > 0 {
		c.fold(text[:full])
		text = text[full:]
	}
	c.n = copy(c.tail[:], text)
}

// AppendTokens continues a token chain.
func (c *Chain) AppendTokens(ids []uint32) {
	for _, id := range ids {
		c.token(id)
	}
}

func (c *Chain) token(id uint32) {
	binary.LittleEndian.PutUint32(c.tail[c.n:], id)
	c.Tokens++
	c.Bytes += tokenBytes
	c.n += tokenBytes
	if c.n == c.size {
		c.fold(c.tail[:c.size])
		c.n = 0
	}
}

// mark appends one byte.
func (c *Chain) mark(b byte) {
	c.tail[c.n] = b
	c.Bytes++
	c.n++
	if c.n == c.size {
		c.fold(c.tail[:c.size])
		c.n = 0
	}
}

// fold hashes whole blocks. The hash before is the seed of the next: no copy of it into the block is needed. 0 is
// kept free, since the strategies' contract uses it for "no such block".
func (c *Chain) fold(blocks []byte) {
	h := c.hash
	out := slices.Grow(c.Hashes, len(blocks)/c.size)
	var watched []byte
	if at := c.watch - 1 - len(out); at >= 0 && at < len(blocks)/c.size {
		watched = blocks[at*c.size:][:c.size]
	}
	for ; len(blocks) > 0; blocks = blocks[c.size:] {
		h = max(xxh3.HashSeed(blocks[:c.size], h), 1)
		out = append(out, h)
	}
	c.hash = h
	c.Hashes = out
	if watched != nil {
		c.look(watched)
	}
}

// look fills Fine with its block, which has been folded.
func (c *Chain) look(block []byte) {
	before := uint64(0)
	if c.watch > 1 {
		before = c.Hashes[c.watch-2]
	}
	c.Fine.Block = c.watch
	c.Fine.read(block, before)
}

// sum returns the digest of a chain that is used as one.
func (c *Chain) sum() uint64 { return xxh3.HashSeed(c.tail[:c.n], c.hash) }
