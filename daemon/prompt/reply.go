package prompt

import "bytes"

const (
	defaultReplyBytes = 1 << 20 // a reply of 200,000 tokens is about 800 KB
	maxChoices        = 128     // prompts times n that are followed
	maxCalls          = 128     // tool calls in one answer; also what an index in a delta may reach
	maxID             = 256     // bytes of an answer's id; vLLM makes them of the client's X-Request-Id
)

// Reply listens to an answer on its way to the client: it gathers what the client will send back, and hears the failures that
// vLLM hides in a 200. What it says holds for the bytes fed so far. It is reusable by Reset and not safe for concurrent use.
type Reply struct {
	kind    Kind
	stream  bool
	max     int
	size    int  // bytes of answers seen; over max the rest is not kept
	bad     bool // no JSON, or one event over max
	whole   bool // Finish said complete
	heard   bool // an event came
	output  bool
	clean   bool
	failed  bool
	told    bool // failed, in the worker's own words
	fed     int  // bytes of a stream
	sound   int  // of them, up to the end of the last event before the failure
	code    int
	usage   Usage
	id      []byte
	n       int // choices in use
	choices []choice
	taken   bool // Responses: items came one by one
	fresh   bool // Messages: a block has begun, and no text of it has come
	use     int  // Messages: the call that this block is, -1 if it is none
	top     top
	cur     delta
	quick   quick
	split   events
	body    []byte
	w       writer
}

// choice is one answer as far as it has come.
type choice struct {
	text   []byte // Messages, Responses: with marks between its parts
	tokens []uint32
	calls  []call
	finish string
}

type call struct{ name, arguments []byte }

// NewReply listens to one answer to a request of this kind (that of the Request, after Parse). stream says whether it is SSE: take
// that from the answer's Content-Type, since an error comes as plain JSON to a streaming request too. max bounds the bytes kept
// (0: 1 MiB); an answer over it is not ok.
func NewReply(kind Kind, stream bool, max int) *Reply {
	r := &Reply{}
	r.Reset(kind, stream, max)
	return r
}

// Reset makes r ready for another answer, keeping its memory.
func (r *Reply) Reset(kind Kind, stream bool, max int) {
	if max <= 0 {
		max = defaultReplyBytes
	}
	r.kind, r.stream, r.max = kind, stream, max
	r.size, r.n, r.code, r.body, r.id = 0, 0, 0, r.body[:0], r.id[:0]
	r.bad, r.whole, r.heard, r.output, r.clean = false, false, false, false, false
	r.failed, r.told, r.fed, r.sound = false, false, 0, 0
	r.taken, r.fresh, r.use, r.usage = false, false, -1, Usage{}
	r.quick.forget()
	r.split.reset()
}

// Feed takes the next bytes of the body, split anywhere; chunk is not kept.
func (r *Reply) Feed(chunk []byte) {
	if !r.stream {
		r.feedBody(chunk)
		return
	}
	r.fed += len(chunk)
	for len(chunk) > 0 && !r.bad {
		n := r.quickly(chunk)
		if n == 0 {
			ev, rest, ok := r.split.next(chunk)
			if !ok {
				break // all of it was taken
			}
			r.event(ev)
			n = len(chunk) - len(rest)
		}
		if chunk = chunk[n:]; !r.failed {
			r.sound = r.fed - len(chunk)
		}
	}
	if r.split.held() > r.max {
		r.spoil()
	}
}

func (r *Reply) feedBody(chunk []byte) {
	if r.bad {
		return
	}
	if len(r.body) == 0 {
		chunk = bytes.TrimLeft(chunk, " \t\r\n")
		if len(chunk) > 0 && chunk[0] != '{' { // a sound, a text: nothing to hear, so nothing is kept
			r.spoil()
			return
		}
	}
	if r.body = append(r.body, chunk...); len(r.body) > r.max {
		r.spoil()
	}
}

// Body takes the whole body of an answer that is not streamed, without copying it.
func (r *Reply) Body(body []byte) {
	if r.stream {
		r.Feed(body)
	} else if len(body) > r.max {
		r.spoil()
	} else if !r.bad {
		r.document(body)
	}
}

// Finish is called once at the end of the body. ok: all of it was understood and no error was in it. complete: besides, each
// answer ended by itself (stop, length, tool_calls), so that it may be entered in the index.
func (r *Reply) Finish() (ok, complete bool) {
	if r.stream {
		if ev, more := r.split.end(); more {
			r.event(ev)
		}
	} else if len(r.body) > 0 && !r.bad {
		r.document(r.body)
	}
	ok = !r.bad && !r.failed && r.size <= r.max
	complete = ok && r.n > 0 && r.clean && r.kind.Generates()
	for i := range r.choices[:r.n] {
		complete = complete && ended(r.choices[i].finish)
	}
	r.whole = complete
	return ok, complete
}

func ended(finish string) bool {
	return finish == "stop" || finish == "length" || finish == "tool_calls"
}

