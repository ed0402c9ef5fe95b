package sagemaker

import "bytes"

// maxWord bounds a requestType that is returned: none that means something is longer.
const maxWord = 64

var requestTypeKey = []byte(`"requestType"`)

// RequestType returns the string that stands as requestType at the top level of a JSON object, or "". Of several the
// last counts, as for the workers' parsers. It is lenient: what is no JSON is the worker's to refuse. body may be cut
// anywhere; what comes after the cut is not seen. A body without the word costs one search.
func RequestType(body []byte) string {
	if !bytes.Contains(body, requestTypeKey) {
		return ""
	}
	s := scan{b: body}
	found := ""
	if !s.is('{') {
		return ""
	}
	for {
		key, ok := s.text()
		if !ok || !s.is(':') {
			return found
		}
		if string(key) != "requestType" {
			s.value()
		} else if value, ok := s.text(); ok {
			found = word(value)
		} else {
			found = ""
			s.value()
		}
		if !s.is(',') {
			return found
		}
	}
}

// word returns a value as a string, without an allocation for the words that mean something.
func word(v []byte) string {
	for _, known := range [...]string{newSession, closeWord, closeSessionWord} {
		if string(v) == known {
			return known
		}
	}
	return string(v[:min(len(v), maxWord)])
}

// scan goes through JSON without checking it.
type scan struct {
	b []byte
	i int
}

// is steps over blanks, and over c if that comes next.
func (s *scan) is(c byte) bool {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
			continue
		case c:
			s.i++
			return true
		}
		return false
	}
	return false
}

// text steps over a string, if that comes next, and returns what stands between its quotes, as it is.
func (s *scan) text() ([]byte, bool) {
	if !s.is('"') {
		return nil, false
	}
	from := s.i
	if !s.quoted() {
		return nil, false
	}
	return s.b[from : s.i-1], true
}

// quoted steps over the rest of a string.
func (s *scan) quoted() bool {
	for {
		n := bytes.IndexByte(s.b[s.i:], '"')
		if n < 0 {
			s.i = len(s.b)
			return false
		}
		end := s.i + n
		slashes := 0
		for j := end - 1; j >= s.i && s.b[j] == '\\'; j-- {
			slashes++
		}
		s.i = end + 1
		if slashes%2 == 0 {
			return true
		}
	}
}

// value steps over a value of any kind.
func (s *scan) value() {
	for depth := 0; s.i < len(s.b); {
		switch c := s.b[s.i]; c {
		case '"':
			s.i++
			if !s.quoted() {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return
			}
			depth--
		case ',':
			if depth == 0 {
				return
			}
		}
		s.i++
	}
}
