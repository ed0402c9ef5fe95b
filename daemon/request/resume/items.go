package resume

import (
	"bytes"
	"io"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// takeItem takes an event of responses.
func (j *Joined) takeItem(event, data []byte) {
	item, response := field(data, "item"), field(data, "response")
	switch string(prompt.Inside(field(data, "type"))) {
	case "response.created", "response.queued":
		keep(&j.id, field(response, "id"))
		return
	case "response.in_progress":
		if j.d.next != 1 { // the client has it
			return
		}
	case "response.output_item.added":
		switch is := string(field(item, "type")); {
		case is == `"message"` && j.item == nil:
			j.item = bytes.Clone(field(item, "id"))
			if j.d.item != nil {
				return
			}
		case is != `"function_call"` || j.item == nil && j.d.item != nil:
			j.err = ErrOther
			return
		}
	case "response.content_part.added":
		if j.d.opened && !j.parted {
			j.parted = true
			return
		}
	case "response.output_text.delta":
		if !j.text(event, prompt.Inside(field(data, "delta"))) {
			return
		}
	case "response.output_text.done", "response.content_part.done", "response.output_item.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done":
		j.release()
	case "response.completed", "response.incomplete":
		j.release()
		j.usage.read(field(response, "usage"))
	case "error", "response.failed":
		j.err = io.ErrUnexpectedEOF
	default:
		j.err = ErrOther
	}
	if j.err == nil {
		j.write(event, data)
		j.d.next++
	}
}
