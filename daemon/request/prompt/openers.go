package prompt

// Bytes before the first output of a stream are held back, since another worker can still get the request. So this
// lists the known opening events only. All else is output: a client waits for kinds of events and pieces that this
// router does not know, such as sound or a search that a worker begins.

// opener reports whether an event of Responses or Messages of that type is known to hold no output itself. The end of
// a piece is not output if the piece is empty: an aborted answer ends in this way.
func opener(kind []byte) bool {
	switch string(kind) {
	case "response.created", "response.in_progress", "response.queued",
		"response.content_part.added", "response.content_part.done", "response.output_text.done",
		"response.reasoning_part.added", "response.reasoning_part.done", "response.reasoning_text.done",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
		"response.reasoning_summary_text.done", "response.refusal.done", "response.function_call_arguments.done",
		"content_block_stop":
		return true
	}
	return false
}

// keepsAlive reports whether an event of that type only keeps connections alive, as a comment does: Anthropic's ping.
func keepsAlive(kind []byte) bool { return string(kind) == "ping" || string(kind) == "keepalive" }

// sawOther records an event without a type, or of a type that no reader reads.
func (t *transcript) sawOther(kind []byte) {
	switch {
	case !t.stream || len(t.w.scan.b) <= len("{}") || opener(kind) || t.state.failed():
	case keepsAlive(kind):
		t.pinged = true
	default:
		t.state.sawOutput()
	}
}

// something reports whether a raw value is more than an empty placeholder.
func something(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "[]", "{}":
		return false
	}
	return true
}