// Usage is the last usage seen. Anthropic's input_tokens are without the cached ones; here Prompt has both.
func (r *Reply) Usage() Usage { return r.usage }

// ID is the answer's id as the worker gave it (chatcmpl-..., resp_...), "" as long as none was seen. That of a Responses answer
// comes back as previous_response_id.
func (r *Reply) ID() string { return string(r.id) }

// Output reports whether anything was seen that a client takes for output: a piece of text, thought or call, or an end other than
// a failure. Neither a first event with a role, nor response.created, message_start, ping, usage or a comment is one. As long
// as it is false the answer can still be asked of another worker, if what came is held back. It is true also once something was
// seen that is not understood, for that must not be held back.
func (r *Reply) Output() bool { return r.output }

// Understood reports whether all events so far were; of an answer with one that is not, or is over the bound, nothing more is heard.
func (r *Reply) Understood() bool { return !r.bad }

// Clean reports whether the stream came to the proper end of its kind: [DONE], response.completed, message_stop. A body that is
// not streamed is clean if it is JSON.
func (r *Reply) Clean() bool { return r.clean }

// Failed reports whether the worker told of a failure inside a 200: an error event or body; an end by abort or error; [DONE] or
// message_stop with no output before it, as a draining worker sends them. Behind something not understood nothing more is heard.
//
// /v1/messages has no word for abort: vLLM then writes stop_reason null, which no end by itself gives, so null counts as failed.
// /v1/responses calls an aborted answer completed (cancelled or incomplete for some models): it counts as failed if the usage
// says 0 output tokens, since even an answer without text costs the token that ends it. One aborted with part of its text on
// the way cannot be told from a short one.
func (r *Reply) Failed() bool { return r.failed }

// ReportedError reports whether a failure came in the worker's own words, an error event that a client understands. An end by abort or an
// empty one has none.
func (r *Reply) ReportedError() bool { return r.told }

// BytesFromFailure is how many of the bytes fed came behind the last event before the failure.
func (r *Reply) BytesFromFailure() int { return r.fed - r.sound }

// FailedCode is the status that an error body or event carries as its code, 0 if it has none that is a number. Of 400 to 499 it
// is the model's answer, and another worker would give the same: 0.11 so refuses /v1/embeddings on a generating model in a 200.
func (r *Reply) FailedCode() int { return r.code }

// FinishReason is why the first answer ended, in the words of OpenAI's chat whatever the kind: stop, length, tool_calls, abort,
// error, else other; "" as long as it has no end.
func (r *Reply) FinishReason() string {
	if r.n == 0 {
		return ""
	}
	return r.choices[0].finish
}

// Extend continues the chain of the only prompt with the first answer, just as it comes back in the next request; false, and
// the chain untouched, if the answer is not complete (see Finish) or it is not known how it comes back.
func (r *Reply) Extend(c *Chain) bool { return r.ExtendChoice(c, 0) }

// ExtendChoice does so with another answer: that to prompt i has the index [Request.FirstChoice](i).
func (r *Reply) ExtendChoice(c *Chain, index int) bool {
	if c.fixed || !r.whole || index >= r.n {
		return false
	}
	a := &r.choices[index]
	switch {
	case r.kind != Completion:
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
	r.bad, r.output, r.n, r.body = true, r.output || !r.failed, 0, nil
	r.choices, r.split = nil, events{}
	r.quick.forget()
}

// fail notes a failure and the first code given with one.
func (r *Reply) fail(code int) {
	if r.failed = true; r.code == 0 {
		r.code = code
	}
}

// event takes one event of a stream.
func (r *Reply) event(ev event) {
	if len(ev.data) < 16 && string(bytes.TrimSpace(ev.data)) == "[DONE]" {
		if !r.output && (r.kind.Generates() || !r.heard) {
			r.fail(0)
		}
		if r.kind != Responses && r.kind != Messages {
			r.clean = true
		}
		return
	}
	if ev.fault {
		r.told = true
		r.fail(0)
	}
	if r.document(ev.data); ev.fault {
		return
	}
	r.quick.learn(r, ev)
}

// document takes the data of one event, or a whole body.
func (r *Reply) document(data []byte) {
	r.cur, r.top, r.heard = delta{}, top{}, true
	s := &r.w.scan
	s.reset(data)
	s.loose = true // vectors and the prompt's token ids are the bulk of many answers, and say nothing here
	ok := false
	switch r.kind {
	case Responses:
		ok = s.document(r.responseField)
	case Messages:
		ok = s.document(r.messageField)
	default:
		ok = s.document(r.field)
	}
	if !ok {
		r.spoil()
		return
	}
	if t := &r.top; string(inside(t.object.of(data))) == "error" || string(inside(t.kind.of(data))) == "error" {
		r.told = true
		r.fail(status(t.code.of(data)))
	}
	r.clean = r.clean || !r.stream
	switch {
	case r.kind == Responses:
		r.response()
	case r.kind == Messages:
		r.message()
	case !r.kind.Generates() && !r.failed:
		r.output = true
	}
}
