package prompt

// form tells the items of a Responses input apart.
type form uint8

const (
	formMessage form = iota
	formCall         // function_call: name, toolCalls = its arguments
	formResult       // function_call_output: toolCallID, content = the output
	formOpaque       // content = all of the item
)

// readItem takes one item of a Responses input. Reasoning is left out, as in a chat.
func (r *Request) readItem() bool {
	s := &r.w.scan
	if s.at() != '{' {
		return s.value()
	}
	lo := s.i
	var m message
	var kind, output, status span
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return s.take(&kind)
		case "role":
			return s.take(&m.role)
		case "content":
			return s.take(&m.content)
		case "name":
			return s.take(&m.name)
		case "call_id":
			return s.take(&m.toolCallID)
		case "arguments":
			return s.take(&m.toolCalls)
		case "output":
			return s.take(&output)
		case "status":
			return s.take(&status)
		}
		return s.value()
	})
	if !ok || len(r.messages) == maxMessages {
		return ok
	}
	switch string(inside(kind.of(r.body))) {
	case "", "message":
		m.toolCallID, m.toolCalls = span{}, span{}
		state := string(inside(status.of(r.body)))
		r.resume = state == "in_progress" || state == "incomplete" // of the last one: the worker goes on with it
	case "function_call":
		m.form = formCall
	case "function_call_output":
		m.form, m.content = formResult, output
	case "reasoning":
		return true
	default:
		m = message{form: formOpaque, content: span{lo, s.i}}
	}
	r.messages = append(r.messages, m)
	return true
}

// hashItems writes a Responses input as the messages that vLLM makes of it: instructions are a system message, a bare text is
// the user's, and what the assistant said and called in a row is one message.
func (r *Request) hashItems(c *Chain) {
	r.w.tools(c, r.tools.of(r.body))
	if v := inside(r.system.of(r.body)); len(v) > 0 {
		c.plain("system", v)
	}
	if len(r.messages) == 0 {
		c.plain("user", inside(r.prompt.of(r.body)))
		return
	}
	for list := r.messages; len(list) > 0; {
		switch m := &list[0]; {
		case r.assistant(m):
			list = list[r.turn(c, list):]
			continue
		case m.form == formResult:
			c.result(&r.w, m.toolCallID.of(r.body), m.content.of(r.body))
		case m.form == formOpaque:
			c.mark(markMessage)
			c.value(m.content.of(r.body))
			c.mark(markEnd)
		default:
			c.message(&r.w, r.body, m)
		}
		list = list[1:]
	}
}

func (r *Request) assistant(m *message) bool {
	return m.form == formCall || m.form == formMessage && string(inside(m.role.of(r.body))) == "assistant"
}

// turn writes the assistant's message that the list begins with and gives the number of its items. A second text begins
// another message.
func (r *Request) turn(c *Chain, list []message) int {
	n, text := 0, -1
	for ; n < len(list) && r.assistant(&list[n]); n++ {
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
		c.content(&r.w, list[text].content.of(r.body))
	}
	for i := range list[:n] {
		if m := &list[i]; m.form == formCall {
			r.w.call(c, m.name.of(r.body), m.toolCalls.of(r.body))
		}
	}
	c.mark(markEnd)
	return n
}
