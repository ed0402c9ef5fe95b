package prompt

import "bytes"

// Usage returns the usage as far as it was seen. Anthropic's input_tokens are without the cached ones; here Prompt has
// both.
func (r *Reply) Usage() Usage { return r.t.usage.sum(r.t.kind) }

// ID returns the answer's id as the worker gave it (chatcmpl-..., resp_...), "" as long as none was seen. That of a
// Responses answer comes back as previous_response_id.
func (r *Reply) ID() string { return string(r.t.id) }

// Status returns the last status that a response or a job had: queued, in_progress, completed and the like; "" as long
// as none was seen. Only Responses and what is skimmed have one.
func (r *Reply) Status() string { return string(r.t.status) }

// Output reports whether anything was seen that a client takes for output: a piece of text, thought, call or of a kind
// that is not known, or an end other than a failure. Neither a first event with a role, nor response.created,
// message_start, ping, usage or a comment is one. As long as it is false, the router can still send the request to
// another worker, if it holds back the bytes that came. It is also true once something was seen that is not understood,
// for that must not be held back.
func (r *Reply) Output() bool { return r.t.state.hasOutput() }

// Pinged reports whether an event came that only keeps connections alive. It is not output, and must not be held
// back.
func (r *Reply) Pinged() bool { return r.t.pinged }

// Understood reports whether all events so far were understood. Once an event was not understood, or was over the
// bound, the Reply reads nothing more.
func (r *Reply) Understood() bool { return !r.t.state.spoiled() }

// Clean reports whether the stream came to the proper end of its kind, with no unknown bytes after it: [DONE],
// response.completed, message_stop. A body that is not streamed is clean if it is JSON.
func (r *Reply) Clean() bool { return r.t.state.clean() }

// Whole reports whether a client that has all that was fed has the whole answer: the proper end came, or a reported
// error, or each of the given number of choices has ended by itself. Clients that act on a tool call need not wait
// for [DONE].
func (r *Reply) Whole(choices int) bool {
	t := &r.t
	switch {
	case t.state.spoiled() || t.state.failure == failureImplied:
		return false
	case t.state.clean() || t.state.failed():
		return true
	}
	return len(t.answers.list) >= max(1, choices) && t.answers.ended()
}

// EndHere makes what was fed the whole of an answer that is Whole.
func (r *Reply) EndHere() { r.t.state.sawEnd() }

// Failed reports whether the worker reported a failure inside a 200: by an error event or body; an end by abort or
// error; or, as a draining worker does, [DONE] or message_stop with no output before it. The Reply reads nothing more
// after something that it did not understand.
//
// /v1/messages has no word for abort: vLLM then writes stop_reason null, which no end by itself gives, so null counts
// as failed. /v1/responses calls an aborted answer completed (cancelled or incomplete for some models): it counts as
// failed if the usage has 0 output tokens, since even an answer without text costs the token that ends it. An answer
// aborted after part of its text looks like a short one.
func (r *Reply) Failed() bool { return r.t.state.failed() }

// Formless reports whether a body that is not streamed, and begins with these bytes, cannot be an answer of its kind.
// It has no usage, and is neither an object that has what such answers have nor, where the answer is not generated, a
// list. whole: these are all bytes, and were read by Body. Else the first byte of a field is enough. What has failed
// says so in its own form.
func (r *Reply) Formless(text []byte, whole bool) bool {
	t := &r.t
	text = bytes.TrimLeft(text, " \t\r\n\ufeff")
	switch {
	case t.formed || r.Usage().Known || t.state.failed() || len(text) > t.answers.max:
		return false
	case whole:
		return len(text) == 0 || text[0] != '[' || t.kind.Generates()
	case len(text) == 0 || text[0] == '[' && !t.kind.Generates():
		return false
	}
	rest := bytes.TrimLeft(text[1:], " \t\r\n")
	return text[0] != '{' || len(rest) > 0 && rest[0] == '}'
}

// Foreign reports whether the answer, or a part of a stream, belongs to another request, if the Mark is strict: it has
// another's id, or none before its output. It has then Failed.
func (r *Reply) Foreign() bool { return r.t.state.failure == failureForeign }

// Owner returns what the ids so far show, whether the Mark is strict or not, and the frame of the first one.
func (r *Reply) Owner() (Owner, Frame) { return r.t.owner.owner, r.t.owner.frame }

// ReportedError reports whether the failure came as an error event of the worker, which a client understands. An end by
// abort or an empty one has none.
func (r *Reply) ReportedError() bool { return r.t.state.failure == failureReported }

// BytesFromFailure returns how many of the bytes fed came behind the last event before the failure.
func (r *Reply) BytesFromFailure() int { return r.fed - r.sound }

// NextNumber returns the sequence_number that an event of Responses has behind those read so far, without one that
// reported a failure.
func (r *Reply) NextNumber() int { return r.t.next }

// FailedCode returns the status of an error body or event: its code if that is a number, otherwise the status for the
// name of its type or code (BadRequestError, invalid_request_error), otherwise 0. 400 to 499 are the model's answer,
// and another worker would give the same: 0.11 refuses /v1/embeddings on a generating model so, in a 200. An answer
// to another request has none.
func (r *Reply) FailedCode() int {
	if r.Foreign() {
		return 0
	}
	return r.t.state.code
}

// FinishReason returns why the first answer ended, in the words of OpenAI's chat whatever the kind: stop, length,
// tool_calls, abort, error, else other; "" as long as it has no end.
func (r *Reply) FinishReason() string {
	if len(r.t.answers.list) == 0 {
		return ""
	}
	return r.t.answers.list[0].finish
}
