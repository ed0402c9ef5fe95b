package resume

import (
	"bytes"
	"slices"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// takeItem takes an event of responses.
func (j *Joined) takeItem(event, data []byte) {
	var e itemEvent
	if !e.read(data) {
		j.err = ErrOther
		return
	}
	kind := string(prompt.Inside(e.kind))
	switch kind {
	case "response.created", "response.queued":
		return
	case "response.in_progress":
		if j.d.next != 1 { // the client has it
			return
		}
	case "response.output_item.added":
		switch is := string(field(e.item, "type")); {
		case is == `"message"` && j.item == nil:
			j.item = bytes.Clone(field(e.item, "id"))
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
		if !j.text(event, e.delta) {
			return
		}
	case "response.output_text.done", "response.content_part.done", "response.output_item.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done":
		j.release()
	case "response.completed", "response.incomplete":
		j.release()
		j.usage.read(field(e.response, "usage"))
	default:
		j.err = ErrOther
	}
	if j.err == nil {
		j.write(event, data, j.itemEdits(data, &e))
	}
}

// itemEdits returns what makes an event of responses the client's.
func (j *Joined) itemEdits(data []byte, e *itemEvent) []prompt.Edit {
	edits := edit(nil, data, e.numberAt, number(j.d.next))
	j.d.next++
	if id := field(data, "item_id"); j.d.item != nil && bytes.Equal(id, j.item) {
		edits = edit(edits, data, id, j.d.item)
		edits = j.lengthen(edits, data, e.text)
		edits = j.lengthen(edits, data, field(e.part, "text"))
	}
	edits = j.editItem(edits, data, e.item)
	if e.response == nil {
		return edits
	}
	edits = edit(edit(edits, data, field(e.response, "id"), j.d.id), data, field(e.response, "created_at"), j.d.created)
	for _, b := range j.d.asked.bounds {
		if at := field(e.response, b.name); given(at) {
			edits = edit(edits, data, at, number(b.tokens))
		}
	}
	prompt.Elements(field(e.response, "output"), func(item []byte) bool {
		edits = j.editItem(edits, data, item)
		return true
	})
	if u := field(e.response, "usage"); j.usage.known {
		input, output := j.d.split(j.usage)
		edits = edit(edits, data, field(u, "input_tokens"), number(input))
		edits = edit(edits, data, field(u, "output_tokens"), number(output))
	}
	return edits
}

// editItem makes the message that goes on the client's.
func (j *Joined) editItem(edits []prompt.Edit, data, item []byte) []prompt.Edit {
	id := field(item, "id")
	if j.d.item == nil || id == nil || !bytes.Equal(id, j.item) {
		return edits
	}
	edits = edit(edits, data, id, j.d.item)
	first := true
	prompt.Elements(field(item, "content"), func(part []byte) bool {
		if first {
			edits = j.lengthen(edits, data, field(part, "text"))
		}
		first = false
		return true
	})
	return edits
}

// lengthen puts the first text before the second one.
func (j *Joined) lengthen(edits []prompt.Edit, data, text []byte) []prompt.Edit {
	if text == nil {
		return edits
	}
	return edit(edits, data, text, quoted(slices.Concat(j.d.text, prompt.Inside(text))))
}
