package attempt

import "github.com/warmpath/warmpath/daemon/request/sse"

// splitter lets whole events of a stream through and holds back the beginning of the next: an error event can then
// follow at any time. The zero value is at an event's end.
type splitter struct {
	part   []byte // the beginning of an event, held back
	inside bool   // the client has the beginning of an event
}

// holds reports whether anything is held back.
func (s *splitter) holds() bool { return len(s.part) > 0 }

// prepend moves what was held back to the front of p, as much as fits, and returns how much that is.
func (s *splitter) prepend(p []byte) int {
	n := copy(p, s.part)
	s.part = s.part[:copy(s.part, s.part[n:])]
	s.inside = s.inside || n > 0 && n == len(p) // then no end of the event can follow it
	return n
}

// split holds back what follows the last end of an event in p, and returns how much is before it. An event that is
// larger than the reader's room goes on in pieces.
func (s *splitter) split(p []byte, room int) int {
	if len(p) == 0 {
		return 0
	}
	end := sse.LastEnd(p)
	switch {
	case end == len(p):
		s.inside = false
	case end > 0:
		s.inside = false
		s.part = append(s.part[:0], p[end:]...)
	case s.inside || len(p) == room:
		s.inside = true
		return len(p)
	default:
		s.part = append(s.part[:0], p...)
	}
	return end
}
