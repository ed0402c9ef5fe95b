package prompt

import "bytes"

// block is a block of Anthropic's content that is a call or its result.
type block struct{ kind, text, thought, name, input, id, content span }

func (s *scanner) block(b *block) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return s.take(&b.kind)
		case "text":
			return s.take(&b.text)
		case "thinking":
			return s.take(&b.thought)
		case "name":
			return s.take(&b.name)
		case "input":
			return s.take(&b.input)
		case "tool_use_id":
			return s.take(&b.id)
		case "content":
			return s.take(&b.content)
		}
		return s.value()
	})
}

// hashBlocks writes Anthropic's messages as the chat that vLLM makes of them: system is a message, a tool's result too.
func (r *Request) hashBlocks(c *Chain) {
	r.w.system(c, r.system.of(r.body))
	for i := range r.messages {
		m := &r.messages[i]
		m.name, m.toolCalls, m.toolCallID = span{}, span{}, span{} // a chat's, not known here
		role, v := inside(m.role.of(r.body)), m.content.of(r.body)
		if len(v) == 0 || v[0] != '[' {
			c.message(&r.w, r.body, m)
		} else if string(role) == "assistant" {
			c.mark(markMessage)
			c.text(role)
			r.w.parts(c, v)
			r.w.uses(c, v)
			c.mark(markEnd)
		} else if r.w.results(c, v) {
			c.message(&r.w, r.body, m)
		}
	}
	if n := len(r.messages); string(inside(r.messages[n-1].role.of(r.body))) == "assistant" {
		c.fixed = true // a prefill: the client joins it with the answer
	}
}

// billing begins a block that some clients put in front and that differs with each request: vLLM drops it.
var billing = []byte("x-anthropic-billing-header")

// system writes the system prompt: a string, or blocks that vLLM joins.
func (w *writer) system(c *Chain, raw []byte) {
	if in := inside(raw); len(in) > 0 {
		c.plain("system", in)
		return
	}
	if len(raw) == 0 || raw[0] != '[' {
		return
	}
	open := false
	w.blocks(raw, func(b block) {
		in := inside(b.text.of(raw))
		if len(in) == 0 || bytes.HasPrefix(in, billing) {
			return
		}
		if !open {
			open = true
			c.mark(markMessage)
			c.Append([]byte("system"))
			c.mark(markText)
		}
		c.text(in)
	})
	if open {
		c.mark(markEnd)
	}
}

// uses writes an assistant's calls.
func (w *writer) uses(c *Chain, raw []byte) {
	w.blocks(raw, func(b block) {
		if string(inside(b.kind.of(raw))) == "tool_use" {
			w.call(c, b.name.of(raw), b.input.of(raw))
		}
	})
}

// results writes each tool's result as a message of its own and tells whether the user said more than that.
func (w *writer) results(c *Chain, raw []byte) (more bool) {
	w.blocks(raw, func(b block) {
		if string(inside(b.kind.of(raw))) == "tool_result" {
			c.result(w, b.id.of(raw), b.content.of(raw))
		} else {
			more = true
		}
	})
	return more
}

// blocks walks a content array. (A bare string in it is no block of Anthropic's.)
func (w *writer) blocks(raw []byte, each func(b block)) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		var b block
		ok := s.block(&b)
		each(b)
		return ok
	})
}
