package replay

import (
	"encoding/binary"
	"io"
	"strconv"
)

// prompt describes the body of one completion request; bodies are made from it
// while they are sent. It is a value: a retry starts a new body from it.
type prompt struct {
	head, tail string // the JSON before and after the prompt's text
	blocks     []uint64
	seed       uint64
	blockBytes int
	textBytes  int
}

func newPrompt(c *Config, modelJSON string, seed uint64, r *Request) prompt {
	return prompt{
		head: `{"model":` + modelJSON + `,"max_tokens":` + strconv.Itoa(r.OutputTokens) +
			`,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true},"prompt":"`,
		tail:       `"}`,
		blocks:     r.Blocks,
		seed:       seed,
		blockBytes: orDefault(r.BlockTokens, BlockTokens) * c.BytesPerToken,
		textBytes:  r.InputTokens * c.BytesPerToken,
	}
}

func (p prompt) size() int64 { return int64(len(p.head) + p.textBytes + len(p.tail)) }

// body is the reader of one prompt. Not safe for concurrent use.
type body struct {
	prompt
	off int // bytes read so far, head and tail included
}

// Read makes the next bytes straight into b.
func (r *body) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) && int64(r.off) < r.size() {
		m := r.writePart(b[n:])
		n += m
		r.off += m
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// writePart writes from one part of the body, head, block or tail, and at least a byte.
func (r *body) writePart(b []byte) int {
	at := r.off
	if at < len(r.head) {
		return copy(b, r.head[at:])
	}
	at -= len(r.head)
	if at >= r.textBytes {
		return copy(b, r.tail[at-r.textBytes:])
	}
	from := at % r.blockBytes
	end := min(r.blockBytes, r.textBytes-(at-from)) // of this block's text
	n := min(len(b), end-from)
	blockText(b[:n], r.seed, r.blocks[at/r.blockBytes], from)
	return n
}

// Close does nothing: there is nothing to give back.
func (r *body) Close() error { return nil }

// blockText writes the text of a block from byte offset from on. Every 8 bytes
// are the letters a to p for 8 nibbles of a splitmix64 of block and place: no
// letter needs escaping in JSON, a token of 4 bytes takes 65,536 values, and
// any place can be made without the bytes before it.
func blockText(b []byte, seed, id uint64, from int) {
	base := mix(mix(seed) + id)
	word := uint64(from / 8)
	if skip := from % 8; skip > 0 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], letters(base+word))
		b = b[copy(b, w[skip:]):]
		word++
	}
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, letters(base+word))
		word++
	}
	if len(b) > 0 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], letters(base+word))
		copy(b, w[:])
	}
}

// letters returns 8 letters, one for each nibble that it keeps.
func letters(x uint64) uint64 {
	return mix(x)&0x0f0f0f0f0f0f0f0f + 0x6161616161616161
}

// mix returns what splitmix64 makes of x.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
