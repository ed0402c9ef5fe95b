package prompt

import (
	"bytes"
	"strings"
)

// Edit is text in place of the bytes from Lo to Hi of a body.
type Edit struct {
	Lo, Hi int
	Text   []byte
}

// AskUsage returns what makes the body of a stream ask for the usage at its end. It returns false if the body does so,
// if the answer is no such stream, or if the worker is to find fault with the body. Call it after Parse, before Trim.
func (r *Request) AskUsage() (Edit, bool) {
	const ask = `"include_usage":true`
	f := &r.fields
	if r.Kind != Chat && r.Kind != Completion || !r.Stream || r.IncludeUsage {
		return Edit{}, false
	}
	at, value := f.at[fieldStreamOptions], f.raw(fieldStreamOptions)
	switch {
	case f.has(fieldIncludeUsage):
		at = f.at[fieldIncludeUsage]
		return at.edit("true"), isFalse(at.of(f.body))
	case len(value) == 0: // the field is not there
		at = f.at[fieldStream]
		at.lo = at.hi
		return at.edit(`,"stream_options":{` + ask + `}`), true
	case value[0] != '{':
		return at.edit("{" + ask + "}"), string(value) == "null"
	}
	more := ","
	if len(bytes.Trim(value, "{} \t\r\n")) == 0 {
		more = ""
	}
	at.lo++
	at.hi = at.lo
	return at.edit(ask + more), true
}

// edit returns text in place of a value.
func (v span) edit(text string) Edit { return Edit{Lo: int(v.lo), Hi: int(v.hi), Text: []byte(text)} }

// isTrue reports whether an engine takes a value for true. Pydantic takes more than JSON does.
func isTrue(raw []byte) bool {
	if len(raw) == 0 || raw[0] == 't' || raw[0] == 'f' {
		return len(raw) > 0 && raw[0] == 't'
	}
	return isOne(raw, "true", "1", "1.0", "t", "y", "yes", "on")
}

// isFalse reports whether an engine takes a value for false, or for none.
func isFalse(raw []byte) bool {
	return isOne(raw, "false", "0", "0.0", "-0", "f", "n", "no", "off") || string(raw) == "null"
}

// isOne reports whether a value is one of the words, by itself or as a text.
func isOne(raw []byte, words ...string) bool {
	if text := inside(raw); text != nil {
		raw = text
	}
	for _, w := range words {
		if strings.EqualFold(w, string(raw)) {
			return true
		}
	}
	return false
}
