package prompt

import (
	"bytes"

	"github.com/warmpath/warmpath/daemon/request/jsonwalk"
	"github.com/warmpath/warmpath/daemon/request/sse"
)

// skimmer reads an answer of which nothing is kept, as it is too long or of a kind that is not known: its usages, and
// how much text it has. What it holds is bounded, however long the answer is.
//
// A usage counts where engines write it: in the outermost object, or in the response, message or delta of an event. A
// deeper one is a client's or a model's own text.
type skimmer struct {
	lines  sse.Data
	walk   jsonwalk.Walker
	status bool // inside of the answer's status
	counts bool // inside of a text that an engine has generated
	ids    bool // inside of token ids

	usage  []byte // of the usage whose end has not come
	inside int    // the depth at which it stands; 0 = there is none
	output int    // bytes of text in the event
}

const (
	maxSkimUsage = 16 << 10 // vLLM's has some 200 bytes
	maxStatus    = 32
)

// reset begins another answer.
func (s *skimmer) reset() { *s = skimmer{usage: s.usage[:0]} }

// skim takes the next bytes of an answer. In a stream the data lines are its JSON.
func (r *Reply) skim(p []byte) {
	if !r.t.stream {
		r.skimJSON(p)
		return
	}
	for len(p) > 0 {
		n, data, ends := r.skimmed.lines.Next(p)
		if data {
			r.skimJSON(p[:n])
		}
		if ends {
			r.skimmedEvent()
		}
		p = p[n:]
	}
}

// skimmedEvent ends an event.
func (r *Reply) skimmedEvent() {
	s := &r.skimmed
	if s.output > 0 {
		r.pieces++
	}
	s.walk.Reset()
	s.usage, s.inside, s.output = s.usage[:0], 0, 0
}

// skimJSON takes the next bytes of a JSON text.
func (r *Reply) skimJSON(p []byte) {
	s := &r.skimmed
	w := &s.walk
	for len(p) > 0 {
		t, n := w.Next(p)
		switch t {
		case jsonwalk.Open:
			if s.inside == 0 && p[0] == '{' && s.beginsUsage() {
				s.inside = w.Depth()
			}
		case jsonwalk.Quote:
			if s.beginsText(); s.status {
				r.t.status = r.t.status[:0]
			}
		case jsonwalk.Text:
			if s.counts {
				r.t.answers.size += n
				s.output += n
			} else if s.status {
				r.t.status = append(r.t.status, p[:min(n, maxStatus-len(r.t.status))]...)
			}
		case jsonwalk.Literal:
			s.ids = string(w.Key(w.Depth()-1)) == "token_ids" && len(w.Key(w.Depth())) == 0
			if s.ids {
				r.pieces += 1 + bytes.Count(p[:n], comma)
			}
		case jsonwalk.Rest:
			if s.ids {
				r.pieces += bytes.Count(p[:n], comma)
			}
		}
		if s.inside > 0 {
			s.usage = append(s.usage, p[:min(n, maxSkimUsage-len(s.usage))]...)
			if w.Depth() < s.inside {
				r.ReadUsage(s.usage)
				s.usage, s.inside = s.usage[:0], 0
			}
		}
		p = p[n:]
	}
}

// beginsUsage reports whether the object that has begun is a usage.
func (s *skimmer) beginsUsage() bool {
	level := s.walk.Depth() - 1
	switch string(s.walk.Key(level)) {
	case "usage", "meta":
		return s.outermost(level)
	}
	return false
}

// outermost reports whether the fields of a level are those of an object that may have a usage or a status.
func (s *skimmer) outermost(level int) bool {
	switch string(s.walk.Key(1)) {
	case "response", "message", "delta":
		return level == 1 || level == 2
	}
	return level == 1
}

// beginsText records what a string is, if one begins.
func (s *skimmer) beginsText() {
	s.status, s.counts = false, false
	if !s.walk.InText() {
		return
	}
	level := s.walk.Depth()
	switch string(s.walk.Key(level)) {
	case "status":
		s.status = s.outermost(level)
	case "content", "text", "reasoning", "reasoning_content", "arguments", "delta", "thinking", "partial_json", "refusal":
		s.counts = true
	}
}

var comma = []byte{','}

// ReadUsage reads a usage that was taken out of the answer. A usage without tokens is a duration, for example.
func (r *Reply) ReadUsage(usage []byte) {
	if bytes.Contains(usage, []byte(`tokens"`)) {
		var s scanner
		s.reset(usage)
		r.t.usage.scan(&s)
	}
}

// Skim has nothing read of the answer but its usage, and how much text it has. Call it after Reset.
func (r *Reply) Skim() { r.spoil() }
