package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Timeout bounds each dial, and each wait for a byte of an answer.
const Timeout = 20 * time.Second

// Conn is a client's connection. Not safe for concurrent use.
type Conn struct {
	net.Conn
	R *bufio.Reader
}

// Dial opens a connection to host:port.
func Dial(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, Timeout)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c, R: bufio.NewReaderSize(c, 4<<10)}, nil
}

// Head is the head of an answer.
type Head struct {
	Status     int
	Length     int64 // -1: chunked, -2: until the connection ends
	Close      bool  // the connection is not to be used again
	RetryAfter bool
	Text       string // the fields, lower case
}

// ReadHead reads the head of the next answer; interim answers (1xx) are skipped.
func (c *Conn) ReadHead() (Head, error) {
	for {
		h, err := c.readHead()
		if err != nil || h.Status/100 != 1 {
			return h, err
		}
	}
}

func (c *Conn) readHead() (Head, error) {
	c.SetReadDeadline(time.Now().Add(Timeout))
	raw, err := readHead(c.R)
	if err != nil {
		return Head{}, err
	}
	line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	f := strings.Fields(string(line))
	if len(f) < 2 || !strings.HasPrefix(f[0], "HTTP/1.") {
		return Head{}, fmt.Errorf("wire: no status line: %.80q", line)
	}
	h := Head{Length: -2, Text: strings.ToLower(string(rest))}
	h.Status, err = strconv.Atoi(f[1])
	if err != nil {
		return Head{}, fmt.Errorf("wire: no status in %.80q", line)
	}
	for line := range strings.SplitSeq(h.Text, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "content-length":
			h.Length, err = strconv.ParseInt(value, 10, 64)
			if err != nil {
				return Head{}, fmt.Errorf("wire: content-length %.80q", value)
			}
		case "transfer-encoding":
			h.Length = -1
		case "connection":
			h.Close = strings.Contains(value, "close")
		case "retry-after":
			h.RetryAfter = true
		}
	}
	if h.Status == 204 || h.Status == 304 {
		h.Length = 0
	}
	h.Close = h.Close || h.Length == -2
	return h, nil
}

// maxHead bounds a head in bytes.
const maxHead = 256 << 10

// readHead reads up to the empty line, which it leaves out.
func readHead(r *bufio.Reader) ([]byte, error) {
	var raw []byte
	for {
		line, err := r.ReadSlice('\n')
		raw = append(raw, line...)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if len(raw) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return raw, err
		}
		if len(raw) > maxHead {
			return raw, errors.New("wire: head too long")
		}
		if len(line) <= 2 && strings.TrimRight(string(line), "\r\n") == "" && err == nil && len(raw) > len(line) {
			return raw[:len(raw)-len(line)], nil
		}
	}
}

// ReadBody passes the body's pieces to each: the chunks of a chunked one, else what a read gives. A body that ends
// early is io.ErrUnexpectedEOF. each may be nil.
func (c *Conn) ReadBody(h Head, each func([]byte)) error {
	if each == nil {
		each = func([]byte) {}
	}
	switch h.Length {
	case -1:
		return c.readChunks(each)
	case -2:
		err := c.readFixed(1<<62, each)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		return err
	}
	return c.readFixed(h.Length, each)
}

// ReadAnswer reads the next answer: its head, and its body, which it keeps if it is to. It leaves Took alone.
func (c *Conn) ReadAnswer(keepBody bool) (a Answer) {
	a.Head, a.Err = c.ReadHead()
	if a.Err == nil {
		a.Err = c.ReadBody(a.Head, func(b []byte) {
			if keepBody {
				a.Body = append(a.Body, b...)
			}
		})
	}
	return a
}

func (c *Conn) readFixed(n int64, each func([]byte)) error {
	for n > 0 {
		c.SetReadDeadline(time.Now().Add(Timeout))
		if _, err := c.R.Peek(1); err != nil {
			return unexpected(err)
		}
		k := int(min(n, int64(c.R.Buffered())))
		b, _ := c.R.Peek(k)
		each(b)
		c.R.Discard(k)
		n -= int64(k)
	}
	return nil
}

func (c *Conn) readChunks(each func([]byte)) error {
	var buf []byte
	for {
		c.SetReadDeadline(time.Now().Add(Timeout))
		line, err := c.R.ReadSlice('\n')
		if err != nil {
			return unexpected(err)
		}
		n, err := strconv.ParseUint(strings.TrimRight(string(line), "\r\n"), 16, 31)
		if err != nil {
			return fmt.Errorf("wire: chunk size %.40q", line)
		}
		if cap(buf) < int(n)+2 {
			buf = make([]byte, n+2)
		}
		buf = buf[:n+2]
		if _, err := io.ReadFull(c.R, buf); err != nil {
			return unexpected(err)
		}
		if n == 0 {
			return nil
		}
		each(buf[:n])
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Request is a request's bytes with its length, if it has a body or is a POST, and with more fields.
func Request(method, path, body string, fields ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, path)
	host := false
	for _, f := range fields {
		host = host || strings.HasPrefix(f, "Host:")
		b.WriteString(f + "\r\n")
	}
	if !host {
		b.WriteString("Host: router\r\n")
	}
	if body != "" || method == "POST" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

// Post is a request's bytes. The path may carry a query.
func Post(path, body string) []byte {
	return Request("POST", path, body, "Content-Type: application/json")
}

// Wish is Post of a request without a query: what stands behind the path's question mark is in the field X-Wish.
func Wish(path, body string) []byte {
	path, wish, some := strings.Cut(path, "?")
	if !some {
		return Post(path, body)
	}
	return bytes.Replace(Post(path, body), []byte("\r\n\r\n"), []byte("\r\nX-Wish: "+wish+"\r\n\r\n"), 1)
}

// Get is a request's bytes.
func Get(path string) []byte {
	return Request("GET", path, "")
}

// GetFrom asks addr for a page under its own name, without which an operator's port answers nothing.
func GetFrom(addr, path string) Answer {
	return Once(addr, Request("GET", path, "", "Host: "+addr))
}

// Reset closes the connection with a RST.
func (c *Conn) Reset() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}
