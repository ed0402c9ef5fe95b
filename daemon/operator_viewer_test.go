package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestViewersThatDoNotRead: viewers of the live decisions that take nothing lose their places, and one that reads keeps
// its own.
func TestViewersThatDoNotRead(t *testing.T) {
	t.Parallel()
	r := start(t, settings("prefixaware", sims(t, 40, vllmsim.Config{}).URLs()...), 40)
	for i := range 900 { // 10 MB of decisions: more than a socket buffers
		if s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"%d","max_tokens":1}`, i)); s.status != 200 {
			t.Fatalf("%+v", s)
		}
	}
	view := func() *http.Response {
		t.Helper()
		req, _ := http.NewRequest("GET", "http://"+r.AdminAddr()+"/api/v1/decisions", nil)
		req.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	reader := view()
	lost := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, reader.Body)
		lost <- err
	}()
	for range 15 {
		c, err := net.Dial("tcp", r.AdminAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(c, "GET /api/v1/decisions?limit=1000 HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", r.AdminAddr())
	}
	status := func() int {
		resp := view()
		if resp.StatusCode == http.StatusOK {
			return resp.StatusCode
		}
		text, _ := io.ReadAll(resp.Body)
		if !strings.Contains(string(text), "viewers follow already") {
			t.Fatalf("%s", text)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	time.Sleep(500 * time.Millisecond)
	if got := status(); got != http.StatusServiceUnavailable {
		t.Fatalf("got %d; want all places taken", got)
	}
	eventually(t, "there is a place again", func() bool { return status() == http.StatusOK })
	select {
	case err := <-lost:
		t.Errorf("the viewer that reads lost its place: %v", err)
	default:
	}
}
