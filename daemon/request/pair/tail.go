package pair

import (
	"io"

	"github.com/warmpath/warmpath/daemon/request/rewrite"
)

// AloneAll returns how a body is read that is too long to be held: as [Alone], with null for the fields that a client
// may not send as its last ones, whether it has them or not.
func AloneAll(body io.Reader) io.Reader { return rewrite.NewReader(body, new(closing), false) }

// closing finds the end of an object.
type closing struct {
	depth   int
	text    bool // inside of a string
	escaped bool // the next byte of the string is escaped
	ended   bool // the object has come to its end
}

// Reset implements [rewrite.Editor].
func (c *closing) Reset() { *c = closing{} }

// Append implements [rewrite.Editor].
func (c *closing) Append(out []byte, b byte) []byte {
	switch {
	case c.escaped:
		c.escaped = false
	case c.text:
		c.escaped, c.text = b == '\\', b != '"'
	case b == '"':
		c.text = true
	case b == '{' || b == '[':
		c.depth++
	case b == '}' || b == ']':
		c.depth--
		if c.depth == 0 && !c.ended {
			c.ended = true
			out = append(out, nulls...)
		}
	}
	return append(out, b)
}

// nulls are the fields behind those of a client.
var nulls = func() []byte {
	f := fields{}
	for _, name := range clientsMayNot {
		f.add(name, "null")
	}
	return append([]byte{','}, f.text...)
}()
