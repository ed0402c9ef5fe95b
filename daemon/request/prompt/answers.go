package prompt

import "slices"

const (
	maxChoices = 128 // prompts times n that are followed
	maxCalls   = 128 // tool calls in one answer; also what an index in a delta may reach
)

// answers gathers the choices of one reply, in the form in which the client will send them back.
type answers struct {
	list []answer // in use, with the memory of those before
	size int      // bytes seen; over max the rest is not kept
	max  int
}

// answer is one choice as far as it has come.
type answer struct {
	text   []byte // Messages, Responses: with marks between its parts
	tokens []uint32
	calls  []call
	finish string // in the words of finishReason, "" as long as it has no end
}

type call struct{ name, arguments []byte }

func (a *answers) reset(max int) {
	a.list = a.list[:0]
	a.size = 0
	a.max = max
}

// drop gives up all answers and their memory.
func (a *answers) drop() { a.list = nil }

// fits reports whether all that was seen is kept.
func (a *answers) fits() bool { return a.size <= a.max }

// at returns the i-th answer, which may be its first mention; nil if it is not followed.
func (a *answers) at(i int) *answer {
	if i < 0 || i >= maxChoices {
		return nil
	}
	for n := len(a.list); n <= i; n++ {
		if n < cap(a.list) {
			a.list = a.list[:n+1]
		} else {
			a.list = append(a.list, answer{})
		}
		to := &a.list[n]
		*to = answer{text: to.text[:0], tokens: to.tokens[:0], calls: to.calls[:0]}
	}
	return &a.list[i]
}

// first returns the only answer of the kinds that have no choices.
func (a *answers) first() *answer { return a.at(0) }

// gather appends a string value to the kept text of an answer.
func (a *answers) gather(dst, raw []byte) []byte {
	raw = Inside(raw)
	a.size += len(raw)
	if a.size > a.max {
		return dst
	}
	return unescape(dst, raw)
}

// gatherCalls adds pieces of tool calls, each to the call of its index; without one they come in order.
func (a *answers) gatherCalls(to *answer, raw []byte) {
	var s scanner
	s.reset(raw)
	next := 0
	s.array(func() bool {
		i := next
		var f function
		ok := s.object(func(key []byte) bool {
			switch string(key) {
			case "index":
				return s.integer(&i)
			case "function":
				return f.read(&s)
			}
			return s.value()
		})
		next = i + 1
		if i < maxCalls {
			a.gatherCall(to.callAt(i), f.name.of(raw), f.args.of(raw))
		}
		return ok
	})
}

// gatherCall adds to one call.
func (a *answers) gatherCall(to *call, name, arguments []byte) {
	to.name = a.gather(to.name, name)
	to.arguments = a.gather(to.arguments, arguments)
}

func (a *answers) gatherTokens(to *answer, raw []byte) {
	var s scanner
	s.reset(raw)
	s.array(func() bool {
		var id int
		ok := s.integer(&id)
		a.size += tokenBytes
		if a.size <= a.max {
			to.tokens = append(to.tokens, uint32(id))
		}
		return ok
	})
}

// ended reports whether each answer ended by itself, and there is one.
func (a *answers) ended() bool {
	for i := range a.list {
		switch a.list[i].finish {
		case "stop", "length", "tool_calls":
		default:
			return false
		}
	}
	return len(a.list) > 0
}

// callAt returns the i-th call of an answer, which may be its first mention. i must be below maxCalls.
func (a *answer) callAt(i int) *call {
	for len(a.calls) <= i {
		a.calls = slices.Grow(a.calls, 1)[:len(a.calls)+1]
		c := &a.calls[len(a.calls)-1]
		c.name = c.name[:0]
		c.arguments = c.arguments[:0]
	}
	return &a.calls[i]
}

// finishWith sets why the answer ended, and reports whether that is a failure of the worker.
func (a *answer) finishWith(finish string) (failed bool) {
	a.finish = finish
	return finish == "abort" || finish == "error"
}

// appendTo continues the chain of the answer's prompt by the answer, as the next turn will hold it. It returns false if
// that form is not known.
func (a *answer) appendTo(c *Chain, w *writer, kind Kind) bool {
	switch {
	case c.open && c.n == 0: // the mark of the message's end is hashed
		return false
	case !kind.completes():
		if c.open {
			c.n, c.Bytes = c.n-1, c.Bytes-1
		} else {
			c.mark(markMessage)
			c.Append([]byte("assistant"))
			if len(a.text) > 0 {
				c.mark(markText)
			}
		}
		c.Append(a.text)
		for i := range a.calls {
			w.plainCall(c, a.calls[i].name, a.calls[i].arguments)
		}
		c.mark(markEnd)
	case c.size == BlockTokens*tokenBytes: // an answer in text does not have its tokens
		c.AppendTokens(a.tokens)
		return len(a.tokens) > 0
	default:
		c.Append(a.text)
	}
	return true
}

// finishReason returns the reasons that the router knows; the rest is "other", so that it may be a metric's label.
func finishReason(raw []byte) string {
	for _, known := range [...]string{"stop", "length", "tool_calls", "abort", "error"} {
		if string(raw) == known {
			return known
		}
	}
	return "other"
}
