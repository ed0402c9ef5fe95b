package listen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// The server that the Listener is made for. What is asserted of fasthttp here is what the daemon relies on.

// stream is a body that sends a line a step, and unwatches as fasthttp closes it.
type stream struct {
	steps chan string
	close func()
}

func (s *stream) Read(b []byte) (int, error) {
	line, ok := <-s.steps
	if !ok {
		return 0, io.EOF
	}
	if line == "break" {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(b, line), nil
}

func (s *stream) Close() error { s.close(); return nil }

// front serves handle as the daemon does.
func front(t *testing.T, c Config, handle func(*fasthttp.RequestCtx)) (l *Listener, log *lockedLog) {
	t.Helper()
	l = open(t, c, nil)
	log = new(lockedLog)
	s := &fasthttp.Server{
		Handler:                      handle,
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		ReadBufferSize:               16 << 10,
		ReadTimeout:                  patience,
		SecureErrorLogMessage:        true,
		Logger:                       log,
		HeaderReceived: func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
			return fasthttp.RequestConfig{MaxRequestBodySize: 1}
		},
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) {
			From(ctx.Conn()).Linger()
			if errors.As(err, new(*fasthttp.ErrSmallBuffer)) {
				ctx.Error("headers", fasthttp.StatusRequestHeaderFieldsTooLarge)
				return
			}
			ctx.Error("bad", fasthttp.StatusBadRequest)
		},
	}
	go s.Serve(l)
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return l, log
}

type lockedLog struct{ lines logtest.Log }

func (l *lockedLog) Printf(format string, args ...any) {
	slog.New(slog.NewTextHandler(&l.lines, nil)).Info(format, "args", args)
}

// TestFasthttpWatch: requests one after another on one connection, each with its own watch; the client leaves in the
// last one, once while it waits for the first byte and once in the middle of the stream.
func TestFasthttpWatch(t *testing.T) {
	for _, secureToo := range []bool{false, true} {
		for _, began := range []bool{false, true} {
			conf := Config{}
			scheme := "http://"
			if secureToo {
				conf, scheme = withTLS(t), "https://"
			}
			var told counter
			ended := make(chan bool, 10)
			arrived := make(chan struct{}, 10)
			steps := make(chan string)
			l, _ := front(t, conf, func(ctx *fasthttp.RequestCtx) {
				c := From(ctx.Conn())
				if ctx.IsTLS() != c.IsTLS() || c.IsTLS() != secureToo {
					t.Errorf("IsTLS: fasthttp says %v, Conn %v, want %v", ctx.IsTLS(), c.IsTLS(), secureToo)
				}
				gen := c.Watch(&told)
				arrived <- struct{}{}
				if string(ctx.Path()) == "/short" {
					ctx.SetBodyString("ok")
					ended <- c.Unwatch(gen)
					return
				}
				ctx.SetBodyStream(&stream{steps, func() { ended <- c.Unwatch(gen) }}, -1)
			})
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: insecure}}
			for range 3 {
				if got := get(t, client, scheme+l.Addr().String()+"/short"); got != "ok" {
					t.Errorf("got %q", got)
				}
				<-arrived
				if <-ended {
					t.Error("Gone was called of a client that stays")
				}
			}
			leaveStream(t, client, scheme+l.Addr().String()+"/stream", arrived, steps, began)
			waittest.Until(t, "the client's leaving is told", told.called)
			close(steps) // as the upstream does when it is closed
			if !<-ended {
				t.Error("Unwatch does not tell that Gone was called")
			}
			if s := l.Stats(); told.n.Load() != 1 || s.Gone != 1 || s.Accepted != 1 {
				t.Errorf("told %d times, stats %+v; want one connection and one told", told.n.Load(), s)
			}
		}
	}
}

// leaveStream asks for a stream and leaves it once it has arrived, after a line of it if began.
func leaveStream(t *testing.T, client *http.Client, url string, arrived chan struct{}, steps chan string, began bool) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		<-arrived
		if began {
			steps <- "line\n"
		} else {
			leave()
		}
	}()
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Do(request)
	if !began { // no header comes before the body's first bytes
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("an answer without a step: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if line, err := bufio.NewReader(r.Body).ReadString('\n'); line != "line\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	r, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFasthttpBrokenStream: a stream that fails has no clean end.
func TestFasthttpBrokenStream(t *testing.T) {
	steps := make(chan string, 2)
	l, _ := front(t, Config{}, func(ctx *fasthttp.RequestCtx) {
		ctx.SetBodyStream(&stream{steps, func() {}}, -1)
	})
	steps <- "line\n"
	steps <- "break"
	r, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); string(b) != "line\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v; want the line and an unexpected end", b, err)
	}
}

// TestFasthttpRefusal: answers that come before the body, or before the end of the headers, are read by the client.
func TestFasthttpRefusal(t *testing.T) {
	l, log := front(t, Config{}, func(ctx *fasthttp.RequestCtx) {
		From(ctx.Conn()).Linger()
		ctx.Response.Header.Set("Retry-After", "1")
		ctx.Error("busy", fasthttp.StatusTooManyRequests)
		ctx.SetConnectionClose()
	})
	head := "POST /v1/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n"
	for name, c := range map[string]struct{ send, want string }{
		"8 MB":     {head + "Content-Length: 8388608\r\n\r\n" + strings.Repeat("x", 8<<20), "429"},
		"one byte": {head + "Content-Length: 8388608\r\n\r\n{", "429"},
		"chunked":  {head + "Transfer-Encoding: chunked\r\n\r\n", "429"},
		"expect":   {head + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx", "100"},
		"headers":  {head + "X: " + strings.Repeat("a", 200<<10) + "\r\n\r\n", "431"},
		"12 KB":    {head + "X: " + strings.Repeat("a", 12<<10) + "\r\n\r\n", "429"},
	} {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		client.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(client, c.send); err != nil { // all of it first, as most clients do
			t.Errorf("%s: sending: %v", name, err)
		}
		answer, err := io.ReadAll(client)
		client.Close()
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 "+c.want)) {
			t.Errorf("%s: got %.40q, %v; want %s and a clean end", name, answer, err, c.want)
		}
	}
	waittest.Until(t, "fasthttp logs its errors", func() bool { return log.lines.String() != "" })
	if strings.Contains(log.lines.String(), "secret") {
		t.Error("fasthttp logs headers: set SecureErrorLogMessage")
	}
}

// TestFasthttpShortBody: a streamed body that breaks off ends like a whole one. Who reads it must count.
func TestFasthttpShortBody(t *testing.T) {
	read := make(chan error, 1)
	l, _ := front(t, Config{}, func(ctx *fasthttp.RequestCtx) {
		n, err := io.Copy(io.Discard, ctx.RequestBodyStream())
		if err == nil && n != int64(ctx.Request.Header.ContentLength()) {
			err = io.ErrUnexpectedEOF
		}
		read <- err
	})
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nshort")
	client.Close()
	if err := <-read; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a body read with %v", err)
	}
}
