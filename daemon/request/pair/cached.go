package pair

import (
	"io"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// NewReader reads a decoder's answer with the count of cached tokens that the prefiller gave: a decoder counts all that
// it was handed. It changes cached_tokens in prompt_tokens_details (chat, completions) and in input_tokens_details
// (responses) of an answer's usage, and adds nothing. events: the answer is a stream of server-sent events.
func NewReader(from io.Reader, cached int, events bool) *rewrite.Reader {
	return rewrite.NewReader(from, &editor{cached: strconv.Itoa(cached), events: events}, events)
}

// level is where in an answer an object stands.
type level uint8

const (
	elsewhere level = iota
	top             // the answer, or the response in an event
	usage
	details // of the prompt's tokens
)

// maxKey is the longest key that an editor tells from others.
const maxKey = len("prompt_tokens_details")

// editor finds the count and writes another one in its place.
type editor struct {
	cached string
	events bool

	levels  [8]level // of the objects around the next byte, by depth
	depth   int
	key     [maxKey + 1]byte
	n       int  // bytes of key, at most one more than maxKey
	value   bool // what comes next is a value
	text    bool // inside of a string
	escaped bool // the next byte of the string is escaped
	number  bool // inside of the count
}

// Reset implements [rewrite.Editor].
func (e *editor) Reset() { *e = editor{cached: e.cached, events: e.events} }

// Append implements [rewrite.Editor].
func (e *editor) Append(out []byte, c byte) []byte {
	if e.text {
		e.inText(c)
		return append(out, c)
	}
	if e.number {
		if c >= '0' && c <= '9' {
			return out
		}
		e.number = false
	}
	switch c {
	case '{', '[':
		e.enter(c == '{')
	case '}', ']':
		e.depth--
		e.value = false
	case ',':
		e.value = false
	case ':':
		e.value = true
	case '"':
		e.text = true
		if !e.value {
			e.n = 0
		}
	default:
		if c >= '0' && c <= '9' && e.value && e.at() == details && string(e.key[:e.n]) == "cached_tokens" {
			e.number, e.value = true, false
			return append(out, e.cached...)
		}
	}
	return append(out, c)
}

// at returns the level of the next byte.
func (e *editor) at() level {
	if e.depth < 0 || e.depth >= len(e.levels) {
		return elsewhere
	}
	return e.levels[e.depth]
}

// enter begins an object or a list.
func (e *editor) enter(object bool) {
	p := elsewhere
	key := string(e.key[:e.n])
	switch {
	case !object:
	case e.depth == 0:
		p = top
	case !e.value:
	case e.at() == top && key == "usage":
		p = usage
	case e.at() == top && e.depth == 1 && e.events && key == "response":
		p = top
	case e.at() == usage && (key == "prompt_tokens_details" || key == "input_tokens_details"):
		p = details
	}
	e.depth++
	if e.depth > 0 && e.depth < len(e.levels) {
		e.levels[e.depth] = p
	}
	e.value = false
}

// inText takes the next byte of a string.
func (e *editor) inText(c byte) {
	switch {
	case e.escaped:
		e.escaped = false
	case c == '\\':
		e.escaped = true
	case c == '"':
		e.text = false
		return
	}
	if !e.value && e.n <= maxKey {
		e.key[e.n] = c
		e.n++
	}
}
