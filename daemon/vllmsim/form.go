package vllmsim

import "strconv"

// form is the shape of an endpoint's answers: chat and completions, responses, messages.
type form interface {
	// body appends the body of a plain answer.
	body(b []byte, j *job) []byte
	// open writes what a stream begins with, before there is a token.
	open(v *events)
	// token writes tokens [from, to) of sequence i and, if end says so, its end.
	token(v *events, i, from, to int, end finish)
	// close writes what stands behind the last token.
	close(v *events)
	// fail writes an error in the midst of a stream, and what vLLM sends behind it.
	fail(v *events, e *apiError)
}

// chatForm is the form of chat and, if the job is none, of completions.
type chatForm struct{}

func (chatForm) body(b []byte, j *job) []byte { return j.appendBody(b) }

func (chatForm) open(v *events) {
	object := "text_completion"
	if v.j.chat {
		object = "chat.completion.chunk"
	}
	v.head = v.j.appendHead([]byte("data: "), object)
}

func (chatForm) token(v *events, i, from, to int, end finish) {
	j, q := v.j, v.j.seqs[i]
	first := v.sent[i] < 0
	if first && j.chat {
		v.role(i)
	}
	b := strconv.AppendInt(append(append(v.buf[:0], v.head...), `{"index":`...), int64(i), 10)
	switch {
	case j.tool != "":
		b = append(j.appendToolDelta(append(b, `,"delta":`...), i, first), `"function":{`...)
		if first {
			b = append(appendQuoted(append(b, `"name":`...), j.tool), ',')
		}
		b = append(q.reply.appendText(append(b, `"arguments":"`...), from, to), `"}}]}`...)
	case j.chat:
		b = append(q.reply.appendText(append(b, `,"delta":{"content":"`...), from, to), `"}`...)
	default:
		b = append(q.reply.appendText(append(b, `,"text":"`...), from, to), '"')
	}
	b = append(b, `,"logprobs":null,"finish_reason":`...)
	if end == unfinished {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), j.finishName(end)...), '"')
	}
	if !j.chat || end != unfinished {
		b = append(b, `,"stop_reason":null`...)
	}
	if !j.chat {
		b = append(b, `,"prompt_token_ids":`...)
		if from == 0 {
			b = j.appendPromptIDs(b, i/j.n)
		} else {
			b = append(b, "null"...)
		}
	}
	b = append(j.appendReplyIDs(append(b, `,"token_ids":`...), q, from, to), `}]`...)
	if j.everyUsage {
		b = append(j.appendCounts(append(b, ',')), '}')
	}
	v.end(b)
}

func (chatForm) close(v *events) {
	if v.j.usage && !v.j.aborted() {
		v.usage()
	}
	v.done()
}

func (chatForm) fail(v *events, e *apiError) {
	v.buf = append(e.appendTo(append(v.buf[:0], "data: "...)), "\n\n"...)
	v.flush()
	v.done()
}

// role is the first event of a chat choice.
func (v *events) role(i int) {
	b := strconv.AppendInt(append(append(v.buf[:0], v.head...), `{"index":`...), int64(i), 10)
	b = append(b, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	b = v.j.appendPromptIDs(append(b, `,"prompt_token_ids":`...), 0)
	v.end(append(b, `,"prompt_text":null`...))
}

// usage is the last event before [DONE].
func (v *events) usage() {
	cached, created := v.j.cacheUse()
	b := v.j.appendCounts(append(append(v.buf[:0], v.head...), `],`...))
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(cached), 10)
	if v.j.chat {
		b = strconv.AppendInt(append(b, `,"created_cache_tokens":`...), int64(created), 10)
	}
	v.end(append(b, `}},"system_fingerprint":"`+systemFingerprint+`"`...))
}

func (v *events) done() {
	v.buf = append(v.buf[:0], "data: [DONE]\n\n"...)
	v.flush()
}
