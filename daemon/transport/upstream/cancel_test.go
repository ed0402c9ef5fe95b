package upstream

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

func TestCancel(t *testing.T) {
	stream := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
	f := func(name, answer string) {
		t.Helper()
		asked, gone := make(chan struct{}), make(chan struct{})
		url := saying(t, answer, func(c *net.TCPConn) { close(asked); io.Copy(io.Discard, c); close(gone) })
		settles(t, func() {
			u := client(t, Config{URL: url})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if answer == "" {
				go func() { <-asked; cancel() }()
			}
			r, err := u.Do(ctx, post)
			if err == nil {
				io.ReadFull(r, make([]byte, 5))
				time.AfterFunc(10*time.Millisecond, cancel)
				_, err = io.ReadAll(r)
				r.Close()
			}
			if !errors.Is(err, context.Canceled) || NotSent(err) || Unanswered(err) {
				t.Errorf("%s: got %v; want context.Canceled", name, err)
			}
			<-gone
			if s := u.Stats(); s.Open != 0 || s.Canceled != 1 {
				t.Errorf("%s: %+v; want nothing open, 1 canceled", name, s)
			}
		})
	}
	f("before the head", "")
	f("in the body", stream)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client(t, Config{URL: refusing(t)}).Do(ctx, post); !errors.Is(err, context.Canceled) || !NotSent(err) {
		t.Errorf("canceled before: got %v", err)
	}
}

// What has come already is taken from the connection by Close, so that a refusal nobody reads costs no connection.
func TestCloseKeepsAConnectionWhoseAnswerHasCome(t *testing.T) {
	f := func(answer string, kept int) {
		t.Helper()
		u := client(t, Config{URL: saying(t, answer, nil)})
		r, err := u.Do(context.Background(), post)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d, %v after Close", n, err)
		}
		r.Close()
		if s := u.Stats(); s.Idle != kept || s.Open != kept || s.Canceled != uint64(1-kept) {
			t.Errorf("%q: %+v; want %d kept", answer, s, kept)
		}
	}
	f("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", 1)
	f("HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", 1)
	f("HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n", 0)
	f("HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nno", 0)
	f("HTTP/1.1 503 No\r\n\r\nno", 0)
}

var hammer = flag.Int("hammer", 1500, "how many streams TestAbortHammer aborts")

// Streams are aborted at random moments, by the context from another goroutine and by Close, among plain requests on
// the same pool. No answer may ever hold a byte of another one: each names its request.
func TestAbortHammer(t *testing.T) {
	url := rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) { echo(c, br) })
	settles(t, func() {
		u := client(t, Config{URL: url})
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := 0; u.Stats().Canceled < uint64(*hammer) && !t.Failed(); i++ {
					abort(t, u, fmt.Sprintf("/%d-%d", w, i))
				}
			})
		}
		wg.Wait()
		s := u.Stats()
		t.Logf("%d requests, %d of them aborted, none poisoned: %+v", s.Dials+s.Reused-s.Replaced, s.Canceled, s)
		if s.Open != s.Idle || s.Reused < s.Canceled/2 {
			t.Errorf("%+v; want none in use, and many reused", s)
		}
		u.Close()
	})
}

// echo answers with the request's path, over and over: 5 chunks, of which 2 come at once.
func echo(c *net.TCPConn, br *bufio.Reader) {
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return
		}
		path := strings.Fields(line)[1]
		for line != "\r\n" {
			if line, err = br.ReadString('\n'); err != nil {
				return
			}
		}
		chunk := fmt.Sprintf("%x\r\n%s\r\n", len(path), path)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+chunk)
		io.WriteString(c, chunk+chunk)
		io.WriteString(c, chunk)
		io.WriteString(c, chunk+"0\r\n\r\n")
	}
}

// abort asks for path and breaks off at some moment, or not at all.
func abort(t *testing.T, u *Client, path string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := rand.IntN(3)
	if late == 0 {
		time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, cancel)
	}
	r, err := u.Do(ctx, &Request{Method: "GET", Path: path})
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s: %v", path, err)
		}
		return
	}
	defer r.Close()
	var got []byte
	p := make([]byte, 1+rand.IntN(40))
	for late != 1 || rand.IntN(6) > 0 {
		n, err := r.Read(p)
		got = append(got, p[:n]...)
		if err == io.EOF {
			go cancel() // too late: it must not reach whoever has the connection now
			break
		}
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("%s: %v", path, err)
			}
			break
		}
	}
	if whole := strings.Repeat(path, 5); !strings.HasPrefix(whole, string(got)) {
		t.Errorf("POISONED: %s got %q", path, got)
	}
}

// TestLinger: a worker that ends an answer in the moment in which it sees that nobody waits is read all the same, and
// its connection serves no other request. One that answers nothing is closed at the end of the linger.
func TestLinger(t *testing.T) {
	f := func(lingers bool, answer string, read bool) {
		t.Helper()
		asked := make(chan struct{})
		url := rawWorker(t, func(c *net.TCPConn, br *bufio.Reader, _ int) {
			if readRequest(br) != nil {
				return
			}
			close(asked)
			io.Copy(io.Discard, br) // until it sees that nobody waits
			io.WriteString(c, answer)
			if answer == "" {
				time.Sleep(2 * linger)
			}
		})
		settles(t, func() {
			u := client(t, Config{URL: url})
			ctx, cancel := context.WithCancel(context.Background())
			go func() { <-asked; cancel() }()
			ask := *post
			ask.Lingers = lingers
			text := ""
			r, err := u.Do(ctx, &ask)
			if err == nil {
				b, _ := io.ReadAll(r)
				text = string(b)
				r.Close()
			}
			if (text == "kept") != read || !read && !errors.Is(err, context.Canceled) {
				t.Errorf("lingers %v, answer %q: read %q, %v", lingers, answer, text, err)
			}
			waittest.Until(t, "the connection is closed", func() bool { return u.Stats().Open == 0 })
		})
	}
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkept"
	f(false, answer, false)
	f(true, answer, true)
	f(true, "", false)
}
