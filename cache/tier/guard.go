package tier

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// guard reads along with what comes from Redis and ends the connection before the client library makes room for a reply that
// cannot be meant for us: the library allocates what a header announces, 16 GB for *1000000000, before the first element came.
// Bounds are for all replies to what was written at once.
type guard struct {
	net.Conn
	most  int64 // bytes
	bytes int64 // left of them
	items int64 // left of maxItems

	skip int64 // bytes of a bulk string still to come, its line end too
	kind byte  // of the line that is being read
	at   int   // in that line; 0 = at its beginning
	n    int64 // the number in it
	none bool  // the number is negative: there is nothing
	bad  error // found: nothing more is read
}

const (
	// maxItems bounds the elements of arrays: a page of SCAN has some 1,000, answers to a batch of changes 768.
	maxItems = 1 << 16
	maxLine  = 64 << 10
	// glance is for how long a look at a connection whose time is over may take: a read without any fails before it looks.
	glance = time.Millisecond
)

var errReply = errors.New("tier: the reply is larger than anything that was asked for, or no reply of a Redis")

// guarded wraps a connection. The library looks at idle connections through syscall.Conn, where they have it.
func guarded(c net.Conn, most int64) net.Conn {
	g := &guard{Conn: c, most: most}
	if raw, ok := c.(syscall.Conn); ok {
		return struct {
			*guard
			syscall.Conn
		}{g, raw}
	}
	return g
}

func (g *guard) Write(p []byte) (int, error) {
	g.bytes, g.items = g.most, maxItems
	return g.Conn.Write(p)
}

func (g *guard) Read(p []byte) (int, error) {
	if g.bad != nil {
		return 0, g.bad
	}
	n, err := g.Conn.Read(p)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) { // on a starved machine the answer is here and we are late
		_ = g.Conn.SetReadDeadline(time.Now().Add(glance))
		n, err = g.Conn.Read(p)
	}
	if g.bytes -= int64(n); g.bytes < 0 || !g.follow(p[:n]) {
		g.bad = errReply
		return 0, g.bad
	}
	return n, err
}

// follow reads along. It is false for a reply that is too large, or none.
func (g *guard) follow(p []byte) bool {
	for len(p) > 0 {
		if g.skip > 0 {
			k := min(g.skip, int64(len(p)))
			g.skip -= k
			p = p[k:]
			continue
		}
		c := p[0]
		p = p[1:]
		switch g.at++; {
		case g.at == 1:
			g.kind, g.n, g.none = c, 0, false
			if c != '+' && c != '-' && c != ':' && c != '$' && c != '*' {
				return false
			}
		case g.at > maxLine:
			return false
		case c == '\n':
			g.at = 0
			if !g.announced() {
				return false
			}
		case c == '-':
			g.none = true
		case c >= '0' && c <= '9' && (g.kind == '$' || g.kind == '*'):
			if g.n = 10*g.n + int64(c-'0'); g.n > g.most {
				return false
			}
		}
	}
	return true
}

// announced takes in what the line that has ended says of what comes.
func (g *guard) announced() bool {
	switch {
	case g.none:
	case g.kind == '$':
		g.skip = g.n + 2
	case g.kind == '*':
		g.items -= g.n
	}
	return g.items >= 0
}
