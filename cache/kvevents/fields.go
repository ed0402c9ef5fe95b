package kvevents

import (
	"encoding/binary"
	"math"
	"slices"
)

// event is one event's fields as they came, in either form.
type event struct {
	tag      []byte
	hashes   []uint64
	tokens   []uint32
	parent   uint64
	size     uint64
	loraID   uint64
	group    uint64
	medium   []byte
	lora     []byte
	kind     []byte
	locality []byte
	session  []byte
	extra    []byte // extra_keys, still encoded

	hasParent, hasLoraID, hasGroup, sliding bool
	odd                                     bool // a field has a type that was never seen
	over                                    bool // more hashes or tokens than an event may have
}

// reset empties the event, and gives back scratch that an unusual one has made large.
func (e *event) reset() {
	hashes, tokens := e.hashes[:0], e.tokens[:0]
	if cap(hashes) > keepWords {
		hashes = nil
	}
	if cap(tokens) > keepWords {
		tokens = nil
	}
	*e = event{hashes: hashes, tokens: tokens}
}

// Elements of the array form after the tag. Each release appended some, so a shorter array lacks the last ones.
var (
	storedFields = []string{"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium",
		"lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"}
	removedFields = []string{"block_hashes", "medium", "group_idx"}
)

// positional reads the n elements of the array form.
func (e *event) positional(c *cursor, n int) {
	if n == 0 {
		return
	}
	var ok bool
	e.tag, ok = c.text()
	if !ok {
		c.skip()
	}
	var fields []string
	switch string(e.tag) {
	case "BlockStored":
		fields = storedFields
	case "BlockRemoved":
		fields = removedFields
	}
	for i := range n - 1 {
		if i < len(fields) {
			e.field(c, []byte(fields[i]))
		} else {
			c.skip()
		}
	}
}

// field reads the value of one field. nil is the default of all.
func (e *event) field(c *cursor, name []byte) {
	if c.bad || c.isNil() {
		return
	}
	ok := true
	switch string(name) {
	case "type":
		e.tag, ok = c.text()
	case "block_hashes":
		ok = e.readHashes(c)
	case "parent_block_hash":
		e.parent, ok = c.hash()
		e.hasParent = true
	case "token_ids":
		ok = e.readTokens(c)
	case "block_size":
		e.size, ok = c.integer()
	case "lora_id":
		e.loraID, ok = c.integer()
		e.hasLoraID = ok
	case "medium":
		e.medium, ok = c.text()
	case "lora_name":
		e.lora, ok = c.text()
	case "extra_keys":
		from := c.at
		c.skip()
		if !c.bad {
			e.extra = c.b[from:c.at]
		}
	case "group_idx":
		e.group, ok = c.integer()
		e.hasGroup = ok
	case "kv_cache_spec_kind":
		e.kind, ok = c.text()
	case "kv_cache_spec_sliding_window":
		e.sliding = true
		c.skip()
	case "locality":
		e.locality, ok = c.text()
	case "session_id":
		e.session, ok = c.text()
	default:
		c.skip()
	}
	if !ok {
		e.odd = true
		c.skip()
	}
}

// readHashes reads the list of hashes. One that is no hash makes the event odd.
func (e *event) readHashes(c *cursor) bool {
	n, ok := c.array()
	if !ok {
		return false
	}
	if n > maxBlocks {
		e.over = true
		for range n {
			c.skip()
		}
		return true
	}
	e.hashes = slices.Grow(e.hashes, n)
	for range n {
		h, ok := c.hash()
		if !ok {
			e.odd = true
			c.skip()
		}
		e.hashes = append(e.hashes, h)
	}
	return true
}

// First bytes of msgpack values that are read here and not by the library; below mpFixMap are the positive fixints.
const (
	mpFixMap = 0x80
	mpUint8  = 0xcc
	mpUint16 = 0xcd
	mpUint32 = 0xce
	mpUint64 = 0xcf
)

// width is how a number lies in msgpack by its first byte: size bytes in all, of which those after the first shifted
// right are the number, or base is it. size 0 = no unsigned number of up to 32 bits.
type width struct{ size, shift, base uint8 }

var widths = func() (w [256]width) {
	for x := range mpFixMap {
		w[x] = width{size: 1, shift: 32, base: uint8(x)}
	}
	w[mpUint8] = width{size: 2, shift: 24}
	w[mpUint16] = width{size: 3, shift: 16}
	w[mpUint32] = width{size: 5}
	return w
}()

// readTokens reads the list of token ids. Most of a payload is this. Ids of one vocabulary have three widths in no
// order, which a branch would guess wrong every other time: a table leaves none.
func (e *event) readTokens(c *cursor) bool {
	n, ok := c.array()
	if !ok {
		return false
	}
	if n > maxTokens {
		e.over = true
		for range n {
			c.skip()
		}
		return true
	}
	tokens := slices.Grow(e.tokens, n)[:n]
	b, at := c.b, c.at
	for i := range tokens {
		if at+5 <= len(b) {
			w := widths[b[at]]
			if w.size > 0 {
				tokens[i] = binary.BigEndian.Uint32(b[at+1:])>>w.shift | uint32(w.base)
				at += int(w.size)
				continue
			}
		}
		c.at = at
		tokens[i] = e.readToken(c)
		at = c.at
	}
	c.at = at
	e.tokens = tokens
	return true
}

// readToken reads one id with care.
func (e *event) readToken(c *cursor) uint32 {
	v, ok := c.integer()
	if !ok {
		c.skip()
	}
	if !ok || v > math.MaxInt32 {
		e.odd = true
	}
	return uint32(v)
}
