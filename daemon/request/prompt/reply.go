package prompt

import "bytes"

const defaultReplyBytes = 1 << 20 // a reply of 200,000 tokens is about 800 KB

// Reply reads an answer on its way to the client: it gathers what the client will send back, and finds the failures
// that vLLM hides in a 200. What it returns holds for the bytes fed so far. It is reusable by Reset and not safe for
// concurrent use.
type Reply struct {
	t       transcript
	choices choicesReader
	items   itemsReader  // Responses
	blocks  blocksReader // Messages
	quick   quick
	split   events
	skimmed skimmer // of the bytes that arrive after the last kept one
	body    []byte
	fed     int // bytes
	pieces  int // events with output
	sound   int // of them, up to the end of the last event before the failure
}

// NewReply reads one answer to a request of this kind (that of the Request, after Parse). stream is true for SSE: take
// that from the answer's Content-Type, since an error comes as plain JSON to a streaming request too. max bounds the
// bytes kept (0: 1 MiB); an answer over it is not ok, but its usage and its tokens are still counted.
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
	r.t.reset(kind, stream, max)
	r.items.oneByOne = false
	r.blocks.reset()
	r.quick.forget()
	r.split.reset()
	r.skimmed.reset()
	r.body = r.body[:0]
	r.fed = 0
	r.pieces = 0
	r.sound = 0
}

// Expect sets the mark by which the answer shows that it belongs to this request. Call it after Reset and before Feed.
func (r *Reply) Expect(m Mark) { r.t.owner.mark = m }

// Feed takes the next bytes of the body, split anywhere; chunk is not kept.
func (r *Reply) Feed(chunk []byte) {
	before := r.sound
	r.fed += len(chunk)
	if !r.t.stream {
		r.feedBody(chunk)
		if !r.t.state.failed() {
			r.sound = r.fed
		}
		return
	}
	for len(chunk) > 0 && !r.t.state.spoiled() {
		n := r.quickly(chunk)
		if n == 0 {
			ev, rest, ok := r.split.next(chunk)
			if !ok {
				break // all of it was taken
			}
			r.readEvent(ev)
			n = len(chunk) - len(rest)
		}
		chunk = chunk[n:]
		if !r.t.state.failed() {
			r.sound = r.fed - len(chunk)
		}
	}
	switch {
	case r.t.state.spoiled():
		r.skim(chunk)
	case r.split.held() > r.t.answers.max:
		r.spoil()
	}
	if r.t.state.hasOutput() && r.t.lacksID() {
		r.sound = before
	}
}

// quickly reads the event that the chunk begins with the short way, and returns its length, or 0 if it must be read
// in full.
func (r *Reply) quickly(chunk []byte) int {
	if !r.blocks.block.written || !r.split.fresh() {
		return 0
	}
	n, number := r.quick.match(chunk, &r.t.answers)
	if n > 0 {
		r.pieces++
	}
	if number != nil {
		r.t.next = int(parseNumber(number)) + 1
	}
	return n
}

func (r *Reply) feedBody(chunk []byte) {
	if len(r.body) == 0 && !r.t.state.spoiled() {
		chunk = bytes.TrimLeft(chunk, " \t\r\n")
		if len(chunk) > 0 && chunk[0] != '{' { // a sound, a text: nothing to read, so nothing is kept
			r.spoil()
		}
	}
	if r.t.state.spoiled() {
		r.skim(chunk)
		return
	}
	lead := len(r.body) < maxLead
	r.body = append(r.body, chunk...)
	if lead && len(r.t.id) == 0 {
		r.t.sawID(leadingID(r.body))
	}
	if len(r.body) > r.t.answers.max {
		r.spoil()
	}
}

// Body takes the whole body of an answer that is not streamed, without copying it.
func (r *Reply) Body(body []byte) {
	switch {
	case r.t.stream:
		r.Feed(body)
	case r.t.state.spoiled():
		r.skim(body)
	case len(body) > r.t.answers.max:
		r.spoil()
		r.skim(body)
	default:
		r.readDocument(body)
		r.t.lacksID()
	}
}

// Streamed returns how many events of a stream had output so far, and the bytes of text and calls in them, or in a body
// that is not streamed. Each token of which only the id came is an event.
func (r *Reply) Streamed() (pieces, bytes int) { return r.pieces, r.t.answers.size }

// Finish ends the answer; call it once at the end of the body. ok: all of it was understood and no error was in it.
// complete: besides, each answer ended by itself (stop, length, tool_calls), so that it may be entered in the index.
func (r *Reply) Finish() (ok, complete bool) {
	t := &r.t
	if t.stream {
		if ev, more := r.split.flush(); more {
			r.readEvent(ev)
		}
		if t.state.spoiled() {
			r.skimmedEvent()
		}
	} else if len(r.body) > 0 && !t.state.spoiled() {
		r.readDocument(r.body)
	}
	ok = !t.state.spoiled() && !t.state.failed() && t.answers.fits()
	return ok, t.state.finish(ok && t.kind.Generates() && t.answers.ended())
}

// readEvent reads one event of a stream.
func (r *Reply) readEvent(ev event) {
	if len(ev.data) < 16 && string(bytes.TrimSpace(ev.data)) == "[DONE]" {
		r.t.readDone()
		return
	}
	if ev.fault {
		r.t.state.fail(failureReported, 0)
	}
	before := r.t.answers.size
	r.readDocument(ev.data)
	if r.t.answers.size > before || r.t.piece.text.hi-r.t.piece.text.lo > 2 {
		r.pieces++
	}
	if !ev.fault && !r.t.state.failed() {
		r.quick.remember(ev, r.t.piece, r.t.kind)
	}
}

// reader reads the events or bodies of some kinds: read scans one, conclude records what it meant as a whole.
type reader interface {
	read(t *transcript) bool
	conclude(t *transcript)
	check(t *transcript)
}

// readDocument reads the data of one event, or a whole body.
func (r *Reply) readDocument(data []byte) {
	t := &r.t
	t.begin(data)
	var by reader
	switch t.kind {
	case Responses:
		by = &r.items
	case Messages:
		by = &r.blocks
	default:
		by = &r.choices
	}
	if !by.read(t) {
		r.spoil()
		r.skimJSON(data)
		if t.stream {
			r.skimmedEvent()
		}
		return
	}
	by.check(t)
	if !t.stream {
		t.state.sawEnd()
	}
	by.conclude(t)
}

// spoil gives up on an answer and its memory. What is held of it is skimmed, as is all that comes.
func (r *Reply) spoil() {
	r.t.state.spoil()
	r.t.answers.drop()
	body, held := r.body, r.split
	r.body = nil
	r.split = events{}
	r.quick.forget()
	if !r.t.stream {
		r.skim(body)
		return
	}
	r.skimJSON(held.data)
	r.skim(held.line)
}

// ExtendChoice continues a prompt's chain with one of the answers, as the next request will hold it. The first answer
// to prompt i has the index [Request.FirstChoice](i). ExtendChoice returns false, and leaves the chain, if the answer
// is not complete (see Finish) or it is not known how it comes back.
func (r *Reply) ExtendChoice(c *Chain, index int) bool {
	if c.fixed && !c.open || r.t.state.end != endWhole || index >= len(r.t.answers.list) {
		return false
	}
	return r.t.answers.list[index].appendTo(c, &r.t.w, r.t.kind)
}
