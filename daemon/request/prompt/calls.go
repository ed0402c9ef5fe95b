package prompt

import "bytes"

// function is what counts of a function, offered (tools) or called (tool_calls), as ranges of the JSON being scanned.
type function struct{ name, about, params, args span }

// read scans a function.
func (f *function) read(s *scanner) bool {
	return s.object(func(key []byte) bool { return f.readField(s, key) })
}

func (f *function) readField(s *scanner, key []byte) bool {
	switch string(key) {
	case "name":
		return s.locate(&f.name)
	case "description":
		return s.locate(&f.about)
	case "parameters", "input_schema":
		return s.locate(&f.params)
	case "arguments":
		return s.locate(&f.args)
	}
	return s.value()
}

// isTool reports whether a tool of that type consists of this function only. Anthropic's has no type or custom, and a
// schema; OpenAI's of that type has a grammar in its place.
func (f *function) isTool(kind []byte) bool {
	switch string(kind) {
	case "custom":
		return f.name.hi > 0 && f.params.hi > 0
	case "", "function":
		return f.name.hi > 0
	}
	return false
}

// calls appends an assistant's tool calls.
func (w *writer) calls(c *Chain, raw []byte) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		var f function
		ok := s.object(func(key []byte) bool {
			if string(key) == "function" {
				return f.read(&s)
			}
			return s.value()
		})
		w.call(c, f.name.of(raw), f.args.of(raw))
		return ok
	})
}

// call appends one call; its arguments are an object, or a string that holds one.
func (w *writer) call(c *Chain, name, args []byte) {
	w.scratch = unescape(w.scratch[:0], Inside(name))
	n := len(w.scratch)
	if len(args) > 0 && args[0] == '"' {
		w.scratch = unescape(w.scratch, Inside(args))
	} else if len(args) > 0 && args[0] == '{' {
		w.scratch = append(w.scratch, args...)
	}
	w.plainCall(c, w.scratch[:n], w.scratch[n:])
}

// plainCall appends a call whose name and arguments are text. The worker parses the arguments before it prints them,
// so white space in them does not count.
func (w *writer) plainCall(c *Chain, name, arguments []byte) {
	c.mark(markCall)
	c.Append(name)
	c.mark(markText)
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = []byte("{}")
	}
	w.scan.reset(arguments)
	if w.scan.document(nil) {
		c.value(arguments)
	} else {
		c.Append(arguments)
	}
}

// tools appends the tool list. The worker reads each tool into a record and prints that, so the order of a tool's own
// fields does not count, while the order inside parameters does.
func (w *writer) tools(c *Chain, raw []byte) {
	if len(raw) == 0 || raw[0] != '[' {
		return
	}
	var s scanner
	s.reset(raw)
	open := false
	s.array(func() bool {
		if !open {
			open = true
			c.mark(markTools)
		}
		var f function
		var kind span
		lo := s.i
		ok := s.object(func(key []byte) bool {
			switch string(key) {
			case "type":
				return s.locate(&kind)
			case "function":
				return f.read(&s)
			}
			return f.readField(&s, key) // in Responses and Messages the function's fields stand here
		})
		if !f.isTool(Inside(kind.of(raw))) { // unchanged: the parts that the engine leaves out are unknown
			c.value(raw[lo:s.i])
			return ok
		}
		c.mark(markCall)
		c.Append([]byte("function")) // in Anthropic's words custom, or nothing
		c.tagged(markName, f.name.of(raw))
		c.tagged(markText, f.about.of(raw))
		c.mark(markEnd)
		c.value(f.params.of(raw))
		return ok
	})
	if open {
		c.mark(markEnd)
	}
}
