package daemon

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// withServer adds keys to the [server] table of a configuration.
func withServer(toml, keys string) string {
	return strings.Replace(toml, "[server]\n", "[server]\n"+keys+"\n", 1)
}

// withPool adds keys to the [[pools]] table of a configuration.
func withPool(toml, keys string) string {
	return strings.Replace(toml, "[[pools]]\n", "[[pools]]\n"+keys+"\n", 1)
}

// raw sends bytes on a connection of its own and reads one response.
func (r *running) raw(text string) (*http.Response, string, net.Conn) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, text)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		r.t.Fatalf("%.60q: %v", text, err)
	}
	b, _ := io.ReadAll(resp.Body)
	return resp, string(b), c
}

// framingProbes are requests that two readers may read differently: head without its first line, and what follows it.
var framingProbes = []struct{ name, head, body string }{
	{"both framings", "Host: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nX"},
	{"two lengths", "Host: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n", "{}}"},
	{"odd coding", "Host: x\r\nTransfer-Encoding: xchunked\r\n", "0\r\n\r\n"},
	{"two codings", "Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"},
	{"no host", "Content-Length: 2\r\n", "{}"},
	{"two hosts", "Host: x\r\nHost: marker\r\nContent-Length: 2\r\n", "{}"},
	{"bare CR", "Host: x\r\nX: a\rmarker\r\nContent-Length: 2\r\n", "{}"},
	{"NUL", "Host: x\r\nX: a\x00marker\r\nContent-Length: 2\r\n", "{}"},
	{"blank before the colon", "Host: x\r\nContent-Length : 2\r\n", "{}"},
	{"a coding in HTTP/1.0's words", "Host: x\r\nConnection: keep-alive\r\nTransfer-Encoding: gzip\r\n", ""},
	{"a line without CR", "Host: x\nContent-Length: 2\r\n", "{}"},
	{"a folded line", "Host: x\r\nX: a\r\n b\r\nContent-Length: 2\r\n", "{}"},
	{"signed length", "Host: x\r\nContent-Length: +2\r\n", "{}"},
	{"hex length", "Host: x\r\nContent-Length: 0x2\r\n", "{}"},
	{"LF in a chunk extension", "Host: x\r\nTransfer-Encoding: chunked\r\n", "2;a\nb\r\n{}\r\n0\r\n\r\n"},
	{"a chunk's size that overflows", "Host: x\r\nTransfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"},
}

func TestAmbiguousFramingReachesNoWorker(t *testing.T) {
	hits := 0
	w := fakeWorker(t, func(http.ResponseWriter, *http.Request) { hits++ })
	r := start(t, settings("roundrobin", w.URL), 1)
	f := func(name, head, body string) {
		t.Helper()
		resp, text, _ := r.raw("POST /v1/completions HTTP/1.1\r\n" + head + "\r\n" + body)
		if resp.StatusCode != 400 || !resp.Close || strings.Contains(text, "marker") {
			t.Errorf("%s: %d, close %v: %s; want 400, a close, and nothing of the request", name, resp.StatusCode, resp.Close, text)
		}
	}
	for _, p := range framingProbes {
		f(p.name, p.head, p.body)
	}
	if hits != 0 {
		t.Errorf("the worker got %d requests; want none", hits)
	}
}

func TestLimitsOfTheFrontDoor(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), "max_body_bytes = 100_000\nread_timeout = \"400ms\"\nmax_connections = 20"), 1)
	if resp, _, _ := r.raw("GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("a", 12<<10) + "\r\n\r\n"); resp.StatusCode != 200 {
		t.Errorf("12 KB of headers: %d; want 200", resp.StatusCode)
	}
	if resp, _, _ := r.raw("GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("a", 200<<10) + "\r\n\r\n"); resp.StatusCode != 431 {
		t.Errorf("200 KB of headers: %d; want 431", resp.StatusCode)
	}
	const post = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
	// The body never comes: the answer does not wait for it.
	if resp, _, _ := r.raw(post + "Content-Length: 100001\r\n\r\n{"); resp.StatusCode != 413 || !resp.Close {
		t.Errorf("a long body: %d, close %v; want 413 and a close", resp.StatusCode, resp.Close)
	}
	chunked := post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat(" ", 4096)+"\r\n", 30) + "0\r\n\r\n"
	if resp, _, _ := r.raw(chunked); resp.StatusCode != 413 {
		t.Errorf("a long chunked body: %d; want 413", resp.StatusCode)
	}
	if resp, _, _ := r.raw(post + "Content-Length: 10\r\n\r\n{\"a\""); resp.StatusCode != 408 {
		t.Errorf("half a body: %d; want 408", resp.StatusCode)
	}
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nHost:")
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if b, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 408")) {
		t.Errorf("half a header: %.40q, %v; want 408 and a close", b, err)
	}
	eventually(t, "no request left", func() bool { return r.front.Stats().InFlight == 0 })
}

