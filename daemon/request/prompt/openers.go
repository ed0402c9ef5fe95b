package prompt

// What comes before the first output of a stream is held back, as another worker can still get the request. So it is a
// list of what is known to open one. All else is output: a client waits for kinds of events and pieces that this router
// does not know, such as sound or a search that a worker begins.

// opener reports whether an event of Responses or Messages of that type is known to hold no output itself. A piece that
// ends is no output where none of it came: an aborted answer ends so.
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

// sawOther records an event of a type that no reader reads, or of none.
func (t *transcript) sawOther(kind []byte) {
	switch {
	case !t.stream || len(t.w.scan.b) <= len("{}") || opener(kind) || t.state.failed():
	case keepsAlive(kind):
		t.pinged = true
	default:
		t.state.sawOutput()
	}
}

// something reports whether a raw value is more than a stand-in for none.
func something(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "[]", "{}":
		return false
	}
	return true
}
