package prompt

import "bytes"

const (
	defaultReplyBytes = 1 << 20 // a reply of 200,000 tokens is about 800 KB
	maxChoices        = 128     // prompts times n that are followed
	maxCalls          = 128     // tool calls in one answer; also what an index in a delta may reach
)

// Usage is the worker's own count of tokens.
type Usage struct {
	Prompt, Completion int
	Cached             int  // prompt tokens found in the worker's cache
	CachedKnown        bool // cached_tokens was given; without it Cached says nothing
	OK                 bool // the reply had a usage
}

// Reply listens to an answer on its way to the client and gathers what the client will send back. It is reusable by Reset and
// not safe for concurrent use.
type Reply struct {
	kind    Kind
	stream  bool
	max     int
	size    int  // bytes of answers seen; over max the rest is not kept
	bad     bool // no JSON, or one event over max
	whole   bool // Finish said complete
	done    bool
	failed  bool
	usage   Usage
	n       int // choices in use
	choices []choice
	cur     delta
	split   events
	body    []byte
	emit    func([]byte) // r.event, made once
	w       writer
}

// choice is one answer as far as it has come.
type choice struct {
	text   []byte
	tokens []uint32
	calls  []call
	finish string
}

type call struct{ name, arguments []byte }

// NewReply listens to one answer. stream says whether it is SSE: take that from the answer's Content-Type, since an error comes
// as plain JSON to a streaming request too. max bounds the bytes kept (0: 1 MiB); an answer over it is not ok.
func NewReply(kind Kind, stream bool, max int) *Reply {
	r := &Reply{}
	r.emit = r.event
	r.Reset(kind, stream, max)
	return r
}

// Reset makes r ready for another answer, keeping its memory.
func (r *Reply) Reset(kind Kind, stream bool, max int) {
	if max <= 0 {
		max = defaultReplyBytes
	}
	r.kind, r.stream, r.max = kind, stream, max
	r.size, r.n, r.body = 0, 0, r.body[:0]
	r.bad, r.whole, r.done, r.failed, r.usage = false, false, false, false, Usage{}
	r.split.reset()
}

// Feed takes the next bytes of the body, split anywhere; chunk is not kept.
func (r *Reply) Feed(chunk []byte) {
	if r.bad || r.kind == Other {
		return
	}
	if !r.stream {
		if r.body = append(r.body, chunk...); len(r.body) > r.max {
			r.spoil()
		}
		return
	}
	if r.split.feed(chunk, r.emit); r.split.held() > r.max {
		r.spoil()
	}
}

// Body takes the whole body of an answer that is not streamed, without copying it.
func (r *Reply) Body(body []byte) {
	if r.stream {
		r.Feed(body)
	} else if len(body) > r.max {
		r.spoil()
	} else {
		r.event(body)
	}
}

// Finish is called once at the end of the body. ok: all of it was understood and no error was in it. complete: besides, each
// answer ended by itself (stop, length, tool_calls), so that it may be entered in the index.
func (r *Reply) Finish() (ok, complete bool) {
	if r.stream {
		r.split.end(r.emit)
	} else if len(r.body) > 0 {
		r.event(r.body)
	}
	ok = !r.bad && !r.failed && r.size <= r.max && r.kind != Other
	complete = ok && r.n > 0 && (r.done || !r.stream)
	for i := range r.choices[:r.n] {
		complete = complete && ended(r.choices[i].finish)
	}
	r.whole = complete
	return ok, complete
}

func ended(finish string) bool {
	return finish == "stop" || finish == "length" || finish == "tool_calls"
}

// Usage is the last usage seen.
func (r *Reply) Usage() Usage { return r.usage }

// Done reports whether the stream's [DONE] was seen.
func (r *Reply) Done() bool { return r.done }

// Failed reports whether the worker told of a failure inside a 200: an error event, finish_reason abort or error, or [DONE]
// with no answer before it.
func (r *Reply) Failed() bool { return r.failed }

// FinishReason is the first answer's, "" as long as it has none.
func (r *Reply) FinishReason() string {
	if r.n == 0 {
		return ""
	}
	return r.choices[0].finish
}

// Extend continues the chain of the only prompt with the first answer, just as it comes back in the next request; false, and
// the chain untouched, if the answer is not complete (see Finish) or it is not known how it comes back.
func (r *Reply) Extend(c *Chain) bool { return r.ExtendChoice(c, 0) }

// ExtendChoice does so with another answer: that to prompt i has the index [Request.Choice](i).
func (r *Reply) ExtendChoice(c *Chain, index int) bool {
	if c.fixed || !r.whole || index >= r.n {
		return false
	}
	a := &r.choices[index]
	switch {
	case r.kind == Chat:
		c.mark(markMessage)
		c.Append([]byte("assistant"))
		if len(a.text) > 0 {
			c.mark(markText)
			c.Append(a.text)
		}
		for i := range a.calls {
			c.call(&r.w, a.calls[i].name, a.calls[i].arguments)
		}
		c.mark(markEnd)
	case c.size == BlockTokens*tokenBytes: // an answer in text says nothing of its tokens
		c.AppendTokens(a.tokens)
		return len(a.tokens) > 0
	default:
		c.Append(a.text)
	}
	return true
}

// spoil gives up on an answer and its memory.
func (r *Reply) spoil() {
	r.bad, r.n, r.body = true, 0, nil
	r.choices, r.split = nil, events{}
}

// event takes the data of one event, or a whole body.
func (r *Reply) event(data []byte) {
	if r.bad {
		return
	}
	if len(data) < 16 && string(bytes.TrimSpace(data)) == "[DONE]" {
		r.done = true
		r.failed = r.failed || r.n == 0
		return
	}
	r.w.scan.reset(data)
	if !r.w.scan.document(r.field) {
		r.spoil()
	}
}
