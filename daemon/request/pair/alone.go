package pair

import (
	"bytes"
	"io"
	"slices"

	"github.com/warmpath/warmpath/daemon/request/jsonwalk"
	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// clientsMayNot are the fields by which a client could make a worker read the memory of another one.
var clientsMayNot = []string{keyParams, HintField, "bootstrap_host", "bootstrap_port", "bootstrap_room"}

// extras are the fields in which vLLM (0.32) takes kv_transfer_params for a connector's as well, at any depth.
var extras = []string{"vllm_xargs", "sampling_params"}

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
	s := stripper{more: names}
	return s.flush(s.Append(make([]byte, 0, len(body)), body))
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
// It holds a key back, with the comma before it, until it knows the key. If many spaces stand beside the key, it drops
// some of them, so that they take no memory.
type stripper struct {
	answer bool // the object is a worker's answer: kv_transfer_params become null
	more   []string
	walk   jsonwalk.Walker
	held   []byte // a comma, if one is before the key, and the key with its quotes
	long   bool   // inside of a key that is none of these
	out    int    // the depth of the field whose value is left out; 0 = there is none
}

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
func (s *stripper) Append(out, p []byte) []byte {
	for len(p) > 0 {
		t, n := s.walk.Next(p)
		out = s.append(out, t, p[:n])
		p = p[n:]
	}
	return out
}

// append appends a token, unless it is held or left out.
func (s *stripper) append(out []byte, t jsonwalk.Token, text []byte) []byte {
	depth := s.walk.Depth()
	switch {
	case s.out > 0 && t == jsonwalk.Comma && depth == s.out: // the one before the field is held, if there is one
		s.out = 0
		if s.answer {
			s.held = append(s.held, ',')
		}
		return out
	case s.out > 0 && depth < s.out: // the bracket behind the field
		s.out = 0
		s.held = s.held[:0]
	case s.out > 0:
		return out
	case depth <= 0: // no object
	case t == jsonwalk.Comma:
		out = s.flush(out)
		s.held = append(s.held, ',')
		return out
	case t == jsonwalk.Space && len(s.held) > 0:
		s.held = append(s.held, text[:min(len(text), max(0, maxRaw-len(s.held)))]...)
		return out
	case t == jsonwalk.Key && !s.long:
		s.held = append(s.held, text...)
		s.long = len(s.held) > 2*maxRaw+3
		if s.long {
			out = s.flush(out)
		}
		return out
	case t == jsonwalk.Colon && len(s.held) > 0 && s.mayNot(depth):
		s.out = depth
		if s.answer {
			return append(s.flush(out), ":null"...)
		}
		comma, _, _ := bytes.Cut(s.held, []byte{'"'}) // it stands before the next key
		s.held = comma
		return out
	}
	s.long = t == jsonwalk.Key
	return append(s.flush(out), text...)
}

// flush appends what is held: it stays.
func (s *stripper) flush(out []byte) []byte {
	out = append(out, s.held...)
	s.held = s.held[:0]
	return out
}

// mayNot reports whether the field whose key came last is one that is left out.
func (s *stripper) mayNot(depth int) bool {
	key, around := string(s.walk.Key(depth)), s.walk.Key(1)
	switch {
	case s.answer:
		return key == keyParams && (depth == 1 || depth == 2 && string(around) == "response")
	case depth == 1:
		return slices.Contains(clientsMayNot, key) || slices.Contains(s.more, key)
	}
	return key == keyParams && slices.Contains(extras, string(around))
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
