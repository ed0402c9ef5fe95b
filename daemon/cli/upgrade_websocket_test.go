package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestUpgradeKeepsWebSockets: 200 of 200 go on at the old process while the new one serves, and end only with it.
func TestUpgradeKeepsWebSockets(t *testing.T) {
	t.Parallel()
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"voice","object":"model"}]}`)
		}
		if r.Header.Get("Upgrade") != "websocket" {
			return
		}
		c, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(c, buf)
	}))
	t.Cleanup(worker.Close)
	s := newSiteWith(t, "3", func(string) (string, string) {
		return "", fmt.Sprintf("[[pools.workers]]\nurl = %q\n", worker.URL)
	})
	s.says(`msg="worker up"`, 2)
	type socket struct {
		net.Conn
		r *bufio.Reader
	}
	open := func() socket {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.client, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "GET /v1/realtime?model=voice HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil)
		if err != nil || resp.StatusCode != 101 {
			t.Fatalf("%v, %v:\n%s", resp, err, read(t, s.log))
		}
		return socket{c, r}
	}
	var all []socket
	for range 200 {
		all = append(all, open())
	}
	const frame = "\x82\x04ping"
	echoes := func(list []socket) (n int) {
		for _, c := range list {
			back := make([]byte, len(frame))
			if _, err := io.WriteString(c, frame); err != nil {
				continue
			}
			if _, err := io.ReadFull(c.r, back); err == nil && string(back) == frame {
				n++
			}
		}
		return n
	}
	if n := echoes(all); n != 200 {
		t.Fatalf("%d of 200 work", n)
	}
	if code, text := s.upgrade(""); code != 0 {
		t.Fatalf("exit %d: %s\n%s", code, text, read(t, s.log))
	}
	late := open() // at the new process
	if n := echoes(append(all, late)); n != 201 {
		t.Errorf("after the upgrade %d of 201 work", n)
	}
	if strings.Contains(read(t, s.log), "msg=drained") {
		t.Error("the old process has ended before them")
	}
	for _, c := range all {
		c.Close()
	}
	s.says("msg=drained", 1)
	if echoes([]socket{late}) != 1 {
		t.Error("the new process has lost its own")
	}
}
