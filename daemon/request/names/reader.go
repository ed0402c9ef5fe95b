package names

import (
	"io"

	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// NewReader reads an answer with a name in place of each model's. events: it is a stream of server-sent events.
func NewReader(from io.Reader, name string, events bool) *rewrite.Reader {
	return rewrite.NewReader(from, &editor{name: name, s: scanner{nested: events}}, events)
}

// editor writes a name in place of each model's.
type editor struct {
	name string
	s    scanner
}

// Reset implements [rewrite.Editor].
func (e *editor) Reset() { e.s = scanner{nested: e.s.nested} }

// Append implements [rewrite.Editor].
func (e *editor) Append(out []byte, c byte) []byte {
	switch e.s.next(c) {
	case opens:
		return append(append(out, c), e.name...)
	case inside: // the worker's name
		return out
	}
	return append(out, c)
}
