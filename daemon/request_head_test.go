package daemon

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestHeadsThatEndInLineFeeds: a head that has ended is answered, however it ended. With a read timeout of a minute
// nobody waits.
func TestHeadsThatEndInLineFeeds(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), `read_timeout = "60s"`), 1)
	for _, text := range []string{
		"GET /health HTTP/1.1\nHost: x\n\n",
		"GET /health HTTP/1.1\r\nHost: x\n\n",
		"GET /health HTTP/1.1\r\nHost: x\r\n\n",
		"GET /health HTTP/1.1\r\nHost: x\n\r\n",
		"GET /health HTTP/1.1\n\n",
		"GET /health HTTP/1.0\n\n",
		"\n\nGET /health HTTP/1.1\nHost: x\n\n",
		"GET /health HTTP/1.1\r\nHost: x\nX: a\n\nfoo",
		"POST /v1/completions HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}",
	} {
		resp, _, _ := r.raw(text) // waits for 20 s at most
		if resp.StatusCode != 400 || !resp.Close {
			t.Errorf("%q: %d, close %v; want 400 and a close", text, resp.StatusCode, resp.Close)
		}
	}
	// In pieces, and as the second request of a connection; a body may hold what it likes.
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	body := "{\"model\":\"sim\",\n\n\"prompt\":\"x\",\n\r\n\"max_tokens\":2}"
	for _, piece := range []string{
		fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", len(body)), "\r", "\n",
		body[:16], body[16:30], body[30:],
	} {
		io.WriteString(c, piece)
		time.Sleep(20 * time.Millisecond)
	}
	for _, want := range []int{200, 400} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != want {
			t.Errorf("%d %s; want %d", resp.StatusCode, text, want)
		}
		if want == 200 {
			io.WriteString(c, "GET /health HTTP/1.1\nHost: x\n")
			time.Sleep(20 * time.Millisecond)
			io.WriteString(c, "\n")
		}
	}
}

// TestHalfAHeadIsRidOf: a client that sends half a head is answered 408 at its time and holds no descriptor for long
// after it.
func TestHalfAHeadIsRidOf(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), `read_timeout = "1s"`), 1)
	for _, text := range []string{"", "POST /v1/comp", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"} {
		held := func() time.Duration {
			c, err := net.Dial("tcp", r.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			io.WriteString(c, text)
			_ = c.SetDeadline(began.Add(20 * time.Second))
			if b, err := io.ReadAll(c); err != nil || text != "" && !strings.HasPrefix(string(b), "HTTP/1.1 408") {
				t.Errorf("%q: %.40q, %v; want 408 and a clean end", text, b, err)
			}
			eventually(t, "the connection is closed", func() bool { return r.front.Stats().Connections.Open == 0 })
			return time.Since(began)
		}
		// With a read timeout of 1 s it is some 1.4 s; it was 6.1.
		waittest.AtBest(t, fmt.Sprintf("a connection with %q", text), 4*time.Second, held)
	}
}

// TestHalfAHandshakeIsRidOf: a TLS handshake has the read timeout, however it is dragged out, and a request after it too.
func TestHalfAHandshakeIsRidOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certtest.New(t, dir, "front", "first")
	r := start(t, withServer(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), fmt.Sprintf(
		"read_timeout = \"1s\"\ntls_cert_file = %q\ntls_key_file = %q", dir+"/front.pem", dir+"/front.key")), 1)
	const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	for what, stop := range map[string]func(c net.Conn){
		"nothing": func(net.Conn) {},
		"half":    func(c net.Conn) { io.WriteString(c, hello) },
		"byte by byte": func(c net.Conn) {
			for i := range 100 {
				if _, err := c.Write([]byte(hello + strings.Repeat("x", 100))[i : i+1]); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		},
		"the handshake alone": func(c net.Conn) {
			if err := tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake(); err != nil {
				t.Error(err)
			}
		},
	} {
		held := func() time.Duration {
			c, err := net.Dial("tcp", r.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			go stop(c)
			eventually(t, what+": the connection is open", func() bool { return r.front.Stats().Connections.Open == 1 })
			eventually(t, what+": the connection is closed", func() bool { return r.front.Stats().Connections.Open == 0 })
			return time.Since(began)
		}
		// A handshake and a head after it have a second each.
		waittest.AtBest(t, "a connection with "+what, 4*time.Second, held)
	}
}

// TestLateHead: the time of the first head begins with the connection. The next one has its own.
func TestLateHead(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), `read_timeout = "2s"`), 1)
	const late, part = 1500 * time.Millisecond, "GET /he"
	held := func(first string, least time.Duration) {
		t.Helper()
		waittest.AtBest(t, fmt.Sprintf("half a head after %q", first), least+time.Second, func() time.Duration {
			c, err := net.Dial("tcp", r.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			began := time.Now()
			_ = c.SetDeadline(began.Add(20 * time.Second))
			time.Sleep(late)
			in := bufio.NewReader(c)
			if first != "" {
				io.WriteString(c, first)
				if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
					t.Fatal(resp, err)
				} else {
					_, _ = io.ReadAll(resp.Body)
				}
			}
			io.WriteString(c, part)
			b, err := io.ReadAll(in)
			took := time.Since(began)
			if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 408") || took < least {
				t.Errorf("after %q: %.40q, %v after %v; want 408 after %v", first, b, err, took, least)
			}
			return took
		})
	}
	held("", 2*time.Second)
	held(health, late+2*time.Second)
}

// TestLateHeadWithABody: once the head of a client that was silent first is there, each piece of its body has its own
// time. All of them take twice the time that one may take. A machine that stalls the client itself between two pieces
// shows nothing, so that it is tried again.
func TestLateHeadWithABody(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), `read_timeout = "2s"`), 1)
	for range 5 {
		status, longest := r.dripped(500 * time.Millisecond)
		if status == 200 {
			return
		}
		if longest < 1500*time.Millisecond {
			t.Fatalf("%d, although no piece took longer than %v", status, longest)
		}
	}
	t.Skip("the machine stalls for most of the read timeout")
}

// dripped sends a request whose head and pieces come a pause apart. It returns the status of the answer, 0 if there was
// none, and the longest pause that there was.
func (r *running) dripped(pause time.Duration) (status int, longest time.Duration) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	last := time.Now()
	_ = c.SetDeadline(last.Add(time.Minute))
	say := func(text string) {
		time.Sleep(pause)
		io.WriteString(c, text)
		now := time.Now()
		last, longest = now, max(longest, now.Sub(last))
	}
	say("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		"Transfer-Encoding: chunked\r\n\r\n")
	for _, piece := range []string{`{"model"`, `:"sim"`, `,`, `"prompt"`, `:"a"`, `,`, `"max_tokens"`, `:1}`} {
		say(fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece))
	}
	io.WriteString(c, "0\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
		status = resp.StatusCode
	}
	return status, longest
}

// TestPlainHTTPOnATLSPort: the client is told what to do.
func TestPlainHTTPOnATLSPort(t *testing.T) {
	dir := t.TempDir()
	certtest.New(t, dir, "front", "first")
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q", dir+"/front.pem", dir+"/front.key")), 1)
	for _, text := range []string{"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100_000)} {
		resp, said, _ := r.raw(text)
		if resp.StatusCode != 400 || !strings.Contains(said, "https://") {
			t.Errorf("%.20q: %d %q; want 400 and the remedy", text, resp.StatusCode, said)
		}
	}
}