func TestOverloadIsTurnedAwayBeforeTheBody(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) { <-hold; io.WriteString(rw, completion) })
	f := func(toml, code string) {
		t.Helper()
		r := start(t, toml, 1)
		done := make(chan seen, 2)
		for range 2 {
			go func() { done <- r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`) }()
		}
		eventually(t, "both at the worker", func() bool { return r.front.Stats().InFlight == 2 && r.inFlight() == 2 })
		resp, text, _ := r.raw("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n")
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !resp.Close || !strings.Contains(text, code) {
			t.Errorf("%d %v %s; want 429 with Retry-After, a close and %s", resp.StatusCode, resp.Header, text, code)
		}
		m := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", "")
		of := map[string]string{"workers_full": "main"}[code] // the only pool is full; above the router's limit nobody knows it
		if !strings.Contains(m.body, `warmpath_shed_total{pool="`+of+`",reason="`+code+`"} 1`) {
			t.Errorf("it is not counted as %s", code)
		}
		hold <- struct{}{}
		hold <- struct{}{}
		for range 2 {
			if s := <-done; s.status != 200 {
				t.Errorf("%d %s; want 200", s.status, s.body)
			}
		}
	}
	f(withServer(settings("prefixaware", w.URL), "max_in_flight = 2"), "overloaded")
	f(withPool(settings("prefixaware", w.URL), "max_in_flight = 2\nqueue.max_requests = 0"), "workers_full")
}

// TestFullWorkerOfASession: a session waits for its worker, though another has room, and the refusal says so.
func TestFullWorkerOfASession(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	busy := func(http.ResponseWriter, *http.Request) { <-hold }
	r := start(t, withPool(settings("session", fakeWorker(t, busy).URL, fakeWorker(t, busy).URL), "max_in_flight = 1\nqueue.max_requests = 0"), 2)
	ask := func(user string) seen {
		return r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","user":"`+user+`"}`)
	}
	var held sync.WaitGroup
	defer held.Wait()
	defer close(hold)
	f := func(holder string, holders int, user, words string) {
		t.Helper()
		held.Go(func() { ask(holder) })
		eventually(t, holder+" is at a worker", func() bool { return r.inFlight() == holders })
		if s := ask(user); s.status != 429 || !strings.Contains(s.body, words) || !strings.Contains(s.body, "workers_full") {
			t.Errorf("%s: %d %s; want 429 and %q", user, s.status, s.body, words)
		}
	}
	f("u", 1, "u", "the session's worker has")
	f("v", 2, "w", "every worker has")
}

func TestKeysModelsAndTheirSecrecy(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.key"), "alpha-secret\n")
	write(t, filepath.Join(dir, "b.key"), "beta-secret\n")
	write(t, filepath.Join(dir, "w.key"), "worker-secret\n")
	f := sims(t, 1, vllmsim.Config{Models: []string{"sim", "other"}, APIKey: "worker-secret"})
	log := filepath.Join(dir, "access.json")
	toml := fmt.Sprintf("[[keys]]\nname = \"a\"\nfile = %q\n[[keys]]\nname = \"b\"\nfile = %q\nmodels = [\"sim\"]\n", dir+"/a.key", dir+"/b.key") +
		withPool(withServer(settings("prefixaware", f.URLs()...), fmt.Sprintf("access_log = %q", log)), fmt.Sprintf("worker_key_file = %q", dir+"/w.key"))
	r := start(t, toml, 1)
	ask := func(model string, want int, header ...string) {
		t.Helper()
		if s := r.do("POST", "/v1/completions", `{"model":"`+model+`","prompt":"private words","max_tokens":3}`, header...); s.status != want {
			t.Errorf("%s with %q: %d %s; want %d", model, header, s.status, s.body, want)
		}
	}
	ask("sim", 401)
	ask("sim", 401, "Authorization", "Bearer wrong-secret")
	ask("sim", 401, "Authorization", "Bearer worker-secret")
	ask("sim", 200, "Authorization", "Bearer alpha-secret")
	ask("other", 200, "X-Api-Key", "alpha-secret")
	ask("sim", 200, "Authorization", "Bearer beta-secret")
	body := `{"model":"sim","prompt":"private words","max_tokens":3}`
	lower := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer beta-secret\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
	if resp, text, _ := r.raw(lower); resp.StatusCode != 200 { // as JavaScript's fetch writes names
		t.Errorf("a key under a name in lower case: %d %s", resp.StatusCode, text)
	}
	ask("other", 403, "Authorization", "Bearer beta-secret")
	if s := r.do("GET", "/v1/models", "", "Authorization", "Bearer beta-secret"); !strings.Contains(s.body, `"sim"`) || strings.Contains(s.body, `"other"`) {
		t.Errorf("b's models are %s", s.body)
	}
	for _, path := range []string{"/health", "/ping"} { // SageMaker asks a container for /ping
		if s := r.do("GET", path, ""); s.status != 200 || s.body != "ok\n" {
			t.Errorf("%s without a key: %d %s", path, s.status, s.body)
		}
	}
	var text string
	eventually(t, "a line a request", func() bool { b, _ := os.ReadFile(log); text = string(b); return strings.Count(text, "\n") == 9 })
	if strings.Contains(text, "secret") || strings.Contains(text, "private") {
		t.Errorf("the log tells secrets: %s", text)
	}
	for _, want := range []string{`"key":"b"`, `"status":403`, `"worker":"w1"`, `"strategy":"prefixaware"`, `"output_tokens":3`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s: %s", want, text)
		}
	}
}

