package prompt

import "encoding/binary"

// writer turns parts of a request or a reply into canonical text.
type writer struct {
	scan    scanner
	scratch []byte
	digest  Chain
}

// function is what counts of a function, offered (tools) or called (tool_calls), as ranges of the JSON being scanned.
type function struct{ name, about, params, args span }

func (s *scanner) function(f *function) bool {
	return s.object(func(key []byte) bool { return s.functionField(f, key) })
}

func (s *scanner) functionField(f *function, key []byte) bool {
	switch string(key) {
	case "name":
		return s.take(&f.name)
	case "description":
		return s.take(&f.about)
	case "parameters", "input_schema":
		return s.take(&f.params)
	case "arguments":
		return s.take(&f.args)
	}
	return s.value()
}

// parts appends a content array.
func (w *writer) parts(c *Chain, raw []byte) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		if s.at() == '"' { // a bare string counts as a text part
			var v span
			ok := s.take(&v)
			c.tagged(markText, v.of(raw))
			return ok
		}
		var kind, text, media, id span
		ok := s.object(func(key []byte) bool {
			switch string(key) {
			case "type":
				return s.take(&kind)
			case "text":
				return s.take(&text)
			case "uuid":
				return s.take(&id)
			case "cache_control":
				return s.value()
			}
			return s.take(&media)
		})
		switch string(inside(kind.of(raw))) { // calls and results have their own place, see blocks.go; thoughts have none
		case "tool_use", "tool_result", "thinking", "redacted_thinking":
			return ok
		}
		if inside(text.of(raw)) != nil || media.hi == 0 && id.hi == 0 {
			c.tagged(markText, text.of(raw))
			return ok
		}
		if media.hi == 0 || raw[media.lo] == 'n' { // null: the engine is to know it by its id
			media = id
		}
		w.media(c, kind.of(raw), media.of(raw))
		return ok
	})
}

// media appends an image, sound or video by the digest of its url or data: thousands of bytes that become a number of tokens
// that has nothing to do with their length.
func (w *writer) media(c *Chain, kind, raw []byte) {
	pick := raw
	var s scanner
	s.reset(raw)
	s.object(func(key []byte) bool {
		var v span
		ok := s.take(&v)
		if k := string(key); k == "url" || k == "data" {
			pick = v.of(raw)
		}
		return ok
	})
	w.digest.reset(c.hash, domainText)
	w.digest.value(pick)
	c.mark(markMedia)
	c.text(inside(kind))
	var sum [8]byte
	binary.LittleEndian.PutUint64(sum[:], w.digest.sum())
	c.Append(sum[:])
}

// calls appends an assistant's tool calls.
func (w *writer) calls(c *Chain, raw []byte) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		var f function
		ok := s.object(func(key []byte) bool {
			if string(key) == "function" {
				return s.function(&f)
			}
			return s.value()
		})
		w.call(c, f.name.of(raw), f.args.of(raw))
		return ok
	})
}

// call appends one call; its arguments are an object, or a string that holds one.
func (w *writer) call(c *Chain, name, args []byte) {
	w.scratch = unescape(w.scratch[:0], inside(name))
	n := len(w.scratch)
	if len(args) > 0 && args[0] == '"' {
		w.scratch = unescape(w.scratch, inside(args))
	} else if len(args) > 0 && args[0] == '{' {
		w.scratch = append(w.scratch, args...)
	}
	c.call(w, w.scratch[:n], w.scratch[n:])
}

// tools appends the tool list. The worker reads each tool into a record and prints that, so the order of a tool's own fields
// does not count, while the order inside parameters does.
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
				return s.take(&kind)
			case "function":
				return s.function(&f)
			}
			return s.functionField(&f, key) // in Responses and Messages the function's fields stand here
		})
		if f.name.hi == 0 { // no function: in the order in which it comes
			c.value(raw[lo:s.i])
			return ok
		}
		c.mark(markCall)
		if k := inside(kind.of(raw)); len(k) == 0 || string(k) == "custom" {
			c.Append([]byte("function")) // Anthropic's words for it
		} else {
			c.text(k)
		}
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
