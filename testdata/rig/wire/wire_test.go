package wire

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestLengthOf(t *testing.T) {
	f := func(fields string, want int64, ok bool) {
		t.Helper()
		got, err := lengthOf("POST", fields)
		if got != want || (err == nil) != ok {
			t.Errorf("%q: got %d, %v want %d, %v", fields, got, err, want, ok)
		}
	}
	f("Host: r\r\nContent-Length: 5\r\n", 5, true)
	f("host: r\r\ntransfer-encoding: Chunked\r\n", -1, true)
	f("Host: r\r\n", 0, false)
	f("Content-Length: 5\r\n", 0, false)
	f("Host: r\r\nHost: r\r\nContent-Length: 5\r\n", 0, false)
	f("Host: r\r\nContent-Length: 5\r\nContent-Length: 5\r\n", 0, false)
	f("Host: r\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", 0, false)
	f("Host: r\r\nContent-Length: +5\r\n", 0, false)
	f("Host: r\r\nContent-Length : 5\r\n", 0, false)
	f("Host: r\r\nX: a\nb\r\nContent-Length: 5\r\n", 0, false)
	f("Host: r\r\nTransfer-Encoding: xchunked\r\n", 0, false)
}

// answered reads one answer from raw bytes.
func answered(raw string) (Head, string, error) {
	a, b := net.Pipe()
	go func() { b.Write([]byte(raw)); b.Close() }()
	c := &Conn{Conn: a, R: bufio.NewReader(a)}
	got := c.ReadAnswer(true)
	return got.Head, string(got.Body), got.Err
}

func TestReadAnswer(t *testing.T) {
	f := func(raw, want string, wantErr error) {
		t.Helper()
		if _, body, err := answered(raw); body != want || !errors.Is(err, wantErr) {
			t.Errorf("%q: got %q, %v want %q, %v", raw, body, err, want, wantErr)
		}
	}
	f("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", nil)
	f("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "abc", io.ErrUnexpectedEOF)
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc", nil)
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "abc", io.ErrUnexpectedEOF)
	f("HTTP/1.1 200 OK\r\n\r\nabc", "abc", nil)
	f("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", "", nil)
}

func TestCallKnowsWhenTheClientLeaves(t *testing.T) {
	left := make(chan bool, 1)
	w := Worker{Handle: func(c *Call) bool {
		keep := c.Answer()
		if c.Mark() == "m" {
			left <- !keep
		}
		return keep
	}}
	if err := w.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := Dial(w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	c.Write(Post("/x?hold=20000&mark=m", "{}"))
	time.Sleep(10 * time.Millisecond)
	c.Close()
	select {
	case gone := <-left:
		if !gone {
			t.Error("it answered a client that had left")
		}
	case <-time.After(10 * time.Second):
		t.Error("it still waits")
	}
	for _, request := range [][]byte{Post("/x?chunks=3&gap=1&mark=q", "{}"), Wish("/x?chunks=3&gap=1&mark=q", "{}")} {
		if a := Once(w.Addr(), request); a.Err != nil || strings.Count(string(a.Body), `"id":"q"`) != 3 || !strings.Contains(string(a.Body), "[DONE]") {
			t.Errorf("%.60q: %v %s", request, a.Err, a.Body)
		}
	}
}
