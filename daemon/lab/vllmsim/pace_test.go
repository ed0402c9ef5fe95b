package vllmsim

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// paced asks for a paced answer.
func paced(ctx context.Context, url, tokens, interval, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set(TokensHeader, tokens)
	r.Header.Set(IntervalHeader, interval)
	return client.Do(r)
}

func TestPacedStream(t *testing.T) {
	s := start(t, Config{})
	begin := time.Now()
	r, err := paced(t.Context(), s.URL(), "5", "20ms", `{"stream": true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, end, err := streamed(r.Body)
	if text != "kalokalokalokalokalo" || end != "length" || err != nil {
		t.Errorf("got %q (%s, %v)", text, end, err)
	}
	if took := time.Since(begin); took < 80*time.Millisecond {
		t.Errorf("5 tokens, one every 20 ms, came in %v", took)
	}
	plain, err := paced(t.Context(), s.URL(), "5", "", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Body.Close()
	if b, _ := io.ReadAll(plain.Body); !bytes.Contains(b, []byte(`"content":"`+text+`"`)) {
		t.Errorf("plain answer %s", b)
	}
	for _, bad := range [][2]string{{"0", ""}, {"x", ""}, {"5", "x"}, {"5", "-1s"}} {
		if w := do(s, "POST", "/v1/completions", `{}`, TokensHeader, bad[0], IntervalHeader, bad[1]); w.Code != 400 {
			t.Errorf("%q: got %d", bad, w.Code)
		}
	}
	if got := want(t, do(s, "POST", "/v1/chat/completions", `{}`, TokensHeader, "3"),
		200)["object"]; got != "chat.completion" {
		t.Errorf("object %v", got)
	}
}

// TestHalfCloseIsADisconnect: vLLM takes a FIN for the client's end, and answers nothing more.
func TestHalfCloseIsADisconnect(t *testing.T) {
	f := func(name, header, body string) {
		t.Helper()
		s := start(t, Config{})
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+header+
			"Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		waittest.Until(t, "the request to run", func() bool { return s.Stats().Running == 1 })
		c.(*net.TCPConn).CloseWrite()
		begin := time.Now()
		waittest.Until(t, "the slot to be free", func() bool { return s.Stats().Running == 0 })
		t.Logf("%s: free after %v", name, time.Since(begin))
		if b, _ := io.ReadAll(c); strings.Contains(string(b), "[DONE]") || strings.HasSuffix(string(b), "\r\n0\r\n\r\n") ||
			strings.Contains(string(b), "finish_reason\":\"") {
			t.Errorf("%s: the answer came to a clean end: %q", name, b)
		}
	}
	f("stream", "", chatBody(true, 100000, "x"))
	f("plain", "", chatBody(false, 100000, "x"))
	f("paced", TokensHeader+": 100000\r\n"+IntervalHeader+": 1ms\r\n", `{"stream":true}`)
}
