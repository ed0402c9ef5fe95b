package prompt

// maxMessages bounds what a small body could blow up to: "{}," is 3 bytes of body and 44 of memory. What comes after
// is not hashed.
const maxMessages = 1 << 16

// form is what an item of a Responses input is.
type form uint8

const (
	formMessage form = iota
	formCall         // function_call: name, toolCalls = its arguments
	formResult       // function_call_output: toolCallID, content = the output
	formOpaque       // content = all of the item
)

// message is one chat message, or one item of a Responses input, as ranges of the body.
type message struct {
	role, content, name, toolCallID, toolCalls span
	form                                       form
}

// conversation is the messages of a body in one of three dialects: OpenAI's chat (here), Responses' items (items.go),
// Anthropic's messages (blocks.go).
type conversation struct {
	body       []byte
	messages   []message
	starts     []int // of a batch: the index in messages at which each conversation begins; empty = it is none
	unfinished bool  // the last item is in progress: the worker goes on with it
}

func (t *conversation) reset(body []byte) {
	t.body = body
	t.messages, t.starts = t.messages[:0], t.starts[:0]
	t.unfinished = false
}

// role returns a message's role.
func (t *conversation) role(m *message) []byte { return Inside(m.role.of(t.body)) }

// readMessages scans a list of messages, or of such lists, which replaces an earlier one.
func (t *conversation) readMessages(s *scanner) bool {
	t.messages, t.starts = t.messages[:0], t.starts[:0]
	return s.array(func() bool {
		if s.at() != '[' {
			return t.readMessage(s)
		}
		if len(t.starts) == maxPrompts {
			return s.value()
		}
		t.starts = append(t.starts, len(t.messages))
		return s.array(func() bool { return t.readMessage(s) })
	})
}

// IsBatch reports whether the value of messages is a list of conversations, and not one.
func IsBatch(messages []byte) (is bool) {
	Elements(messages, func(m []byte) bool {
		is = len(m) > 0 && m[0] == '['
		return false
	})
	return is
}

func (t *conversation) readMessage(s *scanner) bool {
	if s.at() != '{' {
		return s.value()
	}
	var m message
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "role":
			return s.locate(&m.role)
		case "content":
			return s.locate(&m.content)
		case "name":
			return s.locate(&m.name)
		case "tool_call_id":
			return s.locate(&m.toolCallID)
		case "tool_calls":
			return s.locate(&m.toolCalls)
		}
		return s.value()
	})
	if ok && len(t.messages) < maxMessages {
		t.messages = append(t.messages, m)
	}
	return ok
}

// writeChat appends the messages of a chat: those from one index up to another.
func (t *conversation) writeChat(w *writer, c *Chain, from, to int) {
	for i := from; i < to; i++ {
		t.writeMessage(w, c, &t.messages[i])
	}
}

// endsInText reports whether a message is the assistant's, and has a text and nothing behind it.
func (t *conversation) endsInText(m *message) bool {
	return string(t.role(m)) == "assistant" && len(Inside(m.content.of(t.body))) > 0 && len(m.toolCalls.of(t.body)) == 0
}

func (t *conversation) writeMessage(w *writer, c *Chain, m *message) {
	c.mark(markMessage)
	c.text(t.role(m))
	c.tagged(markName, m.name.of(t.body))
	c.tagged(markAnswer, m.toolCallID.of(t.body))
	w.content(c, m.content.of(t.body))
	if v := m.toolCalls.of(t.body); len(v) > 0 && v[0] == '[' {
		w.calls(c, v)
	}
	c.mark(markEnd)
}
