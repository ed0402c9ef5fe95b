package upstream

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Field is one header field, as sent: no canonical spelling is forced on it.
type Field struct{ Name, Value string }

// Header is the fields of a head in their order.
type Header []Field

// Get returns the first value of a field, whatever the case of its name; "" if there is none.
func (h Header) Get(name string) string {
	value, _ := h.Lookup(name)
	return value
}

// Lookup returns what Get does, and false if there is no such field.
func (h Header) Lookup(name string) (value string, ok bool) {
	for i := range h {
		if len(h[i].Name) == len(name) && strings.EqualFold(h[i].Name, name) {
			return h[i].Value, true
		}
	}
	return "", false
}

// Request is one request to a worker. Body must stay unchanged until Do has returned.
type Request struct {
	Method string
	Path   string  // with the query; the path of Config.URL comes before it
	Header []Field // without Host, Content-Length and Transfer-Encoding, which Do sets
	Body   []byte
	At     time.Time // now, if the caller has just looked at the clock; zero = Do looks

	// Mark is equal for requests whose answers look alike; 0 = none. No two such requests follow one another on a
	// connection: if its answers were out of step, it would go unnoticed.
	Mark uint64

	Fresh bool // it begins on a fresh connection, where no earlier answer can be late

	// Upgrade asks for a WebSocket, on a fresh connection. The answer may be 101 then: its body is what the worker sends
	// on that connection, and Response.Peer takes what is sent to it.
	Upgrade bool

	// Lingers has the answer read for two seconds more after the context has ended. The worker sees at once that nobody
	// waits, and stops, but what it sent before that is not lost. It may be that the worker keeps something for whoever
	// has the answer.
	Lingers bool

	// Tail is what follows Body; nil = nothing. Only the goroutine that calls Do reads it, never after Do has returned,
	// in pieces of at most 32 KB; so neither a cancel nor an early answer ends Do before the Read that runs has
	// returned, and Tail needs a deadline of its own. A request with a Tail begins on a fresh connection, so that it
	// meets no stale one.
	Tail       io.Reader
	TailLength int64 // of Tail; -1 = not known, and the body is sent chunked
}

// inToken and inValue are the bytes of a field's name and of its value (RFC 9110, sections 5.6.2 and 5.5).
var inToken, inValue, inPath [256]bool

func init() {
	for c := range 256 {
		inValue[c] = c >= ' ' && c != 0x7f || c == '\t'
		inPath[c] = c > ' ' && c != 0x7f
		inToken[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			c < 0x80 && strings.IndexByte("!#$%&'*+-.^_`|~", byte(c)) >= 0
	}
}

// printable reports whether s may be a field's value. Eight bytes at a time: a byte below 0x20 borrows from the bit
// above it, and 0x7f is all ones but the highest. What that finds, tabs among it, is looked at byte by byte.
func printable(s string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		del := x ^ 0x7f*ones
		if ((x-0x20*ones)&^x|(del-ones)&^del)&high != 0 {
			return plain(&inValue, s[i:])
		}
	}
	return plain(&inValue, s[i:])
}

// plain reports whether all bytes of s are in the set.
func plain(set *[256]bool, s string) bool {
	for i := 0; i < len(s); i++ {
		if !set[s[i]] {
			return false
		}
	}
	return true
}

// check finds what would make one request look like another to the worker. Values are not shown: they may be secrets.
func (r *Request) check() error {
	if r.Method == "" || !plain(&inToken, r.Method) {
		return fmt.Errorf("%w: its method is not a token", ErrRequest)
	}
	if r.Path == "" || (r.Path[0] != '/' && r.Path != "*") || !plain(&inPath, r.Path) {
		return fmt.Errorf("%w: its path does not begin with a slash, or has blanks or control characters", ErrRequest)
	}
	for i := range r.Header {
		f := &r.Header[i]
		if f.Name == "" || !plain(&inToken, f.Name) {
			return fmt.Errorf("%w: a header field's name is not a token", ErrRequest)
		}
		if !printable(f.Value) {
			return fmt.Errorf("%w: the header field %q has control characters", ErrRequest, f.Name)
		}
		if reserved(f.Name) {
			return fmt.Errorf("%w: the header field %s is not the caller's to set", ErrRequest, f.Name)
		}
	}
	if r.Tail != nil && r.TailLength < -1 {
		return fmt.Errorf("%w: a negative length of the body", ErrRequest)
	}
	return nil
}

// reserved reports whether the field fixes where a request ends or which host it is for.
func reserved(name string) bool {
	switch len(name) {
	case len("Host"):
		return strings.EqualFold(name, "Host")
	case len("Content-Length"):
		return strings.EqualFold(name, "Content-Length")
	case len("Transfer-Encoding"):
		return strings.EqualFold(name, "Transfer-Encoding")
	}
	return false
}

// maxSimple bounds a body that is sent whole before the answer is read. A worker that does not read still takes that
// much: Linux offers a window of 64 KiB and keeps 16 KiB or more on our side. If a larger body were sent so, a worker
// could refuse early and read no more, and its answer would wait for the deadline.
const maxSimple = 64 << 10

// long reports whether the answer has to be looked for while the request is sent.
func (r *Request) long() bool { return r.Tail != nil || len(r.Body) > maxSimple }

// chunkedBody reports whether the request's length is not known.
func (r *Request) chunkedBody() bool { return r.Tail != nil && r.TailLength < 0 }

// appendHead appends the request line and the header. There is exactly one length in it.
func (r *Request) appendHead(b []byte, prefix, hostLine string) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	if r.Path != "*" {
		b = append(b, prefix...)
	}
	b = append(b, r.Path...)
	b = append(b, " HTTP/1.1\r\n"...)
	b = append(b, hostLine...)
	for i := range r.Header {
		b = append(b, r.Header[i].Name...)
		b = append(b, ": "...)
		b = append(b, r.Header[i].Value...)
		b = append(b, "\r\n"...)
	}
	switch {
	case r.Upgrade: // Python's websockets take no length
		return append(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"...)
	case r.chunkedBody():
		return append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
	}
	length := int64(len(r.Body))
	if r.Tail != nil {
		length += r.TailLength
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, length, 10)
	return append(b, "\r\n\r\n"...)
}