func TestRequestIDsForwardingAndCORS(t *testing.T) {
	var got http.Header
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		got = r.Header
		rw.Header().Set("Access-Control-Allow-Origin", "https://worker")
		rw.Header().Set("X-Request-Id", "the worker's")
		rw.Header().Set("Request-Id", "the worker's")
	})
	r := start(t, withServer(settings("roundrobin", w.URL), `cors_origins = ["https://chat.example.com"]`), 1)
	s := r.do("POST", "/v1/completions", `{}`, "X-Request-Id", "mine-1", "Origin", "https://chat.example.com", "X-Forwarded-For", "192.0.2.7")
	if got.Get("X-Request-Id") != "mine-1" || s.header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("the id is %q at the worker and %q at the client", got.Get("X-Request-Id"), s.header.Values("X-Request-Id"))
	}
	if xff := got.Get("X-Forwarded-For"); xff != "192.0.2.7, 127.0.0.1" || got.Get("X-Forwarded-Proto") != "http" || got.Get("X-Forwarded-Host") != r.Addr() {
		t.Errorf("forwarded: %q %q %q", xff, got.Get("X-Forwarded-Proto"), got.Get("X-Forwarded-Host"))
	}
	if o := s.header.Values("Access-Control-Allow-Origin"); len(o) != 1 || o[0] != "https://chat.example.com" {
		t.Errorf("the answer's origin is %q", o)
	}
	if s = r.do("POST", "/v1/completions", `{}`); len(s.header.Get("X-Request-Id")) != 32 {
		t.Errorf("the id made is %q", s.header.Get("X-Request-Id"))
	}
	for path, version := range map[string]string{"/v1/messages": "", "/v1/messages/../x": "", "/v1/files": "2023-06-01"} {
		s = r.do("POST", path, `{}`, "X-Request-Id", "mine-2", "anthropic-version", version)
		if ids := s.header.Values("Request-Id"); len(ids) != 1 || ids[0] != "mine-2" {
			t.Errorf("%s: Anthropic's clients find the id %q", path, ids)
		}
	}
	got = nil
	s = r.do("OPTIONS", "/v1/completions", "", "Origin", "https://chat.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
	if s.status != 200 || s.header.Get("Access-Control-Allow-Headers") != "authorization" || got != nil {
		t.Errorf("preflight: %d %v, at the worker %v", s.status, s.header, got)
	}
	if s = r.do("OPTIONS", "/v1/completions", "", "Origin", "https://evil.example.com", "Access-Control-Request-Method", "POST"); s.status != 400 {
		t.Errorf("a stranger's preflight: %d", s.status)
	}
}

func TestLongBodiesAreStreamed(t *testing.T) {
	var size int64
	var head string
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		b := make([]byte, 20)
		n, _ := io.ReadFull(r.Body, b)
		m, _ := io.Copy(io.Discard, r.Body)
		size, head = int64(n)+m, string(b)
		io.WriteString(rw, completion)
	})
	r := start(t, withServer(settings("prefixaware", w.URL), "buffer_body_bytes = 65536\nmax_body_bytes = 100_000_000"), 1)
	f := func(n int, chunked bool) {
		t.Helper()
		body := io.Reader(strings.NewReader(`{"model":"sim","x":"` + strings.Repeat("y", n-22) + `"}`))
		if chunked {
			body = struct{ io.Reader }{body}
		}
		resp, err := testClient.Post("http://"+r.Addr()+"/v1/completions", "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || size != int64(n) || head != `{"model":"sim","x":"` {
			t.Errorf("%d bytes, chunked %v: %d; the worker got %d beginning %q", n, chunked, resp.StatusCode, size, head)
		}
	}
	for _, n := range []int{65535, 65536, 65537, 5_000_000} {
		f(n, false)
		f(n, true)
	}
	eventually(t, "no request left", func() bool { return r.front.Stats().InFlight == 0 && r.inFlight() == 0 })
}

// TestConnectionsCloseAsAsked: close is one option among others, in letters of either size and in any of several fields.
func TestConnectionsCloseAsAsked(t *testing.T) {
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n")
	})
	r := start(t, settings("roundrobin", w.URL), 1)
	for _, options := range []string{"close", "Close", "close, TE", "TE, close", "TE\r\nConnection: close", "close\r\nconnection: TE"} {
		for _, request := range []string{
			"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: %s\r\nContent-Length: 2\r\n\r\n{}",
			"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: %s\r\n\r\n",
		} {
			c, err := net.Dial("tcp", r.Addr())
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(5 * time.Second))
			fmt.Fprintf(c, request, options)
			answer, err := io.ReadAll(c)
			c.Close()
			if err != nil || !strings.Contains(string(answer), "\r\nConnection: close\r\n") {
				t.Errorf("Connection: %s: %v %.200s; want Connection: close and the end", options, err, answer)
			}
		}
	}
}
