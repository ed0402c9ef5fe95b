package prompt

import (
	"bytes"
	"unicode/utf8"
)

// TextVersion is the version of the canonical text and of how it is hashed. Routers whose versions differ share no
// history. Raise it with every change that gives the same request other hashes (TestTextVersion).
const TextVersion = 1

// Marks of the canonical text. None of these bytes occurs in valid UTF-8, so no text can imitate them, and a text
// needs no length in front of it. A length would change all that follows as soon as the text grows.
//
//	chat    = [tools] message...
//	tools   = FE tool... FF
//	message = F8 role [FC name] [FD tool_call_id] part... call... FF
//	part    = F9 text | FA type 8-byte-digest         (an empty text writes nothing, and so does content null)
//	call    = FB name F9 arguments                    (as a JSON value if they are one; the id is left out, see why.md)
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

// text appends the inside of a JSON string, unescaped straight into the blocks. A text with escapes goes through a
// buffer small enough to stay in the processor's first cache.
func (c *Chain) text(raw []byte) {
	if !escaped(raw) {
		c.Append(raw)
		return
	}
	var buf [16 * BlockBytes]byte
	for n := 0; len(raw) > 0; n = 0 {
		for len(raw) > 0 && n+utf8.UTFMax <= len(buf) {
			if raw[0] == '\\' {
				if b := escapeValue[raw[1]]; b != 0 {
					buf[n] = b
					n++
					raw = raw[2:]
					continue
				}
				out, k := unescapeOne(buf[:n], raw)
				n = len(out)
				raw = raw[k:]
				continue
			}
			run := raw[:min(len(raw), len(buf)-n)]
			if j := bytes.IndexByte(run, '\\'); j >= 0 {
				run = run[:j]
			}
			n += copy(buf[n:], run)
			raw = raw[len(run):]
		}
		c.Append(buf[:n])
	}
}

// value appends a scanned JSON value with white space and escapes taken out, keys in the order in which they come:
// chat templates print them in that order.
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

// tagged appends a mark and a string, or nothing if the value is not a string or empty.
func (c *Chain) tagged(mark byte, raw []byte) {
	if in := Inside(raw); len(in) > 0 {
		c.mark(mark)
		c.text(in)
	}
}

// plain appends a message that is only a text, given as the inside of a string.
func (c *Chain) plain(role string, text []byte) {
	c.mark(markMessage)
	c.Append([]byte(role))
	c.mark(markText)
	c.text(text)
	c.mark(markEnd)
}
