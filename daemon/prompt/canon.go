package prompt

import (
	"bytes"
	"encoding/binary"
)

// Marks of the canonical text. None of these bytes occurs in valid UTF-8, so no text can imitate them, and no length has to
// stand in front of a text: a length would change all that follows as soon as the text grows.
//
//	chat    = [tools] message...
//	tools   = FE tool... FF
//	message = F8 role [FC name] [FD tool_call_id] part... call... FF
//	part    = F9 text | FA type 8-byte-digest         (an empty text writes nothing, and so does content null)
//	call    = FB name F9 arguments                    (as a JSON value if they are one; the id is left out, see doc.go)
//	value   = the JSON with no white space, each string as F9 text FF
const (
	markMessage = 0xF8
	markText    = 0xF9
	markMedia   = 0xFA
	markCall    = 0xFB
	markName    = 0xFC
	markAnswer  = 0xFD
	markTools   = 0xFE
	markEnd     = 0xFF
)

// writer turns parts of a request or a reply into canonical text.
type writer struct {
	scan    scanner
	scratch []byte
	digest  Chain
}

// text appends the inside of a JSON string, unescaped straight into the blocks.
func (c *Chain) text(raw []byte) {
	var buf [4 * BlockBytes]byte
	for {
		j := bytes.IndexByte(raw, '\\')
		if j < 0 {
			c.Append(raw)
			return
		}
		if j >= BlockBytes {
			c.Append(raw[:j])
			raw = raw[j:]
		}
		out := buf[:0]
		for len(raw) > 0 && len(out) < len(buf)-2*BlockBytes { // a text of escapes is gathered, not hashed rune by rune
			if raw[0] == '\\' {
				var n int
				out, n = unescapeOne(out, raw)
				raw = raw[n:]
				continue
			}
			j := bytes.IndexByte(raw[:min(len(raw), BlockBytes)], '\\')
			if j < 0 {
				break
			}
			out, raw = append(out, raw[:j]...), raw[j:]
		}
		c.Append(out)
	}
}

// value appends a scanned JSON value with white space and escapes taken out, keys in the order in which they come: chat
// templates print them in that order.
func (c *Chain) value(raw []byte) {
	var s scanner
	s.reset(raw)
	for s.space(); s.i < len(raw); s.space() {
		if raw[s.i] != '"' {
			c.mark(raw[s.i])
			s.i++
			continue
		}
		lo := s.i
		if !s.str() {
			return
		}
		c.mark(markText)
		c.text(raw[lo+1 : s.i-1])
		c.mark(markEnd)
	}
}

// tagged appends a mark and a string, or nothing if the value is no string or empty.
func (c *Chain) tagged(mark byte, raw []byte) {
	if in := inside(raw); len(in) > 0 {
		c.mark(mark)
		c.text(in)
	}
}

// call appends one tool call. The worker parses the arguments before it prints them, so white space in them does not count.
func (c *Chain) call(w *writer, name, arguments []byte) {
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

func (c *Chain) message(w *writer, body []byte, m *message) {
	c.mark(markMessage)
	c.text(inside(m.role.of(body)))
	c.tagged(markName, m.name.of(body))
	c.tagged(markAnswer, m.toolCallID.of(body))
	if v := m.content.of(body); len(v) > 0 && v[0] == '[' {
		w.parts(c, v)
	} else {
		c.tagged(markText, v)
	}
	if v := m.toolCalls.of(body); len(v) > 0 && v[0] == '[' {
		w.calls(c, v)
	}
	c.mark(markEnd)
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
		if len(inside(text.of(raw))) > 0 || media.hi == 0 && id.hi == 0 {
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
		var name, args span
		ok := s.object(func(key []byte) bool {
			if string(key) != "function" {
				return s.value()
			}
			return s.object(func(key []byte) bool {
				switch string(key) {
				case "name":
					return s.take(&name)
				case "arguments":
					return s.take(&args)
				}
				return s.value()
			})
		})
		w.scratch = unescape(w.scratch[:0], inside(name.of(raw)))
		n := len(w.scratch)
		if a := args.of(raw); len(a) > 0 && a[0] == '"' {
			w.scratch = unescape(w.scratch, inside(a))
		} else if len(a) > 0 && a[0] == '{' {
			w.scratch = append(w.scratch, a...)
		}
		c.call(w, w.scratch[:n], w.scratch[n:])
		return ok
	})
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
		var kind, name, about, params, tool span
		lo := s.i
		ok := s.object(func(key []byte) bool {
			switch string(key) {
			case "type":
				return s.take(&kind)
			case "function":
				return s.object(func(key []byte) bool {
					switch string(key) {
					case "name":
						return s.take(&name)
					case "description":
						return s.take(&about)
					case "parameters":
						return s.take(&params)
					}
					return s.value()
				})
			}
			return s.value()
		})
		if tool = (span{lo, s.i}); name.hi == 0 {
			c.value(tool.of(raw))
			return ok
		}
		c.mark(markCall)
		c.text(inside(kind.of(raw)))
		c.tagged(markName, name.of(raw))
		c.tagged(markText, about.of(raw))
		c.mark(markEnd)
		c.value(params.of(raw))
		return ok
	})
	if open {
		c.mark(markEnd)
	}
}
