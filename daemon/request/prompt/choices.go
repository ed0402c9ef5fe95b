package prompt

// choicesReader reads the kinds that have choices, or only a usage: chat, completion, embeddings and the like.
type choicesReader struct {
	heading
	delta delta
	count int  // of the choices in this event
	known bool // it has a field that an event of these kinds may have
}

// delta is one element of choices as ranges of the event: a piece of an answer in a stream, all of it otherwise.
type delta struct {
	index, finish, text, content, thought, refusal, calls, tokens span

	other bool // it has a piece of a kind that is not known
}

// read scans one event or body.
func (r *choicesReader) read(t *transcript) bool {
	*r = choicesReader{}
	return t.w.scan.document(func(key []byte) bool {
		switch string(key) {
		case "choices":
			r.known, t.formed = true, true
			return t.w.scan.array(func() bool { return r.readChoice(t) })
		case "usage":
			r.known = true
			return t.readUsage()
		}
		return r.heading.readField(t, key)
	})
}

// conclude records what the event or body meant as a whole: an answer that is not generated counts as output. So does
// an event that does not belong to a generated answer.
func (r *choicesReader) conclude(t *transcript) {
	switch {
	case t.state.failed():
	case !t.kind.Generates():
		t.state.sawOutput()
	case !r.known:
		t.sawOther(Inside(r.kind.of(t.w.scan.b)))
	}
}

func (r *choicesReader) readChoice(t *transcript) bool {
	r.delta = delta{}
	s := &t.w.scan
	if !s.object(func(key []byte) bool { return r.readField(s, key) }) {
		return false
	}
	r.count++
	r.apply(t)
	return true
}

func (r *choicesReader) readField(s *scanner, key []byte) bool {
	d := &r.delta
	switch string(key) {
	case "index":
		return s.locate(&d.index)
	case "delta", "message":
		return s.object(func(key []byte) bool { return d.readMessage(s, key) })
	case "text":
		return s.locate(&d.text)
	case "token_ids":
		return s.locate(&d.tokens)
	case "finish_reason":
		return s.locate(&d.finish)
	}
	return s.value()
}

func (d *delta) readMessage(s *scanner, key []byte) bool {
	switch string(key) {
	case "content":
		return s.locate(&d.content)
	case "tool_calls":
		return s.locate(&d.calls)
	case "reasoning", "reasoning_content": // 0.11 sends both; clients do not send it back
		if s.at() == '"' {
			return s.locate(&d.thought)
		}
	case "refusal":
		return s.locate(&d.refusal)
	case "role", "name":
		return s.value()
	}
	var v span
	ok := s.locate(&v)
	d.other = d.other || something(v.of(s.b))
	return ok
}

// apply adds the delta to its answer.
func (r *choicesReader) apply(t *transcript) {
	b, d := t.w.scan.b, &r.delta
	t.piece = piece{}
	i := int(parseNumber(d.index.of(b)))
	to := t.answers.at(i)
	if to == nil {
		return
	}
	text := d.content
	if t.kind.completes() {
		text = d.text
	}
	calls, tokens := nonEmptyList(d.calls.of(b)), nonEmptyList(d.tokens.of(b))
	gatherDelta(t, to, text.of(b), calls, tokens)
	finish := Inside(d.finish.of(b))
	if finish != nil && to.finishWith(finishReason(finish)) {
		t.state.fail(failureImplied, 0)
	}
	written, thought := len(Inside(text.of(b))) > 0, len(Inside(d.thought.of(b))) > 0
	more := len(calls) > 0 || len(tokens) > 0 || len(Inside(d.refusal.of(b))) > 0
	if written || thought || more || d.other || finish != nil && !t.state.failed() {
		t.state.sawOutput()
	}
	if r.count > 1 || more || finish != nil || written == thought {
		return
	}
	switch {
	case thought:
		t.piece = piece{text: d.thought, choice: nobodys}
	case t.kind.Generates():
		t.piece = piece{text: text, choice: i}
	default:
		t.piece = piece{text: text, choice: nobodys}
	}
}

// gatherDelta keeps what comes back with the next turn.
func gatherDelta(t *transcript, to *answer, text, calls, tokens []byte) {
	if t.kind.Generates() {
		to.text = t.answers.gather(to.text, text)
	}
	if len(calls) > 0 && t.kind == Chat {
		t.answers.gatherCalls(to, calls)
	}
	if len(tokens) > 0 && t.kind.completes() {
		t.answers.gatherTokens(to, tokens)
	}
}

// nonEmptyList returns a raw value that is an array with something in it, else nil.
func nonEmptyList(raw []byte) []byte {
	if len(raw) <= 2 || raw[0] != '[' {
		return nil
	}
	return raw
}
