package tokens

import (
	"bytes"
	"io"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/sse"
)

// addition is what WithIDs puts into a body.
const addition = `"return_token_ids":true,`

// WithIDs returns a body, which is a JSON object that is not empty, with a field that has the worker name the token
// ids in its answer.
func WithIDs(body []byte) []byte {
	i := bytes.IndexByte(body, '{') + 1
	out := make([]byte, 0, len(body)+len(addition))
	out = append(append(out, body[:i]...), addition...)
	return append(out, body[i:]...)
}

// span is a value in a text: text[lo:hi].
type span struct{ lo, hi int }

// finding is what return_token_ids has added to one JSON text of an answer.
type finding struct {
	lists  []span // that are null in an answer without it
	prompt span   // of these, the first that holds the prompt's ids
	hollow bool   // a chunk that is sent only because of it
}

// find looks for what return_token_ids has added: the lists prompt_token_ids, of a chat at the top and of a completion
// in each choice, and token_ids in each choice. If the text is cut, it finds the lists before the cut.
func (f *finding) find(text []byte) (whole bool) {
	*f = finding{lists: f.lists[:0]}
	choices, empty := 0, true
	place := func(value []byte) span { // value is a part of text
		lo := cap(text) - cap(value)
		return span{lo, lo + len(value)}
	}
	note := func(name, value []byte) {
		if value[0] != '[' {
			return
		}
		switch string(name) {
		case "prompt_token_ids":
			if f.prompt.hi == 0 {
				f.prompt = place(value)
			}
		case "token_ids":
			f.hollow = true
		default:
			return
		}
		f.lists = append(f.lists, place(value))
	}
	whole = prompt.Fields(text, func(name, value []byte) bool {
		switch string(name) {
		case "choices":
			prompt.Elements(value, func(choice []byte) bool {
				choices++
				prompt.Fields(choice, func(name, value []byte) bool {
					if string(name) != "prompt_token_ids" && string(name) != "token_ids" {
						empty = empty && isHollow(name, value)
					}
					note(name, value)
					return true
				})
				return true
			})
		case "prompt_token_ids":
			note(name, value)
		}
		return true
	})
	f.hollow = f.hollow && whole && choices == 1 && empty
	return whole
}

// isHollow reports whether a field of a chunk's choice carries nothing. vLLM (0.19, 0.32) sends a chunk whose delta is
// empty for tokens that its parsers keep for themselves, only with return_token_ids.
func isHollow(name, value []byte) bool {
	switch string(name) {
	case "index":
		return true
	case "delta":
		only := true
		return prompt.Fields(value, func(_, v []byte) bool {
			only = only && string(v) == "null"
			return true
		}) && only
	}
	return string(value) == "null"
}

// appendWithout appends a text without what was found in it.
func (f *finding) appendWithout(b, text []byte) []byte {
	at := 0
	for _, l := range f.lists {
		b = append(append(b, text[at:l.lo]...), "null"...)
		at = l.hi
	}
	return append(b, text[at:]...)
}

// Bounds of a Stripper's memory. A body to which WithIDs was applied is at most maxLesson long, so that its ids are
// some 2 MiB at most.
const (
	maxHeld  = 16 << 20
	readSize = 4 << 10
)

// Stripper reads an answer to a body that WithIDs has changed, and returns the answer that the worker would have
// given to the unchanged body. From a stream it returns whole events only, and the rest after the last event at the
// end. An event, or an answer in one piece, that is longer than any with ids is given as it is.
type Stripper struct {
	from   io.Reader
	events bool
	learn  func(ids []uint32) // called once, with the prompt's ids; nil = called
	held   []byte             // read, but no whole event yet
	looked int                // of held: no end of an event is in it
	out    []byte             // ready to be read
	at     int                // of out: was read
	long   bool               // more was held than may be: all goes through as it is
	err    error              // after out
	found  finding
	usage  *prompt.Reply // gets the usages of a stream, which the client does not get; nil = usages are not removed
	last   bool          // but for the last one, which comes alone
}

// NewStripper makes a Stripper. learn gets the prompt's ids, if the answer has them.
func NewStripper(from io.Reader, events bool, learn func(ids []uint32)) *Stripper {
	return &Stripper{from: from, events: events, learn: learn}
}

// WithoutUsage makes a Stripper of a stream that has a usage as only the router has asked for one. The reply gets it.
// last: the client has asked for the one at the end.
func WithoutUsage(from io.Reader, reply *prompt.Reply, last bool) *Stripper {
	return &Stripper{from: from, events: true, usage: reply, last: last}
}

