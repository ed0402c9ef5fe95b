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

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// probed is the answer to a request that was written byte by byte, and whether the connection ended with it.
type probed struct {
	*http.Response
	raw   string // all that came
	body  string
	ended bool
}

// sendBytes sends the bytes on a connection of its own and reads one answer to a request of that method.
func sendBytes(t *testing.T, addr, method, text string) probed {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	var raw strings.Builder
	r := bufio.NewReader(io.TeeReader(c, &raw))
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	_ = c.SetDeadline(time.Now().Add(300 * time.Millisecond))
	_, err = r.ReadByte()
	return probed{Response: resp, raw: raw.String(), body: string(body), ended: err == io.EOF}
}

// TestUpgrades: a client that asks for a WebSocket gets 426 and a closed connection, after which Codex falls back to
// HTTP. A client that offers another protocol beside an ordinary request gets its answer, as Java's HTTP client does.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	const (
		handshake = "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
		h2c  = "Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
		body = `{"model":"sim","prompt":"x","max_tokens":1}`
	)
	for _, path := range []string{"/v1/responses", "/v1/messages"} {
		p := sendBytes(t, r.Addr(), "GET", "GET "+path+" HTTP/1.1\r\n"+handshake+"\r\n")
		if p.StatusCode != 426 || !p.Close || !p.ended || p.Header.Get("Upgrade") != "HTTP/1.1" ||
			!strings.Contains(p.raw, "\r\nConnection: Upgrade\r\n") ||
			p.Header.Get("Content-Type") != "application/json" || !strings.Contains(p.body, "WebSocket") {
			t.Errorf("%s: %d %v, ended %v: %s", path, p.StatusCode, p.Header, p.ended, p.body)
		}
	}
	if p := sendBytes(t, r.Addr(), "GET", "GET /v1/realtime?model=sim HTTP/1.1\r\n"+handshake+"\r\n"); p.StatusCode != 404 || !p.ended {
		t.Errorf("realtime, which the worker lacks: %d, ended %v", p.StatusCode, p.ended)
	}
	if p := sendBytes(t, r.Addr(), "GET", "GET /nowhere HTTP/1.1\r\n"+handshake+"\r\n"); p.StatusCode != 404 || !p.ended {
		t.Errorf("nowhere: %d, ended %v; want 404, and no frame read as a request", p.StatusCode, p.ended)
	}
	f := func(status int, method, line, header, body string) {
		t.Helper()
		p := sendBytes(t, r.Addr(), method, fmt.Sprintf("%s HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", line, header, len(body), body))
		if p.StatusCode != status || p.ended || p.Header.Get("Upgrade") != "" {
			t.Errorf("%s: %d %v, ended %v: %s", line, p.StatusCode, p.Header, p.ended, p.body)
		}
	}
	f(200, "POST", "POST /v1/completions", h2c, body)
	f(200, "POST", "POST /v1/completions", handshake, body)
	f(200, "GET", "GET /v1/models", h2c, "")
}

// TestBaseURLs: what clients ask at their base URL, before they show a key.
func TestBaseURLs(t *testing.T) {
	t.Parallel()
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	f := func(status int, method, path string) {
		t.Helper()
		p := sendBytes(t, r.Addr(), method, method+" "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if p.StatusCode != status || p.ended || status == 200 && p.ContentLength <= 0 {
			t.Errorf("%s %s: %d, %d bytes, ended %v; want %d", method, path, p.StatusCode, p.ContentLength, p.ended, status)
		}
		if (p.body != "") != (method != "HEAD") {
			t.Errorf("%s %s: body %q", method, path, p.body)
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/models", "/v1/models/sim", "/health", "/ready"} {
		f(200, "HEAD", path)
		f(200, "GET", path)
	}
	f(404, "HEAD", "/nowhere")
	f(404, "GET", "/v2")
	f(404, "POST", "/")
}

// TestLargeHeads: how many bytes of header fields a request may have, by default and where the operator allows more. A
// plain POST and a GET are read by different readers.
func TestLargeHeads(t *testing.T) {
	t.Parallel()
	urls := sims(t, 1, vllmsim.Config{}).URLs()
	for option, sizes := range map[string]map[int]int{
		"":                         {20 << 10: 200, 31 << 10: 200, 33 << 10: 431, 60 << 10: 431},
		"max_header_bytes = 65536": {31 << 10: 200, 60 << 10: 200, 66 << 10: 431},
	} {
		r := start(t, withServer(settings("prefixaware", urls...), option), 1)
		for size, status := range sizes {
			head := "Host: x\r\nCookie: " + strings.Repeat("a", size-64) + "\r\n"
			if p := sendBytes(t, r.Addr(), "GET", "GET /v1/models HTTP/1.1\r\n"+head+"\r\n"); p.StatusCode != status {
				t.Errorf("%q: a GET of %d: %d; want %d", option, size, p.StatusCode, status)
			}
			body := `{"model":"sim","prompt":"x","max_tokens":1}`
			p := sendBytes(t, r.Addr(), "POST", fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\n%s"+
				"Content-Length: %d\r\n\r\n%s", head, len(body), body))
			if p.StatusCode != status {
				t.Errorf("%q: a POST of %d: %d; want %d", option, size, p.StatusCode, status)
			}
		}
	}
}
