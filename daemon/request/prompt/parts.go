package prompt

import "encoding/binary"

// writer turns parts of a request or a reply into canonical text.
type writer struct {
	scan    scanner
	scratch []byte
	digest  *Chain // of media; nil before the first
}

// parts appends a content array.
func (w *writer) parts(c *Chain, raw []byte) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		if s.at() == '"' { // a bare string counts as a text part
			var v span
			ok := s.locate(&v)
			c.tagged(markText, v.of(raw))
			return ok
		}
		var kind, text, media, id span
		ok := s.object(func(key []byte) bool {
			switch string(key) {
			case "type":
				return s.locate(&kind)
			case "text":
				return s.locate(&text)
			case "uuid":
				return s.locate(&id)
			case "cache_control":
				return s.value()
			}
			return s.locate(&media)
		})
		switch string(Inside(kind.of(raw))) { // calls and results have their own place, see blocks.go; thoughts have none
		case "tool_use", "tool_result", "thinking", "redacted_thinking":
			return ok
		}
		if Inside(text.of(raw)) != nil || media.hi == 0 && id.hi == 0 {
			c.tagged(markText, text.of(raw))
			return ok
		}
		if media.hi == 0 || raw[media.lo] == 'n' { // null: the engine knows the media by its id
			media = id
		}
		w.media(c, kind.of(raw), media.of(raw))
		return ok
	})
}

// media appends an image, sound or video by the digest of its url or data: thousands of bytes that become a number of
// tokens that has nothing to do with their length.
func (w *writer) media(c *Chain, kind, raw []byte) {
	pick := raw
	var s scanner
	s.reset(raw)
	s.object(func(key []byte) bool {
		var v span
		ok := s.locate(&v)
		if k := string(key); k == "url" || k == "data" {
			pick = v.of(raw)
		}
		return ok
	})
	if w.digest == nil {
		w.digest = new(Chain)
	}
	w.digest.reset(c.hash, domainText)
	w.digest.value(pick)
	c.Media = true
	c.mark(markMedia)
	c.text(Inside(kind))
	var sum [8]byte
	binary.LittleEndian.PutUint64(sum[:], w.digest.sum())
	c.Append(sum[:])
}

// content appends a message's content: a string or a list of parts.
func (w *writer) content(c *Chain, v []byte) {
	if len(v) > 0 && v[0] == '[' {
		w.parts(c, v)
	} else {
		c.tagged(markText, v)
	}
}

// result appends what a tool gave, in a chat a message of the role tool.
func (w *writer) result(c *Chain, id, content []byte) {
	c.mark(markMessage)
	c.Append([]byte("tool"))
	c.tagged(markAnswer, id)
	w.content(c, content)
	c.mark(markEnd)
}