// Read implements io.Reader. It never returns 0 and no error, unless p is empty.
func (s *Stripper) Read(p []byte) (int, error) {
	if s.long && s.at == len(s.out) && s.err == nil {
		return s.from.Read(p)
	}
	for s.at == len(s.out) {
		if s.err != nil || len(p) == 0 {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.out[s.at:])
	s.at += n
	return n, nil
}

// fill reads once more, and makes ready what can be.
func (s *Stripper) fill() {
	s.out, s.at = s.out[:0], 0
	have := len(s.held)
	if cap(s.held)-have < readSize {
		s.held = append(make([]byte, 0, max(2*cap(s.held), 2*readSize)), s.held...)
	}
	n, err := s.from.Read(s.held[have:cap(s.held)])
	s.held, s.err = s.held[:have+n], err
	switch {
	case s.events:
		s.takeEvents()
		if err == io.EOF {
			s.takeRest()
		}
	case err == io.EOF:
		s.takeRest()
	}
	if len(s.held) > maxHeld {
		s.long = true
		s.out = append(s.out, s.held...)
		s.held = nil
	}
}

// takeEvents makes the whole events ready.
func (s *Stripper) takeEvents() {
	done := 0
	for {
		end := sse.FirstEnd(s.held, max(done, s.looked-3))
		if end < 0 {
			break
		}
		s.takeEvent(s.held[done:end])
		done, s.looked = end, end
	}
	s.held = s.held[:copy(s.held, s.held[done:])]
	s.looked = len(s.held)
}

var dataField = []byte("data:")

// takeEvent makes one event ready. It does not change an event with several lines, which is not from vLLM.
func (s *Stripper) takeEvent(event []byte) {
	line := bytes.TrimRight(event, "\r\n")
	if !bytes.HasPrefix(line, dataField) || bytes.IndexByte(line, '\n') >= 0 {
		s.out = append(s.out, event...)
		return
	}
	text := event[len(dataField):len(line)]
	text = text[:len(text):len(text)]
	if s.usage != nil {
		lo, hi, alone := s.takeUsage(text)
		switch {
		case alone && s.last:
			s.out = append(s.out, event...)
		case !alone:
			s.out = append(append(append(s.out, dataField...), text[:lo]...), text[hi:]...)
			s.out = append(s.out, event[len(line):]...)
		}
		return
	}
	s.found.find(text)
	s.teach(text)
	if s.found.hollow {
		return
	}
	s.out = append(s.out, dataField...)
	s.out = s.found.appendWithout(s.out, text)
	s.out = append(s.out, event[len(line):]...)
}

var usageField = []byte(`"usage"`)

// takeUsage passes on the usage of a chunk, and returns the field's position, with a comma. alone: the chunk has
// nothing else.
func (s *Stripper) takeUsage(text []byte) (lo, hi int, alone bool) {
	if !bytes.Contains(text, usageField) {
		return 0, 0, false
	}
	var choices, usage []byte
	prompt.Fields(text, func(name, value []byte) bool {
		switch string(name) {
		case "choices":
			choices = value
		case "usage":
			usage, hi = value, cap(text)-cap(value)+len(value)
		}
		return true
	})
	lo = bytes.LastIndex(text[:hi-len(usage)], usageField)
	if choices == nil || lo < 0 {
		return 0, 0, false
	}
	if usage[0] == '{' {
		s.usage.ReadUsage(usage)
		alone = len(bytes.Trim(choices, "[] ")) == 0
	}
	before, after := bytes.TrimRight(text[:lo], " "), bytes.TrimLeft(text[hi:], " ")
	if bytes.HasSuffix(before, []byte{','}) {
		return len(before) - 1, hi, alone
	}
	if bytes.HasPrefix(after, []byte{','}) {
		hi = len(text) - len(bytes.TrimLeft(after[1:], " "))
	}
	return lo, hi, alone
}

// takeRest makes ready what came last: an answer in one piece, or the beginning of an event. If it is cut, only the
// part before the first list is passed on.
func (s *Stripper) takeRest() {
	text, head := s.held, 0
	if s.usage != nil {
		s.takeEvent(text)
		s.held = nil
		return
	}
	if s.events && bytes.HasPrefix(text, dataField) {
		head = len(dataField)
	}
	s.out = append(s.out, text[:head]...)
	text = text[head:len(text):len(text)]
	if s.found.find(text) || !bytes.Contains(text, []byte(`token_ids"`)) {
		s.teach(text)
		s.out = s.found.appendWithout(s.out, text)
	} else {
		s.out = append(s.out, text[:bytes.Index(text, []byte(`token_ids"`))]...)
	}
	s.held = nil
}

// teach hands on the prompt's ids.
func (s *Stripper) teach(text []byte) {
	at := s.found.prompt
	if s.learn == nil || at.hi == 0 {
		return
	}
	if ids, ok := appendIDs(make([]uint32, 0, (at.hi-at.lo)/4), text[at.lo:at.hi], at.hi-at.lo); ok && len(ids) > 0 {
		s.learn(ids)
		s.learn = nil
	}
}

var _ io.Reader = (*Stripper)(nil)
