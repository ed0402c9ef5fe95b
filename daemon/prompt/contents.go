package prompt

// messageField takes a field of a Messages event; a body that is not streamed is the message itself.
func (r *Reply) messageField(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "message":
		return s.object(r.messageBody)
	case "delta":
		return s.take(&r.top.delta)
	case "content_block":
		return s.take(&r.top.item)
	case "usage":
		return r.readUsage()
	}
	if !r.stream {
		return r.messageBody(key)
	}
	return r.common(key)
}

func (r *Reply) messageBody(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "id":
		return r.readID()
	case "content":
		return s.take(&r.top.content)
	case "stop_reason":
		return s.take(&r.top.stop)
	case "usage":
		return r.readUsage()
	case "type":
		if r.stream { // "message", beside the event's own
			return s.value()
		}
	}
	return r.common(key)
}

// message takes what an event or a body says.
func (r *Reply) message() {
	b, t := r.w.scan.b, &r.top
	switch string(inside(t.kind.of(b))) {
	case "message_start":
		r.answer(0)
	case "content_block_start":
		r.blockStart(t.item.of(b))
	case "content_block_delta":
		r.blockDelta(t.delta.of(b))
	case "message_delta":
		raw := t.delta.of(b)
		var s scanner
		var stop span
		s.reset(raw)
		s.object(func(key []byte) bool {
			if string(key) == "stop_reason" {
				return s.take(&stop)
			}
			return s.value()
		})
		r.stopped(stop.of(raw))
	case "message_stop":
		if r.clean = true; !r.output {
			r.fail(0)
		}
	case "message":
		raw := t.content.of(b)
		var s scanner
		s.reset(raw)
		s.array(func() bool {
			var v span
			ok := s.take(&v)
			r.blockStart(v.of(raw))
			return ok
		})
		r.stopped(t.stop.of(b))
	}
}

// blockStart begins a block; a body that is not streamed has all of it here.
func (r *Reply) blockStart(raw []byte) {
	var s scanner
	var b block
	s.reset(raw)
	s.block(&b)
	a := r.answer(0)
	r.fresh, r.use = true, -1
	switch string(inside(b.kind.of(raw))) {
	case "tool_use":
		r.output = true
		if r.use = len(a.calls); r.use >= maxCalls {
			r.use = maxCalls - 1
		}
		c := a.call(r.use)
		c.name = r.gather(c.name, b.name.of(raw))
		if in := b.input.of(raw); len(in) > 2 { // {} only stands for what is to come
			r.size += len(in)
			c.arguments = append(c.arguments, in...)
		}
	case "text":
		r.write(a, b.text.of(raw))
	default:
		r.output = r.output || len(inside(b.thought.of(raw))) > 0
	}
}

// write adds to the text of this block; a block that stays empty leaves no trace.
func (r *Reply) write(a *choice, raw []byte) {
	if len(inside(raw)) == 0 {
		return
	}
	if r.fresh && len(a.text) > 0 {
		a.text = append(a.text, markText)
	}
	a.text, r.fresh, r.output = r.gather(a.text, raw), false, true
}

func (r *Reply) blockDelta(raw []byte) {
	b := r.w.scan.b
	var s scanner
	var text, thought, input span
	s.reset(raw)
	s.object(func(key []byte) bool {
		switch string(key) {
		case "text":
			return s.take(&text)
		case "thinking":
			return s.take(&thought)
		case "partial_json":
			return s.take(&input)
		}
		return s.value()
	})
	a := r.answer(0)
	r.write(a, text.of(raw))
	if in := input.of(raw); len(inside(in)) > 0 {
		r.output = true
		if r.use >= 0 {
			a.calls[r.use].arguments = r.gather(a.calls[r.use].arguments, in)
		}
	}
	lo := r.top.delta.lo
	switch written, thinking := len(inside(text.of(b[lo:]))) > 0, len(inside(thought.of(b[lo:]))) > 0; {
	case input.hi > 0 || written == thinking:
	case written:
		r.top.plain, r.top.piece = true, span{lo + text.lo, lo + text.hi}
	default:
		r.output, r.fresh = true, false
		r.top.plain, r.top.piece, r.top.choice = true, span{lo + thought.lo, lo + thought.hi}, -1
	}
}

// stopped takes why the message ended. null is vLLM's for an abort, see Failed.
func (r *Reply) stopped(raw []byte) {
	a := r.answer(0)
	switch string(inside(raw)) {
	case "end_turn", "stop_sequence":
		a.finish = "stop"
	case "max_tokens":
		a.finish = "length"
	case "tool_use":
		a.finish = "tool_calls"
	case "":
		a.finish = "abort"
		r.fail(0)
		return
	default:
		a.finish = "other"
	}
	r.output = true
}
