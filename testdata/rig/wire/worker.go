package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Worker is a server that hands every request to Handle with its connection.
type Worker struct {
	// Handle answers a call and tells whether the connection may carry another. It runs in one goroutine a connection.
	Handle func(*Call) (keep bool)
	// IdleClose closes connections that are idle for so long; 0 = never.
	IdleClose time.Duration
	// Garbage is told of what is no request with one length; may be nil.
	Garbage func(head []byte, err error)
	// KeepBody hands the bytes of each body on in Call.Text.
	KeepBody bool

	listener net.Listener
	mu       sync.Mutex // guards conns, closed
	conns    map[net.Conn]struct{}
	closed   bool
}

// Call is one request at a worker.
type Call struct {
	net.Conn
	R      *bufio.Reader
	Raw    []byte // the head
	Method string
	Path   string
	Query  url.Values // or the field X-Wish
	Body   int64      // bytes of the body, which was read and thrown away
	Text   []byte     // the body itself, for a Worker with KeepBody
	Ending func()     // called once before the last byte of an answer is written; may be nil
}

// ErrLength is a request that has not exactly one length.
var ErrLength = errors.New("wire: not exactly one length")

// Start listens on addr (port 0: any) and serves until Close.
func (w *Worker) Start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.listener, w.conns, w.closed = l, map[net.Conn]struct{}{}, false
	w.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	return nil
}

// Addr is the host:port that Start has bound.
func (w *Worker) Addr() string { return w.listener.Addr().String() }

// Close ends listener and connections at once, as SIGKILL does. Start may follow.
func (w *Worker) Close() {
	w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for c := range w.conns {
		c.Close()
	}
}

// Conns is the number of open connections.
func (w *Worker) Conns() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

func (w *Worker) serve(c net.Conn) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		c.Close()
		return
	}
	w.conns[c] = struct{}{}
	w.mu.Unlock()
	defer func() {
		c.Close()
		w.mu.Lock()
		delete(w.conns, c)
		w.mu.Unlock()
	}()
	r := bufio.NewReaderSize(c, 4<<10)
	for {
		if w.IdleClose > 0 {
			c.SetReadDeadline(time.Now().Add(w.IdleClose))
		}
		if _, err := r.Peek(1); err != nil {
			return
		}
		c.SetReadDeadline(time.Now().Add(Timeout))
		call, err := readCall(c, r, w.KeepBody)
		if err != nil {
			if w.Garbage != nil && call != nil {
				w.Garbage(call.Raw, err)
			}
			return
		}
		c.SetReadDeadline(time.Time{})
		if !w.Handle(call) {
			return
		}
	}
}

// readCall reads a request and throws its body away, unless it is to be kept. It is strict: what two parsers might see
// in two ways is an error.
func readCall(c net.Conn, r *bufio.Reader, keepBody bool) (*Call, error) {
	raw, err := readHead(r)
	call := &Call{Conn: c, R: r, Raw: raw}
	if err != nil {
		return call, err
	}
	line, fields, _ := bytes.Cut(raw, []byte("\r\n"))
	f := strings.Split(string(line), " ")
	if len(f) != 3 || f[2] != "HTTP/1.1" {
		return call, fmt.Errorf("wire: request line %.80q", line)
	}
	call.Method = f[0]
	path, query, _ := strings.Cut(f[1], "?")
	call.Path = path
	if query == "" {
		query = wishIn(fields)
	}
	if query != "" {
		call.Query, _ = url.ParseQuery(query)
	}
	length, err := lengthOf(call.Method, string(fields))
	if err != nil {
		return call, err
	}
	var kept bytes.Buffer
	to := io.Discard
	if keepBody {
		to = &kept
	}
	if length == -1 {
		from := &Conn{Conn: c, R: r}
		err = from.readChunks(func(b []byte) {
			call.Body += int64(len(b))
			_, _ = to.Write(b)
		})
	} else {
		call.Body, err = io.CopyN(to, r, length)
	}
	call.Text = kept.Bytes()
	return call, err
}

// wishIn returns the field X-Wish, "" if there is none.
func wishIn(fields []byte) string {
	const name = "x-wish: "
	for line := range bytes.SplitSeq(fields, []byte("\r\n")) {
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			return string(line[len(name):])
		}
	}
	return ""
}

// lengthOf is the one length of a request: -1 for chunked.
func lengthOf(method, fields string) (int64, error) {
	length, lengths, hosts := int64(0), 0, 0
	for line := range strings.SplitSeq(strings.TrimSuffix(fields, "\r\n"), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok && line != "" || strings.ContainsAny(line, "\r\n\x00") || strings.TrimSpace(name) != name {
			return 0, fmt.Errorf("wire: field %.80q", line)
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			lengths++
			n, err := strconv.ParseUint(value, 10, 62)
			if err != nil || strings.HasPrefix(value, "+") {
				return 0, fmt.Errorf("wire: length %.80q", value)
			}
			length = int64(n)
		case "transfer-encoding":
			lengths++
			if !strings.EqualFold(value, "chunked") {
				return 0, fmt.Errorf("wire: transfer-encoding %.80q", value)
			}
			length = -1
		case "host":
			hosts++
		}
	}
	if lengths > 1 || lengths == 0 && method == "POST" || hosts != 1 {
		return 0, fmt.Errorf("%w: %d, and %d hosts", ErrLength, lengths, hosts)
	}
	return length, nil
}

// Wait waits for d and tells whether the other side has closed meanwhile; then it returns at once.
func (c *Call) Wait(d time.Duration) (gone bool) {
	until := time.Now().Add(d)
	c.SetReadDeadline(until)
	_, err := c.R.Peek(1)
	if err == nil { // the next request; nobody we test sends one early
		time.Sleep(time.Until(until))
		return false
	}
	c.SetReadDeadline(time.Time{})
	var t net.Error
	return !(errors.As(err, &t) && t.Timeout())
}
