package prompt

// blocksReader reads Anthropic's Messages, whose content is a list of blocks.
type blocksReader struct {
	heading
	delta, item, content, stop span
	block                      openBlock
}

// openBlock is the block whose deltas come.
type openBlock struct {
	written bool // text of it has come, or a thought
	call    int  // the call that it is, or noCall
}

const noCall = -1

func (r *blocksReader) reset() { r.block = openBlock{written: true, call: noCall} }

// read scans one event, or a body, which is the message itself.
func (r *blocksReader) read(t *transcript) bool {
	*r = blocksReader{block: r.block}
	s := &t.w.scan
	return s.document(func(key []byte) bool {
		switch string(key) {
		case "message":
			return s.object(func(key []byte) bool { return r.readField(t, key) })
		case "delta":
			return s.locate(&r.delta)
		case "content_block":
			return s.locate(&r.item)
		case "usage":
			return t.readUsage()
		}
		if !t.stream {
			return r.readField(t, key)
		}
		return r.heading.readField(t, key)
	})
}

// readField scans a field of the message.
func (r *blocksReader) readField(t *transcript, key []byte) bool {
	s := &t.w.scan
	switch string(key) {
	case "id":
		return t.readID()
	case "content":
		t.formed = true
		return s.locate(&r.content)
	case "stop_reason":
		return s.locate(&r.stop)
	case "usage":
		return t.readUsage()
	case "type":
		if t.stream { // "message", beside the event's own
			return s.value()
		}
	}
	return r.heading.readField(t, key)
}

// conclude records what the event or body meant.
func (r *blocksReader) conclude(t *transcript) {
	b := t.w.scan.b
	switch string(Inside(r.kind.of(b))) {
	case "message_start":
		t.answers.first()
	case "content_block_start":
		r.beginBlock(t, r.item.of(b))
	case "content_block_delta":
		r.continueBlock(t, r.delta.of(b))
	case "message_delta":
		raw := r.delta.of(b)
		var s scanner
		var stop span
		s.reset(raw)
		s.object(func(key []byte) bool {
			if string(key) == "stop_reason" {
				return s.locate(&stop)
			}
			return s.value()
		})
		endMessage(t, stop.of(raw))
	case "message_stop":
		t.state.sawEnd()
		if !t.state.hasOutput() {
			t.state.fail(failureImplied, 0)
		}
	case "message":
		raw := r.content.of(b)
		var s scanner
		s.reset(raw)
		s.array(func() bool {
			var v span
			ok := s.locate(&v)
			r.beginBlock(t, v.of(raw))
			return ok
		})
		endMessage(t, r.stop.of(b))
	default:
		t.sawOther(Inside(r.kind.of(b)))
	}
}

// beginBlock begins a block; a body that is not streamed has all of it here.
func (r *blocksReader) beginBlock(t *transcript, raw []byte) {
	var s scanner
	var b block
	s.reset(raw)
	b.read(&s)
	to := t.answers.first()
	r.block = openBlock{call: noCall}
	switch string(Inside(b.kind.of(raw))) {
	case "tool_use":
		t.state.sawOutput()
		r.block.call = min(len(to.calls), maxCalls-1)
		c := to.callAt(r.block.call)
		c.name = t.answers.gather(c.name, b.name.of(raw))
		if in := b.input.of(raw); len(in) > 2 { // {} is a placeholder for later content
			t.answers.size += len(in)
			c.arguments = append(c.arguments, in...)
		}
	case "text":
		r.write(t, to, b.text.of(raw))
	case "thinking":
		if len(Inside(b.thought.of(raw))) > 0 {
			t.state.sawOutput()
		}
	default:
		t.state.sawOutput()
	}
}

// write adds to the text of the block; a block that stays empty leaves no trace.
func (r *blocksReader) write(t *transcript, to *answer, raw []byte) {
	if len(Inside(raw)) == 0 {
		return
	}
	if !r.block.written && len(to.text) > 0 {
		to.text = append(to.text, markText)
	}
	r.block.written = true
	to.text = t.answers.gather(to.text, raw)
	t.state.sawOutput()
}

// continueBlock adds a delta to the block.
func (r *blocksReader) continueBlock(t *transcript, raw []byte) {
	var s scanner
	var text, thought, input span
	other := false
	s.reset(raw)
	s.object(func(key []byte) bool {
		switch string(key) {
		case "text":
			return s.locate(&text)
		case "thinking":
			return s.locate(&thought)
		case "partial_json":
			return s.locate(&input)
		case "type":
			return s.value()
		}
		var v span
		ok := s.locate(&v)
		other = other || something(v.of(raw))
		return ok
	})
	if other {
		t.state.sawOutput()
	}
	to := t.answers.first()
	r.write(t, to, text.of(raw))
	if in := input.of(raw); len(Inside(in)) > 0 {
		t.state.sawOutput()
		if r.block.call != noCall {
			c := &to.calls[r.block.call]
			c.arguments = t.answers.gather(c.arguments, in)
		}
	}
	lo := r.delta.lo
	switch written, thinking := len(Inside(text.of(raw))) > 0, len(Inside(thought.of(raw))) > 0; {
	case input.hi > 0 || written == thinking:
	case written:
		t.piece = piece{text: span{lo + text.lo, lo + text.hi}}
	default:
		t.state.sawOutput()
		r.block.written = true
		t.piece = piece{text: span{lo + thought.lo, lo + thought.hi}, choice: nobodys}
	}
}

// endMessage records why the message ended. null is vLLM's for an abort, see Reply.Failed.
func endMessage(t *transcript, raw []byte) {
	finish := "other"
	switch string(Inside(raw)) {
	case "end_turn", "stop_sequence":
		finish = "stop"
	case "max_tokens":
		finish = "length"
	case "tool_use":
		finish = "tool_calls"
	case "":
		finish = "abort"
	}
	if t.answers.first().finishWith(finish) {
		t.state.fail(failureImplied, 0)
	} else {
		t.state.sawOutput()
	}
}
