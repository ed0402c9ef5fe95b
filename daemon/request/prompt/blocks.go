package prompt

import "bytes"

// block is a block of Anthropic's content: text, thought, a call, or a call's result.
type block struct{ kind, text, thought, name, input, id, content span }

// read scans one block.
func (b *block) read(s *scanner) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return s.locate(&b.kind)
		case "text":
			return s.locate(&b.text)
		case "thinking":
			return s.locate(&b.thought)
		case "name":
			return s.locate(&b.name)
		case "input":
			return s.locate(&b.input)
		case "tool_use_id":
			return s.locate(&b.id)
		case "content":
			return s.locate(&b.content)
		}
		return s.value()
	})
}

// eachBlock calls f for the blocks of a content array. A bare string in it is not a block of Anthropic's.
func eachBlock(raw []byte, f func(b block)) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		var b block
		ok := b.read(&s)
		f(b)
		return ok
	})
}

// writeBlocks appends Anthropic's messages as the chat that vLLM makes of them: system is a message, a tool's result
// too.
func (t *conversation) writeBlocks(w *writer, c *Chain, system []byte) {
	writeSystem(c, system)
	for i := range t.messages {
		m := &t.messages[i]
		*m = message{role: m.role, content: m.content} // the other fields are a chat's
		role, v := t.role(m), m.content.of(t.body)
		if len(v) == 0 || v[0] != '[' {
			t.writeMessage(w, c, m)
		} else if string(role) == "assistant" {
			c.mark(markMessage)
			c.text(role)
			w.parts(c, v)
			writeUses(w, c, v)
			c.mark(markEnd)
		} else if writeResults(w, c, v) {
			t.writeMessage(w, c, m)
		}
	}
	if n := len(t.messages); string(t.role(&t.messages[n-1])) == "assistant" {
		c.fixed = true // a prefill: the client joins it with the answer
	}
}

// billing begins a block that some clients put in front and that differs with each request: vLLM drops it.
var billing = []byte("x-anthropic-billing-header")

// writeSystem appends the system prompt: a string, or blocks that vLLM joins.
func writeSystem(c *Chain, raw []byte) {
	if in := Inside(raw); len(in) > 0 {
		c.plain("system", in)
		return
	}
	if len(raw) == 0 || raw[0] != '[' {
		return
	}
	begun := false
	eachBlock(raw, func(b block) {
		in := Inside(b.text.of(raw))
		if len(in) == 0 || bytes.HasPrefix(in, billing) {
			return
		}
		if !begun {
			begun = true
			c.mark(markMessage)
			c.Append([]byte("system"))
			c.mark(markText)
		}
		c.text(in)
	})
	if begun {
		c.mark(markEnd)
	}
}

// writeUses appends an assistant's calls.
func writeUses(w *writer, c *Chain, raw []byte) {
	eachBlock(raw, func(b block) {
		if string(Inside(b.kind.of(raw))) == "tool_use" {
			w.call(c, b.name.of(raw), b.input.of(raw))
		}
	})
}

// writeResults appends each tool's result as a message of its own, and reports whether the user's message has more.
func writeResults(w *writer, c *Chain, raw []byte) (more bool) {
	eachBlock(raw, func(b block) {
		if string(Inside(b.kind.of(raw))) == "tool_result" {
			w.result(c, b.id.of(raw), b.content.of(raw))
		} else {
			more = true
		}
	})
	return more
}
