package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStreamsPause opens streams whose worker pauses. They go on whole, as quick and slow clients read them, and clients
// that leave in the pause are noticed.
func TestStreamsPause(t *testing.T) {
	t.Parallel()
	const streams = 60
	event := func(n int) string {
		return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"text\":%q}]}\n\n", strings.Repeat("y", n))
	}
	goOn := make(chan struct{})
	var left sync.WaitGroup
	left.Add(streams)
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		defer left.Done()
		send := func(text string) {
			io.WriteString(rw, text)
			rw.(http.Flusher).Flush()
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		send(event(1))
		for i := range 3 {
			time.Sleep(5 * time.Millisecond)
			send(event(10 + i))
		}
		select {
		case <-goOn:
		case <-r.Context().Done():
			return
		}
		for range 40 {
			send(event(60_000)) // over what the kernel takes for a client that does not read
		}
		send("data: [DO")
		time.Sleep(5 * time.Millisecond)
		send("NE]\n\n")
	})
	want := event(1) + event(10) + event(11) + event(12) + strings.Repeat(event(60_000), 40) + "data: [DONE]\n\n"
	r := start(t, settings("prefixaware", w.URL), 1)
	var open []net.Conn
	for range streams {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(60 * time.Second))
		io.WriteString(c, post(streamed))
		open = append(open, c)
	}
	eventually(t, "all streams are under way", func() bool { return r.front.Stats().InFlight == streams })
	const leaving = 10
	for _, c := range open[:leaving] {
		c.Close()
	}
	eventually(t, "who left is noticed", func() bool { return r.front.Stats().InFlight == streams-leaving })
	close(goOn)
	var all sync.WaitGroup
	for i, c := range open[leaving:] {
		all.Go(func() {
			if i%4 == 0 {
				time.Sleep(200 * time.Millisecond)
			}
			readOn(t, c, want)
		})
	}
	all.Wait()
	left.Wait()
	eventually(t, "nothing is under way", func() bool { return r.front.Stats().InFlight == 0 })
}

// readOn reads a stream, and has the connection serve on.
func readOn(t *testing.T, c net.Conn, want string) {
	br := bufio.NewReader(c)
	read := func() (string, error) {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	if got, err := read(); err != nil || got != want {
		t.Errorf("%v, %d bytes; want %d", err, len(got), len(want))
	}
	io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	if got, err := read(); err != nil || got != "ok\n" {
		t.Errorf("after the stream: %v, %q", err, got)
	}
}

// TestStreamsThatBreakOffInAPause: a worker dies, is silent for too long, or the router ends, while a stream pauses. The
// client gets an error event and no clean end.
func TestStreamsThatBreakOffInAPause(t *testing.T) {
	t.Parallel()
	const first = "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n"
	for _, c := range []struct {
		what, pool string
		then       func(conn net.Conn)
		end        bool
	}{
		{what: "the worker closes", then: func(c net.Conn) { c.Close() }},
		{what: "the worker resets", then: func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() }},
		{what: "the worker breaks HTTP", then: func(c net.Conn) { io.WriteString(c, "no chunk\r\n") }},
		{what: "the worker is silent", pool: `stream_timeout = "300ms"`, then: func(net.Conn) {}},
		{what: "the router ends", then: func(net.Conn) {}, end: true},
	} {
		t.Run(c.what, func(t *testing.T) {
			goOn := make(chan struct{})
			w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
				conn, _, err := rw.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { conn.Close() })
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+
					"%x\r\n%s\r\n", len(first), first)
				<-goOn
				c.then(conn)
			})
			toml := withServer(settings("prefixaware", w.URL), `drain_timeout = "200ms"`)
			r := start(t, withPool(toml, c.pool), 1)
			conn, err := net.Dial("tcp", r.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(30 * time.Second))
			io.WriteString(conn, post(streamed))
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, len(first))
			if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != first {
				t.Fatalf("%v, %q", err, b)
			}
			close(goOn)
			if c.end {
				go r.stop()
			}
			rest, err := io.ReadAll(resp.Body)
			if !strings.Contains(string(rest), `"error"`) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q, %v; want an error event, and no clean end", rest, err)
			}
		})
	}
}
