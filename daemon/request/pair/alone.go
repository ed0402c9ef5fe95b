package pair

import (
	"bytes"
	"io"
	"slices"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// clientsMayNot are the fields by which a client would have a worker read memory of another one.
var clientsMayNot = []string{keyParams, "bootstrap_host", "bootstrap_port", "bootstrap_room"}

// extras are the fields in which vLLM (0.32) takes kv_transfer_params for a connector's as well, at any depth.
var extras = []string{"vllm_xargs", "sampling_params"}

// answers are the fields of an answer and of its events that have kv_transfer_params, if it is not the answer itself.
var answers = []string{"response"}

// maxRaw bounds a key that may be one of these: each letter may be written as an escape of 6 bytes.
const maxRaw = 6 * len(keyParams)

// Alone returns the body of a request without what a client may not send: it must not name a prefiller to a worker. It
// returns the body itself if that cannot have such a field.
func Alone(body []byte) []byte { return Without(body) }

// Without is Alone, and takes the fields of these names out as well.
func Without(body []byte, names ...string) []byte {
	has := func(name string) bool { return bytes.Contains(body, []byte(name)) }
	if !slices.ContainsFunc(clientsMayNot, has) && !slices.ContainsFunc(names, has) && !escapesLetter(body) {
		return body
	}
	s, out := stripper{more: names}, make([]byte, 0, len(body))
	for _, c := range body {
		out = s.Append(out, c)
	}
	return append(out, s.held...)
}

// AloneAll returns how a body is read that is too long to be held: as [Alone].
func AloneAll(body io.Reader) io.Reader {
	s := &stripper{}
	return io.MultiReader(rewrite.NewReader(body, s, false), s)
}

// Secret returns how a client reads a decoder's answer: with null for kv_transfer_params, which are for workers alone.
// events: the answer is a stream of server-sent events.
func Secret(answer io.Reader, events bool) io.Reader {
	s := &stripper{answer: true}
	return io.MultiReader(rewrite.NewReader(answer, s, events), s)
}

// stripper takes the fields of clientsMayNot and more out of an object in JSON, and kv_transfer_params out of extras.
// It holds a key back, with the comma before it, until it knows the key. Many spaces around it are cut, so that they
// take no memory. Everything that is no object stays as it is.
type stripper struct {
	answer  bool // the object is a worker's answer: kv_transfer_params become null
	more    []string
	state   state
	depth   int
	inside  int    // the depth at which a value of extras, or of answers, began; 0 = this is none
	held    []byte // a comma, if one is before the key, and the key with its quotes
	text    bool   // inside of a string
	escaped bool   // the next byte of the string is escaped
	skipped int    // brackets that are open in a value that is left out
}

// state is what a stripper expects.
type state uint8

const (
	opening   state = iota // the object
	between                // what may be a key
	inKey                  // the rest of what may be one
	behindKey              // the colon that shows that it is one
	extra                  // the value of extras
	value                  // anything else
	skipping               // the rest of a value that is left out
	ended                  // nothing any more
)

// Reset implements [rewrite.Editor].
func (s *stripper) Reset() { *s = stripper{answer: s.answer, more: s.more} }

// Read gives what is held at the end of a body that breaks off.
func (s *stripper) Read(p []byte) (int, error) {
	n := copy(p, s.held)
	s.held = s.held[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Append implements [rewrite.Editor].
func (s *stripper) Append(out []byte, c byte) []byte {
	switch s.state {
	case opening:
		if c == '{' {
			s.depth, s.state = 1, between
		} else if !isSpace(c) && c < 0x80 { // a mark of the encoding may come first
			s.state = ended
		}
		return append(out, c)
	case ended:
		return append(out, c)
	case skipping:
		return s.skip(out, c)
	case between:
		if isSpace(c) {
			return s.space(out, c)
		}
		if c == '"' {
			s.held, s.text, s.state = append(s.held, c), true, inKey
			return out
		}
	case inKey:
		s.held = append(s.held, c)
		s.inText(c)
		if !s.text {
			s.state = behindKey
		} else if len(s.held) > 2*maxRaw+3 {
			s.state = value
			return s.flush(out)
		}
		return out
	case behindKey:
		if isSpace(c) {
			return s.space(out, c)
		}
		if c == ':' {
			return s.judge(out)
		}
	case extra:
		if isSpace(c) {
			return append(out, c)
		}
		if c == '{' || c == '[' {
			s.inside = s.depth + 1
		}
	}
	s.state = value
	return s.plain(s.flush(out), c)
}

// space holds a space by a key, if it is one of few.
func (s *stripper) space(out []byte, c byte) []byte {
	if len(s.held) < maxRaw {
		s.held = append(s.held, c)
	}
	return out
}

// flush appends what is held: it stays.
func (s *stripper) flush(out []byte) []byte {
	out = append(out, s.held...)
	s.held = s.held[:0]
	return out
}

// inText takes the next byte of a string.
func (s *stripper) inText(c byte) {
	if s.escaped {
		s.escaped = false
	} else {
		s.escaped, s.text = c == '\\', c != '"'
	}
}

// judge decides on the key that is held, whose value begins.
func (s *stripper) judge(out []byte) []byte {
	from, to := bytes.IndexByte(s.held, '"'), bytes.LastIndexByte(s.held, '"')
	key := unescaped(s.held[from+1 : to])
	s.state = value
	switch {
	case s.answer && key == keyParams && (s.depth == 1 || s.depth == s.inside):
		s.state = skipping
		return append(s.flush(out), ":null"...)
	case s.answer && s.depth == 1 && slices.Contains(answers, key):
		s.state = extra
	case s.answer:
	case s.inside > 0 && key == keyParams, s.depth == 1 && slices.Contains(clientsMayNot, key),
		s.depth == 1 && slices.Contains(s.more, key):
		s.held = s.held[:from] // the comma stands before the next key
		s.state = skipping
		return out
	case s.depth == 1 && slices.Contains(extras, key):
		s.state = extra
	}
	return append(s.flush(out), ':')
}

// plain appends a byte that stays.
func (s *stripper) plain(out []byte, c byte) []byte {
	out = append(out, c)
	switch {
	case s.text:
		s.inText(c)
	case c == '"':
		s.text = true
	case c == '{' || c == '[':
		s.depth++
		if c == '{' && s.inside > 0 {
			s.state = between
		}
	case c == '}' || c == ']':
		s.depth--
		if s.depth < s.inside {
			s.inside = 0
		}
		if s.depth == 0 {
			s.state = ended
		}
	case c == ',' && (s.depth == 1 || s.inside > 0):
		s.held, s.state = append(s.held, c), between
		return out[:len(out)-1]
	}
	return out
}

// skip leaves a byte of a value out. The bracket behind the value stays. A comma does not: the one before the field is
// held, if there is one.
func (s *stripper) skip(out []byte, c byte) []byte {
	switch {
	case s.text:
		s.inText(c)
	case c == '"':
		s.text = true
	case c == '{' || c == '[':
		s.skipped++
	case s.skipped > 0 && (c == '}' || c == ']'):
		s.skipped--
	case s.skipped > 0:
	case c == ',' && s.answer:
		s.state = value
		return s.plain(out, c)
	case c == ',':
		s.state = between
	case c == '}' || c == ']':
		s.held, s.state = s.held[:0], value
		return s.plain(out, c)
	}
	return out
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// unescaped returns the text of a key as engines read it, "" if it has an escape that no letter needs.
func unescaped(key []byte) string {
	var text []byte
	for ; len(key) > 0; key = key[1:] {
		if key[0] == '\\' {
			if len(key) < 6 || key[1] != 'u' {
				return ""
			}
			n, err := strconv.ParseUint(string(key[2:6]), 16, 7)
			if err != nil {
				return ""
			}
			text = append(text, byte(n))
			key = key[5:]
			continue
		}
		text = append(text, key[0])
	}
	return string(text)
}

// escapesLetter reports whether a body writes one of the letters that names are made of as an escape.
func escapesLetter(body []byte) bool {
	const start = `\u00`
	for {
		i := bytes.Index(body, []byte(start))
		if i < 0 || len(body) < i+len(start)+1 {
			return false
		}
		body = body[i+len(start):]
		if body[0] >= '5' && body[0] <= '7' {
			return true
		}
	}
}
