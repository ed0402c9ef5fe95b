package prompt

// readItems scans the items of a Responses input.
func (t *conversation) readItems(s *scanner) bool {
	return s.array(func() bool { return t.readItem(s) })
}

// readItem scans one item. Reasoning is left out, as in a chat.
func (t *conversation) readItem(s *scanner) bool {
	if s.at() != '{' {
		return s.value()
	}
	lo := s.i
	var m message
	var kind, output, status span
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return s.locate(&kind)
		case "role":
			return s.locate(&m.role)
		case "content":
			return s.locate(&m.content)
		case "name":
			return s.locate(&m.name)
		case "call_id":
			return s.locate(&m.toolCallID)
		case "arguments":
			return s.locate(&m.toolCalls)
		case "output":
			return s.locate(&output)
		case "status":
			return s.locate(&status)
		}
		return s.value()
	})
	if !ok || len(t.messages) == maxMessages {
		return ok
	}
	switch string(Inside(kind.of(t.body))) {
	case "", "message":
		m.toolCallID = span{}
		m.toolCalls = span{}
		state := string(Inside(status.of(t.body)))
		t.unfinished = state == "in_progress" || state == "incomplete"
	case "function_call":
		m.form = formCall
	case "function_call_output":
		m.form = formResult
		m.content = output
	case "reasoning":
		return true
	default:
		m = message{form: formOpaque, content: span{uint32(lo), uint32(s.i)}}
	}
	t.messages = append(t.messages, m)
	return true
}

// writeItems appends the items as the messages that vLLM makes of them: the assistant's texts and calls in a row are
// one message.
func (t *conversation) writeItems(w *writer, c *Chain) {
	for list := t.messages; len(list) > 0; {
		switch m := &list[0]; {
		case t.isAssistant(m):
			list = list[t.writeTurn(w, c, list):]
			continue
		case m.form == formResult:
			w.result(c, m.toolCallID.of(t.body), m.content.of(t.body))
		case m.form == formOpaque:
			c.mark(markMessage)
			c.value(m.content.of(t.body))
			c.mark(markEnd)
		default:
			t.writeMessage(w, c, m)
		}
		list = list[1:]
	}
}

func (t *conversation) isAssistant(m *message) bool {
	return m.form == formCall || m.form == formMessage && string(t.role(m)) == "assistant"
}

// writeTurn appends the assistant's message that the list begins with, and returns the number of its items. A second
// text begins another message.
func (t *conversation) writeTurn(w *writer, c *Chain, list []message) int {
	n, text := 0, -1
	for ; n < len(list) && t.isAssistant(&list[n]); n++ {
		if list[n].form == formMessage {
			if text >= 0 {
				break
			}
			text = n
		}
	}
	c.mark(markMessage)
	c.Append([]byte("assistant"))
	if text >= 0 {
		w.content(c, list[text].content.of(t.body))
	}
	for i := range list[:n] {
		if m := &list[i]; m.form == formCall {
			w.call(c, m.name.of(t.body), m.toolCalls.of(t.body))
		}
	}
	c.mark(markEnd)
	return n
}
