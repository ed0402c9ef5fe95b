package pair

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// Counts are what a prefiller says of a prompt's tokens.
type Counts struct {
	Cached int // found in its cache

	// Messages alone has the rest apart: those that went into its cache, and all others.
	Made, Input int
}

// Counted returns the counts of a prefiller's answer to /v1/messages that found so many tokens in its cache.
func Counted(answer []byte, cached int) Counts {
	var said struct {
		Usage struct {
			Input int `json:"input_tokens"`
			Made  int `json:"cache_creation_input_tokens"`
		} `json:"usage"`
	}
	_ = json.Unmarshal(answer, &said) // what is no such answer has no counts
	return Counts{Cached: cached, Made: said.Usage.Made, Input: said.Usage.Input}
}

// NewReader reads a decoder's answer of a kind with the prefiller's counts: a decoder counts all that it was handed as
// cached. It changes cached_tokens in prompt_tokens_details (chat, completions) and in input_tokens_details (responses)
// of an answer's usage, and adds nothing. events: the answer is a stream of server-sent events.
//
// In messages the usage is three numbers that add up to the prompt, so it changes all three. message_start keeps its
// input_tokens: vLLM names the whole prompt there, before anything is known of its cache.
func NewReader(from io.Reader, kind prompt.Kind, n Counts, events bool) *rewrite.Reader {
	return rewrite.NewReader(from, &editor{Counts: n, messages: kind == prompt.Messages, events: events}, events)
}

// level is where in an answer an object stands.
type level uint8

const (
	elsewhere level = iota
	top             // the answer, or the response in an event
	start           // the answer in an event that begins it
	usage
	startUsage
	details // of the prompt's tokens
)

// maxKey is the longest key that an editor tells from others.
const maxKey = len("cache_creation_input_tokens")

// editor finds the counts and writes others in their place.
type editor struct {
	Counts
	messages bool
	events   bool

	levels  [8]level // of the objects around the next byte, by depth
	depth   int
	key     [maxKey + 1]byte
	n       int  // bytes of key, at most one more than maxKey
	value   bool // what comes next is a value
	text    bool // inside of a string
	escaped bool // the next byte of the string is escaped
	number  bool // inside of a count
}

// Reset implements [rewrite.Editor].
func (e *editor) Reset() {
	*e = editor{Counts: e.Counts, messages: e.messages, events: e.events}
}

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
		if c >= '0' && c <= '9' && e.value {
			if n, is := e.count(); is {
				e.number, e.value = true, false
				return strconv.AppendInt(out, int64(n), 10)
			}
		}
	}
	return append(out, c)
}

// count returns what is written in the place of the next value, if that is a count.
func (e *editor) count() (n int, is bool) {
	at, key := e.at(), string(e.key[:e.n])
	if !e.messages {
		return e.Cached, at == details && key == "cached_tokens"
	}
	if at != usage && at != startUsage {
		return 0, false
	}
	switch key {
	case "cache_read_input_tokens":
		return e.Cached, true
	case "cache_creation_input_tokens":
		return e.Made, true
	}
	return e.Input, at == usage && key == "input_tokens"
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
	switch {
	case object && e.depth == 0:
		p = top
	case object && e.value:
		p = e.below(string(e.key[:e.n]))
	}
	e.depth++
	if e.depth > 0 && e.depth < len(e.levels) {
		e.levels[e.depth] = p
	}
	e.value = false
}

// below returns the level of the object that is the value of a key.
func (e *editor) below(key string) level {
	event := e.events && e.depth == 1
	switch at := e.at(); {
	case at == top && key == "usage":
		return usage
	case at == top && event && e.messages && key == "message":
		return start
	case at == top && event && !e.messages && key == "response":
		return top
	case at == start && key == "usage":
		return startUsage
	case at == usage && (key == "prompt_tokens_details" || key == "input_tokens_details"):
		return details
	}
	return elsewhere
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
