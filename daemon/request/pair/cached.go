package pair

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/jsonwalk"
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

// NewReader reads a decoder's answer of a kind with the prefiller's counts, and calls counts when it needs them: the
// decoder counts all that it was handed as cached. It changes cached_tokens in prompt_tokens_details (chat,
// completions) and in input_tokens_details (responses) of an answer's usage, and adds nothing. events: the answer is a
// stream of server-sent events.
//
// In messages the usage is three numbers that add up to the prompt, so it changes all three. message_start keeps its
// input_tokens: vLLM names the whole prompt there, before anything is known of its cache. If the prefiller gave no
// counts, those of the decoder stay.
func NewReader(from io.Reader, kind prompt.Kind, counts func() Counts, events bool) *rewrite.Reader {
	return rewrite.NewReader(from, &editor{counts: counts, messages: kind == prompt.Messages, events: events}, events)
}

// editor finds the counts and writes others in their place.
type editor struct {
	counts   func() Counts
	messages bool
	events   bool

	walk  jsonwalk.Walker
	count bool // inside of a count
}

// Reset implements [rewrite.Editor].
func (e *editor) Reset() {
	*e = editor{counts: e.counts, messages: e.messages, events: e.events}
}

// Append implements [rewrite.Editor].
func (e *editor) Append(out, p []byte) []byte {
	for len(p) > 0 {
		t, n := e.walk.Next(p)
		switch {
		case t == jsonwalk.Literal:
			instead, is := 0, false
			if p[0]-'0' <= 9 {
				instead, is = e.instead()
			}
			e.count = is
			if is {
				out = strconv.AppendInt(out, int64(instead), 10)
			}
		case t != jsonwalk.Rest:
			e.count = false
		}
		if !e.count {
			out = append(out, p[:n]...)
		}
		p = p[n:]
	}
	return out
}

// instead returns what is written in the place of a number, if that is a count.
func (e *editor) instead() (n int, is bool) {
	if !e.messages {
		if e.inAnswer("usage", "prompt_tokens_details", "cached_tokens") ||
			e.inAnswer("usage", "input_tokens_details", "cached_tokens") {
			return e.counts().Cached, true
		}
		return 0, false
	}
	read, made := e.inAnswer("usage", "cache_read_input_tokens"), e.inAnswer("usage", "cache_creation_input_tokens")
	if !read && !made && !e.walk.At("usage", "input_tokens") {
		return 0, false
	}
	c := e.counts()
	switch {
	case read:
		n = c.Cached
	case made:
		n = c.Made
	default:
		n = c.Input
	}
	return n, c != Counts{}
}

// inAnswer reports whether the number is the field at a path of the answer, which an event may have in a field.
func (e *editor) inAnswer(path ...string) bool {
	in := "response"
	if e.messages {
		in = "message"
	}
	return e.walk.At(path...) || e.events && e.walk.At(append([]string{in}, path...)...)
}
