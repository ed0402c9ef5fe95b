package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func reset(c *net.TCPConn) { c.SetLinger(0) }

// silent sends no more until the client has closed.
func silent(c *net.TCPConn) { io.Copy(io.Discard, c) }

func TestFramings(t *testing.T) {
	f := func(name, answer, body string, reused bool) {
		t.Helper()
		u := client(t, Config{URL: saying(t, answer, nil)})
		if !reused {
			u = client(t, Config{URL: saying(t, answer, func(*net.TCPConn) {})})
		}
		for range 2 {
			if _, got, err := ask(u, post); got != body || err != nil {
				t.Errorf("%s: got %q, %v; want %q", name, got, err, body)
			}
		}
		if s := u.Stats(); (s.Reused > 0) != reused || s.Open != s.Idle || !reused && s.Idle > 0 {
			t.Errorf("%s: %+v; want reused %v and nothing in use", name, s, reused)
		}
	}
	f("length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true)
	f("the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length:5\r\n\r\nhello", "hello", true)
	f("length 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true)
	f("no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "", true)
	f("204", "HTTP/1.1 204 No Content\r\n\r\n", "", true)
	f("304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "", true)
	f("chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0006\r\n world\r\n0\r\n\r\n", "hello world", true)
	f("extensions, trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0 ;z\r\nX: y\r\nA: b\r\n\r\n", "hello", true)
	f("interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true)
	f("to the close", "HTTP/1.1 200 OK\r\n\r\nhello", "hello", false)
	f("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", false)
	f("asked to close", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 5\r\n\r\nhello", "hello", false)
	f("surplus behind length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n", "hello", false)
	f("surplus behind chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx", "", false)
	f("surplus behind 204", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", "", false)
	f("long", "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"+strings.Repeat("x", 300000), strings.Repeat("x", 300000), true)
	f("long head", "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 60000)+"\r\nContent-Length: 2\r\n\r\nok", "ok", true)
}

func TestHeadHasNoBody(t *testing.T) {
	u := client(t, Config{URL: saying(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", nil)})
	for range 2 {
		r, err := u.Do(context.Background(), &Request{Method: "HEAD", Path: "/"})
		if err != nil || r.Length != 0 || r.Header.Get("content-length") != "9" {
			t.Fatalf("got %+v, %v", r, err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Fatalf("read %d, %v; want the end", n, err)
		}
		r.Close()
	}
	if s := u.Stats(); s.Reused != 1 {
		t.Errorf("%+v; want the connection used again", s)
	}
}

// Each of these is an error of its own, and its connection is never used again.
func TestFaults(t *testing.T) {
	const cl, ch = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	end := func(*net.TCPConn) {}
	f := func(name, answer string, then func(*net.TCPConn), want error) {
		t.Helper()
		url := saying(t, answer, then)
		settles(t, func() {
			c := Config{URL: url} // a short time only where it is to pass
			switch want {
			case errTimeout:
				c.HeaderTimeout = 50 * time.Millisecond
			case ErrStalled:
				c.ChunkTimeout = 50 * time.Millisecond
			}
			u := client(t, c)
			defer u.Close()
			if _, _, err := ask(u, post); !errors.Is(err, want) {
				t.Errorf("%s: got %v; want %v", name, err, want)
			} else if NotSent(err) || Unanswered(err) {
				t.Errorf("%s: %v counts as not sent or not answered", name, err)
			}
			if s := u.Stats(); s.Open != 0 || s.Idle != 0 {
				t.Errorf("%s: %+v; want no connection left", name, s)
			}
		})
	}
	f("FIN in head", "HTTP/1.1 200 OK\r\nContent-", end, io.ErrUnexpectedEOF)
	f("FIN in length", cl, end, io.ErrUnexpectedEOF)
	f("FIN in chunk size", ch+"5", end, io.ErrUnexpectedEOF)
	f("FIN in chunk", ch+"5\r\nhel", end, io.ErrUnexpectedEOF)
	f("FIN after chunk", ch+"5\r\nhello\r\n", end, io.ErrUnexpectedEOF)
	f("FIN before the last line", ch+"0\r\n", end, io.ErrUnexpectedEOF)
	f("FIN after interim", "HTTP/1.1 100 Continue\r\n\r\n", end, io.ErrUnexpectedEOF)
	f("stall in head", "HTTP/1.1 200", silent, errTimeout)
	f("stall before head", "", silent, errTimeout)
	f("stall after interim", "HTTP/1.1 103 Early Hints\r\n\r\n", silent, errTimeout)
	f("stall in length", cl, silent, ErrStalled)
	f("stall in chunks", ch+"5\r\nhello\r\n", silent, ErrStalled)
	f("stall in close framing", "HTTP/1.1 200 OK\r\n\r\nhello", silent, ErrStalled)
	f("both framings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", end, errAnswer)
	f("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", end, errAnswer)
	f("garbage", "SSH-2.0-OpenSSH_9.6\r\n", silent, errAnswer)
	f("bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", silent, errAnswer)
	f("header flood", "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", maxHead), silent, errAnswer)
	f("field flood", "HTTP/1.1 200 OK\r\n"+strings.Repeat("a:\r\n", maxFields+1)+"\r\n", silent, errAnswer)
	f("interim flood", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 4000), silent, errAnswer)
	f("switching", "HTTP/1.1 101 Switching Protocols\r\n\r\n", silent, errAnswer)
	f("bad chunk size", ch+"zz\r\n", silent, errAnswer)
	f("negative chunk size", ch+"-1\r\n", silent, errAnswer)
	f("huge chunk size", ch+"ffffffffffffffffff\r\n", silent, errAnswer)
	f("chunk longer than its size", ch+"2\r\nhello\r\n0\r\n\r\n", silent, errAnswer)
	f("LF in chunk extension", ch+"5;x\nhello\r\n0\r\n\r\n", silent, errAnswer)
	f("extension flood", ch+"5;"+strings.Repeat("x", maxAside+1), silent, errAnswer)
	f("trailer flood", ch+"0\r\n"+strings.Repeat("x: y\r\n", maxAside), silent, errAnswer)
	f("RST in length", cl, reset, errReset)
	f("RST in close framing", "HTTP/1.1 200 OK\r\n\r\nhello", reset, errReset)
}

// A worker that takes the request and closes, on a fresh connection, leaves the request unanswered.
func TestUnanswered(t *testing.T) {
	f := func(name string, then func(*net.TCPConn)) {
		t.Helper()
		_, _, err := ask(client(t, Config{URL: saying(t, "", then)}), post)
		if !Unanswered(err) || NotSent(err) {
			t.Errorf("%s: got %v; want Unanswered and not NotSent", name, err)
		}
	}
	f("FIN", func(*net.TCPConn) {})
	f("RST", reset)

	_, _, err := ask(client(t, Config{URL: refusing(t)}), post)
	if !NotSent(err) || Unanswered(err) {
		t.Errorf("refused connection: got %v; want NotSent and not Unanswered", err)
	}
}

func refusing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// What one read of the connection gave is handed on at once, and chunks that came together come as one.
func TestReadHandsOnWhatCame(t *testing.T) {
	next := make(chan struct{})
	u := client(t, Config{URL: rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
		if readRequest(br) != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for _, s := range []string{"3\r\none\r\n", "3\r\ntwo\r\n5\r\nthree\r\n", "0\r\n\r\n"} {
			<-next
			io.WriteString(c, s)
		}
	})})
	r, err := u.Do(context.Background(), post)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := make([]byte, 1000)
	for _, want := range []string{"one", "twothree"} {
		next <- struct{}{}
		if n, err := r.Read(p); string(p[:n]) != want || err != nil {
			t.Fatalf("read %q, %v; want %q", p[:n], err, want)
		}
	}
	next <- struct{}{}
	if n, err := r.Read(p); n != 0 || err != io.EOF {
		t.Fatalf("read %d, %v; want the end", n, err)
	}
	if s := u.Stats(); s.Idle != 0 {
		t.Errorf("%+v; want the connection kept until the caller has judged the answer", s)
	}
	r.Release()
	if s := u.Stats(); s.Idle != 1 {
		t.Errorf("%+v; want the connection back in the pool before Close", s)
	}
}

// TestRejected: the connection of an answer that the caller rejects serves nobody else.
func TestRejected(t *testing.T) {
	u := client(t, Config{URL: saying(t, ok, nil)})
	r, err := u.Do(t.Context(), post)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); string(b) != "ok" || err != nil {
		t.Fatalf("%q %v", b, err)
	}
	r.Reject()
	r.Close()
	if s := u.Stats(); s.Open != 0 || s.Canceled != 0 {
		t.Errorf("%+v; want nothing open", s)
	}
}
