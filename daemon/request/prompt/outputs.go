package prompt

import "bytes"

// itemsReader reads OpenAI's Responses, whose output is a list of items.
type itemsReader struct {
	heading
	delta, item           span
	status, reason, items span
	number                span
	oneByOne              bool // items came in events of their own, and the end repeats them
}

// read scans one event, or a body, which is the response itself.
func (r *itemsReader) read(t *transcript) bool {
	*r = itemsReader{oneByOne: r.oneByOne}
	s := &t.w.scan
	return s.document(func(key []byte) bool {
		switch string(key) {
		case "delta":
			return s.locate(&r.delta)
		case "item":
			return s.locate(&r.item)
		case "sequence_number":
			return s.locate(&r.number)
		case "response":
			return s.object(func(key []byte) bool { return r.readField(t, key) })
		}
		if !t.stream {
			return r.readField(t, key)
		}
		return r.heading.readField(t, key)
	})
}

// readField scans a field of the response.
func (r *itemsReader) readField(t *transcript, key []byte) bool {
	s := &t.w.scan
	switch string(key) {
	case "status":
		t.formed = true
		return s.locate(&r.status)
	case "incomplete_details":
		return s.object(func(key []byte) bool {
			if string(key) == "reason" {
				return s.locate(&r.reason)
			}
			return s.value()
		})
	case "output":
		t.formed = true
		return s.locate(&r.items)
	case "usage":
		return t.readUsage()
	}
	return r.heading.readField(t, key)
}

// conclude records what the event or body meant. The text is that of the items as they are done: 0.11's
// response.completed holds only the end of it.
func (r *itemsReader) conclude(t *transcript) {
	b := t.w.scan.b
	kind := Inside(r.kind.of(b))
	switch {
	case !t.stream:
		r.finish(t)
	case string(kind) == "response.completed", string(kind) == "response.incomplete":
		t.state.sawEnd()
		r.finish(t)
	case string(kind) == "response.failed", string(kind) == "response.cancelled":
		t.state.fail(failureReported, 0)
	case string(kind) == "response.output_item.added":
		addItem(t, r.item.of(b), false)
	case string(kind) == "response.output_item.done":
		r.oneByOne = true
		addItem(t, r.item.of(b), true)
	case bytes.HasSuffix(kind, []byte(".delta")):
		switch {
		case len(Inside(r.delta.of(b))) > 0:
			t.piece = piece{text: r.delta, choice: nobodys}
			t.state.sawOutput()
		case something(r.delta.of(b)):
			t.state.sawOutput()
		}
	default:
		t.sawOther(kind)
	}
	if status := Inside(r.status.of(b)); len(status) > 0 && len(status) <= maxStatus {
		t.status = append(t.status[:0], status...)
	}
	if n := int(parseNumber(r.number.of(b))); r.number.hi > 0 && n >= 0 && !t.state.failed() {
		t.next = n + 1
	}
}

// finish records the end: items that did not come one by one, and why it ended.
func (r *itemsReader) finish(t *transcript) {
	b := t.w.scan.b
	if raw := nonEmptyList(r.items.of(b)); raw != nil && !r.oneByOne {
		var s scanner
		s.reset(raw)
		s.array(func() bool {
			var item span
			ok := s.locate(&item)
			addItem(t, item.of(raw), true)
			return ok
		})
	}
	reason := Inside(r.reason.of(b))
	finish := ""
	switch string(Inside(r.status.of(b))) {
	case "completed":
		finish = "stop"
	case "incomplete":
		finish = "other"
		if string(reason) == "max_output_tokens" {
			finish = "length"
		}
	case "failed":
		finish = "error"
	case "cancelled":
		finish = "abort"
	}
	empty := t.usage.known && t.usage.output == 0 && !t.state.hasOutput()
	if finish != "" && empty || bytes.Contains(reason, []byte("abort")) {
		finish = "abort"
	}
	to := t.answers.first()
	if finish == "" {
		return
	}
	if to.finishWith(finish) {
		t.state.fail(failureImplied, 0)
	} else {
		t.state.sawOutput()
	}
}

// addItem adds an item of the output: the assistant's message or a call. A thought is output, and not kept.
func addItem(t *transcript, raw []byte, done bool) {
	var s scanner
	s.reset(raw)
	var f function
	var kind, content span
	s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return s.locate(&kind)
		case "content":
			return s.locate(&content)
		}
		return f.readField(&s, key)
	})
	switch string(Inside(kind.of(raw))) {
	case "function_call":
		to := t.answers.first()
		t.state.sawOutput()
		if done && len(to.calls) < maxCalls {
			t.answers.gatherCall(to.callAt(len(to.calls)), f.name.of(raw), f.args.of(raw))
		}
	case "message":
		if done {
			addMessage(t, content.of(raw))
		}
	case "reasoning":
		if done {
			t.state.sawOutput()
		}
	default:
		t.state.sawOutput()
	}
}

// addMessage adds the content of a message that is done.
func addMessage(t *transcript, raw []byte) {
	to := t.answers.first()
	var s scanner
	s.reset(raw)
	first := true
	s.array(func() bool {
		var text span
		ok := s.object(func(key []byte) bool {
			if string(key) == "text" {
				return s.locate(&text)
			}
			return s.value()
		})
		if len(Inside(text.of(raw))) == 0 {
			return ok
		}
		switch {
		case len(to.text) > 0 && first: // another message, see conversation.writeTurn
			to.text = append(append(append(to.text, markEnd, markMessage), "assistant"...), markText)
		case len(to.text) > 0:
			to.text = append(to.text, markText)
		}
		first = false
		to.text = t.answers.gather(to.text, text.of(raw))
		t.state.sawOutput()
		return ok
	})
}
