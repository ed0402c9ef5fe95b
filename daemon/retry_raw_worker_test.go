package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// rawWorker is a worker whose answers to POST are bytes of the test's own; then answer closes the connection as it
// likes.
func rawWorker(t *testing.T, answer func(c *net.TCPConn)) string {
	t.Helper()
	return "http://" + porttest.Serve(t, func(c *net.TCPConn) {
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			text := ""
			switch {
			case r.Method == "POST":
				answer(c)
				return
			case r.URL.Path == "/v1/models":
				text = `{"object":"list","data":[{"id":"sim","object":"model"}]}`
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
	})
}

// reset closes a connection by a reset.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

const (
	plainChunks = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	eventChunks = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	aCompletion = `{"model":"sim","prompt":"x","max_tokens":2}`
	aStream     = `{"model":"sim","prompt":"x","max_tokens":2,"stream":true}`
)

func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// TestHeadWithoutBodyIsReplaced: whatever kind of answer was announced, a worker that breaks before the first byte of
// it is replaced.
func TestHeadWithoutBodyIsReplaced(t *testing.T) {
	t.Parallel()
	long := "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n"
	for what, text := range map[string]string{
		"chunked, closed":                    plainChunks,
		"chunked, no size":                   plainChunks + "zz\r\n",
		"chunked, a size of 20 digits":       plainChunks + "11111111111111111111\r\n",
		"chunked, a size that ends in LF":    plainChunks + "5\nhello",
		"long, closed":                       long,
		"until the close, reset":             "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n",
		"events of no known kind, no size":   eventChunks + "-1\r\n",
		"events of no known kind, closed":    eventChunks,
		"an error in chunks, closed":         "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n",
		"chunked, closed in its size":        plainChunks + "1",
		"chunked, closed in front of a byte": plainChunks + "5\r\n",
	} {
		broken := rawWorker(t, func(c *net.TCPConn) {
			io.WriteString(c, text)
			if strings.Contains(what, "reset") {
				time.Sleep(20 * time.Millisecond) // the head is read before the reset is seen
				reset(c)
			}
		})
		good := sims(t, 1, vllmsim.Config{})
		r := start(t, settings("roundrobin", broken, good[0].URL()), 2)
		path, status := "/v1/completions", 200
		if strings.Contains(what, "no known kind") {
			path, status = "/v1/of/tomorrow", 404
		}
		for i := range 2 {
			s := r.do("POST", path, `{"model":"sim","prompt":"x","input":"x","max_tokens":2}`, "X-Warmpath-Explain", "1")
			if s.status != status || s.err != nil || s.header.Get("X-Warmpath-Worker") != "w2" {
				t.Errorf("%s, request %d: %d %v from %q: %.100s", what, i, s.status, s.err, s.header.Get("X-Warmpath-Worker"), s.body)
			}
		}
		_ = r.stop()
	}
}

// TestWorkerMayNotSpeakForTheRouter: its X-Warmpath fields, and what its Connection names, end here; trailers too.
func TestWorkerMayNotSpeakForTheRouter(t *testing.T) {
	fields := "X-Warmpath-Worker: forged\r\nx-warmpath-reason: forged\r\nX-WARMPATH-Retries: 7\r\nX-Hop: 1\r\nConnection: x-hop, Keep-Alive\r\n" +
		"Connection: X-Other\r\nX-Other: 2\r\nX-Kept: 3\r\nTrailer: X-Last\r\nX-Request-Id: forged\r\n"
	w := rawWorker(t, func(c *net.TCPConn) {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"+fields+"\r\n"+
			chunk("{}")+"0\r\nX-Last: 4\r\nX-Warmpath-Worker: forged\r\n\r\n")
	})
	r := start(t, settings("roundrobin", w), 1)
	resp, text, c := r.raw(post(aCompletion))
	defer c.Close()
	if resp.StatusCode != 200 || text != "{}" || resp.Header.Get("X-Kept") != "3" {
		t.Errorf("%d %q %v", resp.StatusCode, text, resp.Header)
	}
	for _, name := range []string{"X-Warmpath-Worker", "X-Warmpath-Reason", "X-Warmpath-Retries", "X-Hop", "X-Other", "Trailer", "X-Last"} {
		if v := resp.Header.Get(name) + resp.Trailer.Get(name); v != "" {
			t.Errorf("the client got %s: %s", name, v)
		}
	}
	if resp.Header.Get("X-Request-Id") == "forged" {
		t.Error("the client got the worker's X-Request-Id")
	}
}
