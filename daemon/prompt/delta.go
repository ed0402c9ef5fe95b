package prompt

import "slices"

// top is what the top level of an event or a body says, as ranges of it.
type top struct {
	object, kind, code    span // object, type, code
	choices               int
	delta, item           span
	status, reason, items span // Responses
	stop, content         span // Messages
	plain                 bool // nothing but a piece of text
	piece                 span // that text
	choice                int  // whose it is, -1: not kept
}

// delta is one element of choices as ranges of the event: a piece of an answer in a stream, all of it otherwise.
type delta struct {
	index, finish, text, content, thought, refusal, calls, tokens span
}

// field takes a field of the kinds that have choices, or only a usage.
func (r *Reply) field(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "choices":
		return s.array(r.choice)
	case "usage":
		return r.readUsage()
	}
	return r.common(key)
}

// common takes the fields that are the same in all kinds.
func (r *Reply) common(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "id":
		return r.readID()
	case "object":
		return s.take(&r.top.object)
	case "type":
		return s.take(&r.top.kind)
	case "code":
		return s.take(&r.top.code)
	case "error":
		return r.readError()
	}
	return s.value()
}

func (r *Reply) readID() bool {
	var v span
	ok := r.w.scan.take(&v)
	if raw := inside(v.of(r.w.scan.b)); len(r.id) == 0 && len(raw) <= maxID {
		r.id = unescape(r.id, raw)
	}
	return ok
}

// readError takes an error that is not null.
func (r *Reply) readError() bool {
	s := &r.w.scan
	if s.at() == 'n' {
		return s.value()
	}
	var code span
	ok := s.object(func(key []byte) bool {
		if string(key) == "code" {
			return s.take(&code)
		}
		return s.value()
	})
	r.told = true
	r.fail(status(code.of(s.b)))
	return ok
}

// status reads a code that is a number or a string of digits.
func status(raw []byte) int {
	if in := inside(raw); in != nil {
		raw = in
	}
	return int(min(max(number(raw), 0), 1<<20))
}

func (r *Reply) choice() bool {
	s := &r.w.scan
	r.cur = delta{}
	if !s.object(r.choiceField) {
		return false
	}
	r.top.choices++
	r.apply()
	return true
}

func (r *Reply) choiceField(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "index":
		return s.take(&r.cur.index)
	case "delta", "message":
		return s.object(r.deltaField)
	case "text":
		return s.take(&r.cur.text)
	case "token_ids":
		return s.take(&r.cur.tokens)
	case "finish_reason":
		return s.take(&r.cur.finish)
	}
	return s.value()
}

func (r *Reply) deltaField(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "content":
		return s.take(&r.cur.content)
	case "tool_calls":
		return s.take(&r.cur.calls)
	case "reasoning", "reasoning_content": // 0.11 sends both; clients do not send it back
		if s.at() == '"' {
			return s.take(&r.cur.thought)
		}
	case "refusal":
		return s.take(&r.cur.refusal)
	}
	return s.value()
}

// apply adds a delta to its answer.
func (r *Reply) apply() {
	b, d := r.w.scan.b, &r.cur
	i := int(number(d.index.of(b)))
	a := r.answer(i)
	if a == nil {
		return
	}
	text := d.text
	if r.kind != Completion {
		text = d.content
	}
	calls, tokens := list(d.calls.of(b)), list(d.tokens.of(b))
	finish := inside(d.finish.of(b))
	written, thought := len(inside(text.of(b))) > 0, len(inside(d.thought.of(b))) > 0
	if r.kind.Generates() {
		a.text = r.gather(a.text, text.of(b))
	}
	if len(calls) > 0 && r.kind == Chat {
		r.gatherCalls(a, calls)
	}
	if len(tokens) > 0 && r.kind == Completion {
		r.gatherTokens(a, tokens)
	}
	if finish != nil {
		a.finish = finishReason(finish)
		if a.finish == "abort" || a.finish == "error" {
			r.fail(0)
		}
	}
	more := len(calls) > 0 || len(tokens) > 0 || len(inside(d.refusal.of(b))) > 0
	r.output = r.output || written || thought || more || finish != nil && !r.failed
	if r.top.plain = written != thought && !more && finish == nil && r.top.choices == 1; r.top.plain {
		r.top.piece, r.top.choice = text, i
		if thought {
			r.top.piece = d.thought
		}
		if thought || !r.kind.Generates() {
			r.top.choice = -1
		}
	}
}

// answer is the i-th answer, which may be its first mention; nil if it is not followed.
func (r *Reply) answer(i int) *choice {
	if i < 0 || i >= maxChoices {
		return nil
	}
	for ; r.n <= i; r.n++ {
		if r.n == len(r.choices) {
			r.choices = append(r.choices, choice{})
		}
		a := &r.choices[r.n]
		*a = choice{text: a.text[:0], tokens: a.tokens[:0], calls: a.calls[:0]}
	}
	return &r.choices[i]
}

// list gives a raw value that is an array with something in it, else nil.
func list(raw []byte) []byte {
	if len(raw) <= 2 || raw[0] != '[' {
		return nil
	}
	return raw
}

// gather appends a string value to what is kept of an answer.
func (r *Reply) gather(dst, raw []byte) []byte {
	raw = inside(raw)
	if r.size += len(raw); r.size > r.max {
		return dst
	}
	return unescape(dst, raw)
}

// gatherCalls adds pieces of tool calls, each to the call of its index; without one they come in order.
func (r *Reply) gatherCalls(a *choice, raw []byte) {
	var s scanner
	s.reset(raw)
	next := 0
	s.array(func() bool {
		i := next
		var f function
		ok := s.object(func(key []byte) bool {
			switch string(key) {
			case "index":
				return s.int(&i)
			case "function":
				return s.function(&f)
			}
			return s.value()
		})
		if next = i + 1; i >= maxCalls {
			return ok
		}
		c := a.call(i)
		c.name = r.gather(c.name, f.name.of(raw))
		c.arguments = r.gather(c.arguments, f.args.of(raw))
		return ok
	})
}

// call is the i-th call of an answer, which may be its first mention. i must be below maxCalls.
func (a *choice) call(i int) *call {
	for len(a.calls) <= i {
		a.calls = slices.Grow(a.calls, 1)[:len(a.calls)+1]
		c := &a.calls[len(a.calls)-1]
		c.name, c.arguments = c.name[:0], c.arguments[:0]
	}
	return &a.calls[i]
}

func (r *Reply) gatherTokens(a *choice, raw []byte) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		var id int
		ok := s.int(&id)
		if r.size += tokenBytes; r.size <= r.max {
			a.tokens = append(a.tokens, uint32(id))
		}
		return ok
	})
}

// finishReason knows the reasons that mean something to us; the rest is "other", so that it may be a metric's label.
func finishReason(raw []byte) string {
	for _, known := range [...]string{"stop", "length", "tool_calls", "abort", "error"} {
		if string(raw) == known {
			return known
		}
	}
	return "other"
}
