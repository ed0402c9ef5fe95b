package prompt

import "slices"

// delta is one element of choices as ranges of the event: a piece of an answer in a stream, all of it otherwise.
type delta struct {
	index, finish, text, content, calls, tokens span
}

func (r *Reply) field(key []byte) bool {
	s := &r.w.scan
	switch string(key) {
	case "choices":
		return s.array(r.choice)
	case "usage":
		return s.object(r.usageField)
	case "error":
		r.failed = r.failed || s.at() != 'n' // null
	}
	return s.value()
}

func (r *Reply) usageField(key []byte) bool {
	s := &r.w.scan
	r.usage.OK = true
	switch string(key) {
	case "prompt_tokens":
		return s.int(&r.usage.Prompt)
	case "completion_tokens":
		return s.int(&r.usage.Completion)
	case "prompt_tokens_details":
		return s.object(r.usageDetail)
	}
	return s.value()
}

func (r *Reply) usageDetail(key []byte) bool {
	s := &r.w.scan
	if string(key) == "cached_tokens" && s.at() != 'n' {
		r.usage.CachedKnown = true
		return s.int(&r.usage.Cached)
	}
	return s.value()
}

// int reads a number.
func (s *scanner) int(into *int) bool {
	var v span
	ok := s.take(&v)
	*into = int(min(max(number(v.of(s.b)), 0), 1<<40))
	return ok
}

func (r *Reply) choice() bool {
	s := &r.w.scan
	r.cur = delta{}
	if !s.object(r.choiceField) {
		return false
	}
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
	}
	return s.value() // reasoning among them: clients do not send it back
}

// apply adds a delta to its answer.
func (r *Reply) apply() {
	b := r.w.scan.b
	i := int(number(r.cur.index.of(b)))
	if i < 0 || i >= maxChoices {
		return
	}
	for ; r.n <= i; r.n++ {
		if r.n == len(r.choices) {
			r.choices = append(r.choices, choice{})
		}
		a := &r.choices[r.n]
		*a = choice{text: a.text[:0], tokens: a.tokens[:0], calls: a.calls[:0]}
	}
	a := &r.choices[i]
	text := r.cur.text
	if r.kind == Chat {
		text = r.cur.content
	}
	a.text = r.gather(a.text, text.of(b))
	if raw := r.cur.calls.of(b); r.kind == Chat && len(raw) > 0 && raw[0] == '[' {
		r.gatherCalls(a, raw)
	}
	if raw := r.cur.tokens.of(b); r.kind == Completion && len(raw) > 0 && raw[0] == '[' {
		r.gatherTokens(a, raw)
	}
	if f := inside(r.cur.finish.of(b)); f != nil {
		a.finish = finishReason(f)
		r.failed = r.failed || a.finish == "abort" || a.finish == "error"
	}
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
		for len(a.calls) <= i {
			a.calls = slices.Grow(a.calls, 1)[:len(a.calls)+1]
			c := &a.calls[len(a.calls)-1]
			c.name, c.arguments = c.name[:0], c.arguments[:0]
		}
		c := &a.calls[i]
		c.name = r.gather(c.name, f.name.of(raw))
		c.arguments = r.gather(c.arguments, f.args.of(raw))
		return ok
	})
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
