package prompt

import "bytes"

// skimmer reads an answer of which nothing is kept, as it is too long or of a kind that is not known: its usages, and
// how much text it has. What it holds is bounded, however long the answer is.
//
// A usage counts where engines write it: in the outermost object, or in the response, message or delta of an event. One
// that stands deeper is a client's or a model's own text.
type skimmer struct {
	line int // of a stream: bytes of the line that were compared with "data:"; -1 = another line

	depth   int
	within  bool // the object at the second level may have a usage
	key     [maxSkimKey + 1]byte
	n       int  // bytes of key, at most one more than maxSkimKey
	value   bool // what comes next is a value
	status  bool // that is the answer's status
	text    bool // inside of a string
	escaped bool // the next byte of the string is escaped
	list    bool // the last byte began a list
	numbers bool // inside of a list of numbers

	usage  []byte // of the usage whose end has not come
	inside int    // the depth at which it stands; 0 = there is none
	output int    // bytes of text in the event
}

const (
	maxSkimKey   = len("reasoning_content")
	maxSkimUsage = 16 << 10 // vLLM's has some 200 bytes
	maxStatus    = 32
)

// reset begins another answer, or another event of one.
func (s *skimmer) reset() { *s = skimmer{usage: s.usage[:0]} }

// named reports whether the last key is one of those.
func (s *skimmer) named(keys ...string) bool {
	for _, k := range keys {
		if string(s.key[:s.n]) == k {
			return true
		}
	}
	return false
}

// hasOutput reports whether the last key is that of a text which an engine has generated.
func (s *skimmer) hasOutput() bool {
	return s.named("content", "text", "reasoning", "reasoning_content", "arguments", "delta", "thinking", "partial_json",
		"refusal")
}

// skim takes the next bytes of an answer. Of a stream the lines of data are its JSON.
func (r *Reply) skim(p []byte) {
	s := &r.skimmed
	if !r.t.stream {
		r.skimJSON(p)
		return
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		line := p
		if end >= 0 {
			line = p[:end]
		}
		p = p[len(line):]
		for s.line >= 0 && s.line < len(dataField) && len(line) > 0 {
			if line[0] == dataField[s.line] {
				s.line++
			} else if line[0] != '\r' || s.line > 0 {
				s.line = -1
			}
			line = line[1:]
		}
		if s.line == len(dataField) {
			r.skimJSON(line)
		}
		if end < 0 {
			return
		}
		p = p[1:]
		if s.line == 0 {
			r.skimmedEvent()
		}
		s.line = 0
	}
}

const dataField = "data:"

// skimmedEvent ends an event.
func (r *Reply) skimmedEvent() {
	if r.skimmed.output > 0 {
		r.pieces++
	}
	r.skimmed.reset()
}

// skimJSON takes the next bytes of a JSON text.
func (r *Reply) skimJSON(p []byte) {
	s, began := &r.skimmed, 0
	for i := 0; i < len(p); {
		if s.text || s.numbers {
			i += r.skimRun(p[i:])
			continue
		}
		c := p[i]
		i++
		if c > ' ' {
			s.numbers = s.list && (c == '-' || c-'0' <= 9)
			s.list = false
		}
		switch c {
		case '{', '[':
			if s.enter(c == '{') {
				began = i - 1
			}
		case '}', ']':
			s.depth--
			s.value = false
			if s.inside > 0 && s.depth == s.inside {
				s.keep(p[began:i])
				r.readSkimmed()
			}
		case ',':
			s.value = false
		case ':':
			s.value = true
		case '"':
			s.text = true
			s.status = s.value && s.outermost() && s.named("status")
			if !s.value {
				s.n = 0
			} else if s.status {
				r.t.status = r.t.status[:0]
			}
		}
	}
	if s.inside > 0 {
		s.keep(p[began:])
	}
}

// outermost reports whether the next byte stands in an object that may have a usage or a status.
func (s *skimmer) outermost() bool { return s.depth == 1 || s.depth == 2 && s.within }

// enter begins an object or a list, and reports whether it is a usage.
func (s *skimmer) enter(object bool) (usage bool) {
	if object && s.value && s.inside == 0 && s.outermost() && s.named("usage", "meta") {
		s.inside, usage = s.depth, true
	}
	if s.depth == 1 {
		s.within = object && s.value && s.named("response", "message", "delta")
	}
	s.depth++
	s.list = !object
	s.value = false
	return usage
}

// keep keeps the next bytes of a usage, as far as it may be long.
func (s *skimmer) keep(p []byte) {
	s.usage = append(s.usage, p[:min(len(p), maxSkimUsage-len(s.usage))]...)
}

// skimRun passes over the next bytes inside of a string or of a list of numbers, and returns how many they are.
func (r *Reply) skimRun(p []byte) int {
	s := &r.skimmed
	if s.numbers {
		n := len(p)
		for _, c := range []byte(`]"[{`) { // the list ends, or has something else too
			if i := bytes.IndexByte(p[:n], c); i >= 0 {
				n, s.numbers = i, false
			}
		}
		if s.named("token_ids") {
			r.pieces += bytes.Count(p[:n], comma)
			if !s.numbers {
				r.pieces++
			}
		}
		return n
	}
	if s.escaped {
		s.escaped = false
		return 1
	}
	end := special(p, 0)
	run := p[:end]
	if !s.value {
		s.n += copy(s.key[s.n:], run)
	} else if s.status {
		r.t.status = append(r.t.status, run[:min(len(run), maxStatus-len(r.t.status))]...)
	} else if s.hasOutput() {
		r.t.answers.size += len(run)
		s.output += len(run)
	}
	if end == len(p) {
		return end
	}
	s.escaped, s.text = p[end] == '\\', p[end] != '"'
	return end + 1
}

var comma = []byte{','}

// readSkimmed reads a usage that came whole.
func (r *Reply) readSkimmed() {
	s := &r.skimmed
	r.ReadUsage(s.usage)
	s.usage, s.inside = s.usage[:0], 0
}

// ReadUsage reads a usage that was taken out of the answer. One without tokens is a duration, or something else.
func (r *Reply) ReadUsage(usage []byte) {
	if bytes.Contains(usage, []byte(`tokens"`)) {
		var s scanner
		s.reset(usage)
		r.t.usage.scan(&s)
	}
}

// Skim has nothing read of the answer but its usage, and how much text it has. Call it after Reset.
func (r *Reply) Skim() { r.spoil() }
