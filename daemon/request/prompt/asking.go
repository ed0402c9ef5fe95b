package prompt

import (
	"bytes"
	"slices"
)

// Edit is text in place of the bytes from Lo to Hi of a body.
type Edit struct {
	Lo, Hi int
	Text   []byte
}

// Pieces returns a body with edits, which are in their order and do not overlap, in its pieces.
func Pieces(body []byte, edits []Edit) [][]byte {
	pieces, at := make([][]byte, 0, 2*len(edits)+1), 0
	for _, e := range edits {
		pieces = append(pieces, body[at:e.Lo], e.Text)
		at = e.Hi
	}
	return append(pieces, body[at:])
}

// SetField returns what gives a field of a JSON object a value. vLLM's Rust front end refuses a field that comes twice:
// if the object has it, in whatever spelling of its name, the first one gets the value and all others are taken out.
// Else it becomes the last field, but in an object that is cut short.
func SetField(body []byte, name string, value []byte) (edits []Edit) {
	var s scanner
	s.reset(body)
	s.skipMark()
	end := s.i + 1 // of the field before
	whole := s.at() == '{' && s.object(func(key []byte) bool {
		lo, is := s.i, string(key) == name
		if !s.value() {
			return false
		}
		switch {
		case is && edits == nil:
			edits = append(edits, Edit{Lo: lo, Hi: s.i, Text: value})
		case is:
			edits = append(edits, Edit{Lo: end, Hi: s.i})
		}
		end = s.i
		return true
	})
	if edits == nil && whole {
		text := slices.Concat([]byte(`,"`+name+`":`), value)
		if body[end-1] == '{' {
			text = text[1:]
		}
		edits = []Edit{{Lo: end, Hi: end, Text: text}}
	}
	return edits
}

// AskUsage returns what makes the body of a stream ask for the usage at its end. It returns false if the body does so,
// if the answer is no such stream, or if the worker is to find fault with the body. Call it after Parse, before Trim.
func (r *Request) AskUsage() ([]Edit, bool) {
	const name, options = "include_usage", "stream_options"
	f := &r.fields
	if r.Kind != Chat && !r.Kind.completes() || !r.Stream || r.IncludeUsage {
		return nil, false
	}
	value := f.raw(fieldStreamOptions)
	switch {
	case f.has(fieldIncludeUsage): // Python reads 1 as true, and some texts
		if no := f.raw(fieldIncludeUsage)[0]; no == '1' || no == '"' {
			return nil, false
		}
		value = bytes.Join(Pieces(value, SetField(value, name, []byte("true"))), nil)
	case len(value) == 0: // the field is not there
		at := int(f.at[fieldStream].hi)
		return []Edit{{Lo: at, Hi: at, Text: []byte(`,"` + options + `":{"` + name + `":true}`)}}, true
	case value[0] == '{':
		more := bytes.TrimLeft(value[1:], " \t\r\n")
		comma := ","
		if more[0] == '}' {
			comma = ""
		}
		value = slices.Concat([]byte(`{"`+name+`":true`+comma), value[1:])
	case string(value) == "null":
		value = []byte(`{"` + name + `":true}`)
	default:
		return nil, false
	}
	return SetField(f.body, options, value), true
}

// AskCounts returns what makes the body of a stream ask for its usage in each event, as AskUsage does.
func (r *Request) AskCounts() ([]Edit, bool) {
	const options = "stream_options"
	f := &r.fields
	value := f.raw(fieldStreamOptions)
	if len(value) == 0 || string(value) == "null" {
		value = []byte("{}")
	}
	is := f.raw(fieldIncludeUsage)
	if r.Kind != Chat && r.Kind != Completion || !r.Stream || value[0] != '{' ||
		len(is) > 0 && (is[0] == '1' || is[0] == '"') {
		return nil, false
	}
	for _, name := range []string{"include_usage", "continuous_usage_stats"} {
		value = bytes.Join(Pieces(value, SetField(value, name, []byte("true"))), nil)
	}
	return SetField(f.body, options, value), !bytes.Equal(value, f.raw(fieldStreamOptions))
}
