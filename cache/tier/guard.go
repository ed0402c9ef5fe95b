package tier

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// guard checks the replies of Redis as they are read. It ends the connection when a reply announces more than any reply
// to us can have. Without the guard, the client library would allocate as much as a line announces before the first
// element has come: 16 GB for *1000000000. The bounds are for all replies to one write together.
type guard struct {
	net.Conn
	most  int64 // bytes
	bytes int64 // left of them
	items int64 // left of maxItems

	line line
	skip int64 // bytes of a bulk string still to come, its line end too
	bad  error // what was wrong with a reply: nothing more is read
}

const (
	// maxItems bounds the elements of arrays: a page of SCAN has some 1,000, answers to a batch of changes 768.
	maxItems = 1 << 16
	maxLine  = 64 << 10
	// grace is how much longer a connection is read whose deadline has passed. Once that time is over, a read fails
	// before it reads anything.
	grace = time.Millisecond
)

var errReply = errors.New("tier: the reply is larger than anything that was asked for, or no reply of a Redis")

// guarded wraps a connection. The library probes idle connections through syscall.Conn, where they have it.
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
	g.bytes = g.most
	g.items = maxItems
	return g.Conn.Write(p)
}

func (g *guard) Read(p []byte) (int, error) {
	if g.bad != nil {
		return 0, g.bad
	}
	n, err := g.Conn.Read(p)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) { // the answer may be here, only this process was slow
		_ = g.Conn.SetReadDeadline(time.Now().Add(grace))
		n, err = g.Conn.Read(p)
	}
	g.bytes -= int64(n)
	if g.bytes < 0 || !g.follow(p[:n]) {
		g.bad = errReply
		return 0, g.bad
	}
	return n, err
}

// follow checks the next bytes. It returns false for a reply that is too large or malformed.
func (g *guard) follow(p []byte) bool {
	for len(p) > 0 {
		if g.skip > 0 {
			k := min(g.skip, int64(len(p)))
			g.skip -= k
			p = p[k:]
			continue
		}
		ended, ok := g.line.add(p[0], g.most)
		if !ok || ended && !g.expect() {
			return false
		}
		p = p[1:]
	}
	return true
}

// expect records what the line that has ended announces.
func (g *guard) expect() bool {
	switch {
	case g.line.negative:
	case strings.IndexByte(bulks, g.line.kind) >= 0:
		g.skip = g.line.n + 2
	case strings.IndexByte(arrays, g.line.kind) >= 0:
		g.items -= g.line.n
	case strings.IndexByte(maps, g.line.kind) >= 0:
		g.items -= 2 * g.line.n
	}
	return g.items >= 0
}

// The kinds of replies, in RESP2 and RESP3: the library speaks that to Sentinels.
const (
	plainKinds = "+-:_#,("
	bulks      = "$!="
	arrays     = "*~>"
	maps       = "%|"
)

// line is a line of a reply while it is read.
type line struct {
	kind     byte
	read     int   // bytes of it; 0 = the next byte begins a line
	n        int64 // the number in it
	negative bool  // there is nothing
}

// add takes the next byte in. ok is false for a line that is too long, of another kind, or with a number above most.
func (l *line) add(c byte, most int64) (ended, ok bool) {
	l.read++
	switch {
	case l.read == 1:
		*l = line{kind: c, read: 1}
		return false, strings.IndexByte(plainKinds+bulks+arrays+maps, c) >= 0
	case l.read > maxLine:
		return false, false
	case c == '\n':
		l.read = 0
		return true, true
	case c == '-':
		l.negative = true
	case c >= '0' && c <= '9' && strings.IndexByte(bulks+arrays+maps, l.kind) >= 0:
		l.n = 10*l.n + int64(c-'0')
	}
	return false, l.n <= most
}
