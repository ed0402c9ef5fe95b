// Package jsonwalk walks through JSON that arrives in pieces of any size. It keeps only the keys around the place
// where it is, allocates nothing and does not check the text: in a text that is not JSON it continues as it would in
// JSON.
//
// Use it for an answer or a body that is read as it passes, or of which only a part is there. For a text that lies
// whole in memory use package prompt: its scanner checks the text and returns the places of values.
package jsonwalk

import "bytes"

// Token is what a run of bytes is.
type Token uint8

// The tokens.
const (
	Space   Token = iota
	Open          // the bracket before an object or a list
	Close         // the bracket behind it
	Comma         // between fields or elements
	Colon         // between a key and its value
	Key           // a part of a key with its quotes, or of a string in a list
	Quote         // the quote before or behind a string that is a field's value
	Text          // inside of this string
	Escape        // a backslash in it, the byte behind it, or both
	Literal       // the first bytes of a number, true, false or null, or of several that begin a list, with their commas
	Rest          // more of a Literal that an earlier piece began
)

const (
	levels = 6                                         // whose keys are known, from the outermost
	maxKey = uint8(len("cache_creation_input_tokens")) // the longest key that is compared
)

// key is the last key of a level.
type key struct {
	text [maxKey + 1]byte
	n    uint8 // bytes of it, at most one more than maxKey
}

// Walker walks through one text. Its zero value is at the beginning.
type Walker struct {
	place
	keys [levels + 1]key // of each level from 1 on; the first one is that of all others
}

// place is where a walker is.
type place struct {
	depth   int
	value   bool   // what comes next is a field's value
	list    bool   // the last token, apart from spaces, opened a list
	text    bool   // inside of a string
	literal bool   // inside another value
	many    bool   // it may be several, with commas between
	escaped bool   // the next byte of the string is escaped
	digits  int    // of a \u escape in a key, that are still to come
	code    uint64 // the digits that have come
}

// Reset begins another text.
func (w *Walker) Reset() {
	w.place = place{}
	w.keys[0].n = 0 // those of the others are emptied when their level begins
}

// Depth returns how many objects and lists are open.
func (w *Walker) Depth() int { return w.depth }

// InText reports whether the next byte is inside a string.
func (w *Walker) InText() bool { return w.text }

// Key returns the key of a level: level 1 has the fields of the outermost object. That of a list is empty. It holds
// until the next call.
func (w *Walker) Key(level int) []byte {
	k := w.level(level)
	return k.text[:k.n]
}

// At reports whether the next value, or the one whose first bytes came last, is that of a field at this path.
func (w *Walker) At(path ...string) bool {
	if !w.value || w.depth != len(path) {
		return false
	}
	for i, name := range path {
		if string(w.Key(i+1)) != name {
			return false
		}
	}
	return true
}

func (w *Walker) level(i int) *key {
	if i < 0 || i > levels {
		i = 0
	}
	return &w.keys[i]
}

// Next returns what the text goes on with, and how many bytes of p, which is not empty, are of it.
func (w *Walker) Next(p []byte) (t Token, n int) {
	if w.text {
		switch c := p[0]; {
		case !w.value:
			return Key, w.inKey(p)
		case w.escaped:
			w.escaped = false
			return Escape, 1
		case c == '"':
			w.text = false
			return Quote, 1
		case c == '\\' && len(p) > 1:
			return Escape, 2
		case c == '\\':
			w.escaped = true
			return Escape, 1
		}
		for n = Special(p, 1); n < len(p) && p[n] < ' '; {
			n = Special(p, n+1)
		}
		return Text, n
	}
	if w.literal {
		n = w.endOfLiteral(p)
	}
	if n > 0 {
		return Rest, n
	}
	switch p[0] {
	case ' ', '\n', '\r', '\t':
		for n = 1; n < len(p) && (p[n] == ' ' || p[n] == '\n' || p[n] == '\r' || p[n] == '\t'); {
			n++
		}
		return Space, n
	case ':':
		w.value, w.list = true, false
		return Colon, 1
	case ',':
		w.value, w.list = false, false
		return Comma, 1
	case '"':
		w.text, w.list = true, false
		if w.value {
			return Quote, 1
		}
		w.level(w.depth).n = 0
		return Key, 1 + w.inKey(p[1:])
	case '{', '[':
		if !w.value {
			w.level(w.depth).n = 0
		}
		w.depth++
		w.level(w.depth).n = 0
		w.value, w.list = false, p[0] == '['
		return Open, 1
	case '}', ']':
		w.depth--
		w.value, w.list = false, false
		return Close, 1
	}
	w.many, w.list = w.list, false
	return Literal, w.endOfLiteral(p)
}

// endOfLiteral returns how many of the next bytes belong to a number, true, false or null.
func (w *Walker) endOfLiteral(p []byte) (n int) {
	if w.many {
		n = len(p)
		for _, c := range []byte(`]"[{`) {
			if i := bytes.IndexByte(p[:n], c); i >= 0 {
				n = i
			}
		}
	} else {
		for n < len(p) && !ends[p[n]] {
			n++
		}
	}
	w.literal = n == len(p)
	return n
}

// ends has the bytes that end a literal.
var ends = [256]bool{
	' ': true, '\n': true, '\r': true, '\t': true,
	',': true, ':': true, '"': true, '[': true, ']': true, '{': true, '}': true,
}

// inKey takes the next bytes of a key, or of a string in a list. A key may be written with escapes: those of letters
// are read, and any other becomes a byte that none of the keys looked for has.
func (w *Walker) inKey(p []byte) int {
	k := w.level(w.depth)
	i := 0
	if !w.escaped && w.digits == 0 {
		i = Special(p, 0)
		k.n += uint8(copy(k.text[k.n:], p[:i]))
	}
	for ; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '"' && !w.escaped:
			w.text, w.digits = false, 0
			return i + 1
		case c == '\\' || w.escaped || w.digits > 0:
			is, whole := w.unescape(c)
			if !whole {
				continue
			}
			c = is
		}
		if k.n <= maxKey {
			k.text[k.n] = c
			k.n++
		}
	}
	return len(p)
}

// unescape takes the next byte of an escape in a key. If it was the last byte, it returns the escaped character.
func (w *Walker) unescape(c byte) (is byte, whole bool) {
	switch {
	case w.escaped:
		w.escaped, w.digits, w.code = false, 0, 0
		if c == 'u' {
			w.digits = 4
		}
		return 0, c != 'u'
	case c == '\\':
		w.escaped = true
		return 0, false
	}
	w.digits--
	w.code = w.code<<4 | hexadecimal(c)
	return byte(min(w.code, 0x80)), w.digits == 0
}

// hexadecimal returns the value of a digit. What is none makes the number no letter.
func hexadecimal(c byte) uint64 {
	switch {
	case c-'0' <= 9:
		return uint64(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return uint64(c|0x20-'a') + 10
	}
	return 1 << 24
}
