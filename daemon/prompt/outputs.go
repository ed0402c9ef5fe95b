package prompt

import "bytes"

// responseField takes a field of a Responses event; a body that is not streamed is the response itself.
func (r *Reply) responseField(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "delta":
		return s.take(&r.top.delta)
	case "item":
		return s.take(&r.top.item)
	case "response":
		return s.object(r.responseBody)
	}
	if !r.stream {
		return r.responseBody(key)
	}
	return r.common(key)
}

func (r *Reply) responseBody(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "status":
		return s.take(&r.top.status)
	case "incomplete_details":
		return s.object(func(key []byte) bool {
			if string(key) == "reason" {
				return s.take(&r.top.reason)
			}
			return s.value()
		})
	case "output":
		return s.take(&r.top.items)
	case "usage":
		return r.readUsage()
	}
	return r.common(key)
}

// response takes what an event or a body says. The text is taken from the items as they are done: 0.11's response.completed
// holds only the end of it.
func (r *Reply) response() {
	b, t := r.w.scan.b, &r.top
	kind := inside(t.kind.of(b))
	switch {
	case !r.stream:
		r.endResponse()
	case string(kind) == "response.completed", string(kind) == "response.incomplete":
		r.clean = true
		r.endResponse()
	case string(kind) == "response.failed", string(kind) == "response.cancelled":
		r.told = true
		r.fail(0)
	case string(kind) == "response.output_item.added":
		r.item(t.item.of(b), false)
	case string(kind) == "response.output_item.done":
		r.taken = true
		r.item(t.item.of(b), true)
	case bytes.HasSuffix(kind, []byte(".delta")):
		t.plain, t.piece, t.choice = len(inside(t.delta.of(b))) > 0, t.delta, -1
		r.output = r.output || t.plain
	}
}

// endResponse takes the end: items that did not come one by one, and why it ended.
func (r *Reply) endResponse() {
	b, t := r.w.scan.b, &r.top
	if raw := list(t.items.of(b)); raw != nil && !r.taken {
		var s scanner
		s.reset(raw)
		s.array(func() bool {
			var item span
			ok := s.take(&item)
			r.item(item.of(raw), true)
			return ok
		})
	}
	a := r.answer(0)
	reason := inside(t.reason.of(b))
	switch string(inside(t.status.of(b))) {
	case "completed":
		a.finish = "stop"
	case "incomplete":
		if a.finish = "other"; string(reason) == "max_output_tokens" {
			a.finish = "length"
		}
	case "failed":
		a.finish = "error"
	case "cancelled":
		a.finish = "abort"
	}
	empty := r.usage.Known && r.usage.Output == 0 && !r.output
	if a.finish != "" && empty || bytes.Contains(reason, []byte("abort")) {
		a.finish = "abort"
	}
	if a.finish == "abort" || a.finish == "error" {
		r.fail(0)
	} else if a.finish != "" {
		r.output = true
	}
}

// item takes an item of the output: the assistant's message or a call. What is thought is output, and not kept.
func (r *Reply) item(raw []byte, done bool) {
	var s scanner
	s.reset(raw)
	var f function
	var kind, content span
	s.object(func(key []byte) bool {
		switch string(key) {
		case "type":
			return s.take(&kind)
		case "content":
			return s.take(&content)
		}
		return s.functionField(&f, key)
	})
	switch string(inside(kind.of(raw))) {
	case "function_call":
		a := r.answer(0)
		r.output = true
		if done && len(a.calls) < maxCalls {
			c := a.call(len(a.calls))
			c.name = r.gather(c.name, f.name.of(raw))
			c.arguments = r.gather(c.arguments, f.args.of(raw))
		}
	case "message":
		if done {
			r.said(content.of(raw))
		}
	default:
		r.output = r.output || done
	}
}

// said takes the content of a message that is done.
func (r *Reply) said(raw []byte) {
	a := r.answer(0)
	var s scanner
	s.reset(raw)
	first := true
	s.array(func() bool {
		var text span
		ok := s.object(func(key []byte) bool {
			if string(key) == "text" {
				return s.take(&text)
			}
			return s.value()
		})
		if len(inside(text.of(raw))) == 0 {
			return ok
		}
		switch {
		case len(a.text) > 0 && first: // another message, see Request.turn
			a.text = append(append(append(a.text, markEnd, markMessage), "assistant"...), markText)
		case len(a.text) > 0:
			a.text = append(a.text, markText)
		}
		a.text, first, r.output = r.gather(a.text, text.of(raw)), false, true
		return ok
	})
}
