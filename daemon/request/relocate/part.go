package relocate

import (
	"encoding/json"
	"unicode/utf8"
)

// Part returns a request whose prompt is about the first share of the prompt of body: what an engine caches for it is a
// prefix of what it caches for body. It cuts a prompt of text or of token ids, and lists of messages or of input items:
// these between two of them, or within a text. It returns nil if it finds nothing to cut.
func Part(body []byte, share float64) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return nil
	}
	for _, name := range [...]string{"messages", "prompt", "input", "token_ids"} {
		cut, ok := first(fields[name], int(float64(len(fields[name]))*share))
		if !ok {
			continue
		}
		fields[name] = cut
		part, err := json.Marshal(fields)
		if err != nil {
			return nil
		}
		return part
	}
	return nil
}

// first returns the first bytes of a text or a list, false if there would be none.
func first(value json.RawMessage, bytes int) (cut json.RawMessage, ok bool) {
	var text string
	if json.Unmarshal(value, &text) == nil {
		bytes = min(bytes, len(text))
		for bytes > 0 && bytes < len(text) && !utf8.RuneStart(text[bytes]) {
			bytes--
		}
		cut, err := json.Marshal(text[:bytes])
		return cut, bytes > 0 && err == nil
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil {
		return nil, false
	}
	n := 0
	for n < len(list) && len(list[n]) <= bytes {
		bytes -= len(list[n]) + 1
		n++
	}
	list = append([]json.RawMessage(nil), list[:n:n]...)
	if rest, ok := within(value, n, bytes); ok {
		list = append(list, rest)
	}
	cut, err := json.Marshal(list)
	return cut, len(list) > 0 && err == nil
}

// within returns the message at an index of a list with the first bytes of its content, false if that is no text.
func within(value json.RawMessage, index, bytes int) (json.RawMessage, bool) {
	var messages []map[string]json.RawMessage
	if json.Unmarshal(value, &messages) != nil || index >= len(messages) {
		return nil, false
	}
	m := messages[index]
	if c := m["content"]; len(c) == 0 || c[0] != '"' {
		return nil, false
	}
	text, ok := first(m["content"], bytes)
	m["content"] = text
	cut, err := json.Marshal(m)
	return cut, ok && err == nil
}
