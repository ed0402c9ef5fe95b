package daemon

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// zstandard is {"model":"two"} as zstd's command packs it, with a checksum.
const zstandard = "\x28\xb5\x2f\xfd\x04\x58\x79\x00\x00{\"model\":\"two\"}\xf6\xdd\x18\xa9"

// listening is a worker that lists one model and keeps the last request.
type listening struct {
	mu     sync.Mutex // guards all below
	header http.Header
	body   string
	hits   int
}

func newListening(t *testing.T, model string) (*listening, string) {
	l := &listening{}
	w := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" {
			fmt.Fprintf(rw, `{"data":[{"id":%q}]}`, model)
			return
		}
		b, err := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil {
			l.header, l.body = r.Header, string(b)
			l.hits++
		}
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, `{"object":"chat.completion","choices":[],"served_by":"`+model+`"}`)
	}))
	t.Cleanup(w.Close)
	return l, w.URL
}

// got returns how many requests have come since the last call, and the last one.
func (l *listening) got() (int, http.Header, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hits := l.hits
	l.hits = 0
	return hits, l.header, l.body
}

// TestPackedBodies: a packed body goes where the same one would go as it is, and the worker gets it unpacked.
func TestPackedBodies(t *testing.T) {
	one, url1 := newListening(t, "one")
	two, url2 := newListening(t, "two")
	r := start(t, keysFor(t)+withServer(settings("roundrobin", url1, url2), "buffer_body_bytes = 65536\nmax_body_bytes = 1_000_000"), 2)
	const own = `{"model":"two"}`
	f := func(what string, status int, coding, body, want string) {
		t.Helper()
		for range 2 { // two workers in turns
			s := r.as("alice", "POST", "/v1/chat/completions", body, "Content-Encoding", coding)
			astray, _, _ := one.got()
			hits, header, got := two.got()
			if s.status != status || (hits == 1) != (status == 200) || astray != 0 {
				t.Errorf("%s: %d %s, %d hits, %d astray; want %d", what, s.status, s.body, hits, astray, status)
			} else if hits == 1 && (got != want || coding != "identity" && header.Get("Content-Encoding") != "") {
				t.Errorf("%s: the worker got %.60q, %d bytes, in %q", what, got, len(got), header.Get("Content-Encoding"))
			}
		}
	}
	f("gzip", 200, "gzip", gzipped(own), own)
	f("x-gzip", 200, "x-gzip", gzipped(own), own)
	f("zstd", 200, "zstd", zstandard, own)
	f("twice", 413, "gzip, gzip", gzipped(gzipped(own)), "")
	f("twice, by two codings", 413, "gzip, zstd", zstandard, "")
	f("identity", 200, "identity", own, own)
	f("two members", 200, "gzip", gzipped(`{"model":`)+gzipped(`"two"}`), own)
	long := `{"model":"two","x":"` + strings.Repeat("x", 500_000) + `"}`
	f("over the buffer when unpacked", 200, "gzip", gzipped(long), long)
	bomb := gzipped(`{"model":"two","x":"` + strings.Repeat("x", 2_000_000) + `"}`)
	f("over the limit when unpacked", 413, "gzip", bomb, "")
	f("cut", 400, "gzip", gzipped(own)[:20], "")
	f("more behind", 400, "gzip", gzipped(own)+"x", "")
	f("not packed", 400, "zstd", own, "")
	f("bzip2", 415, "bz2", own, "")
	f("no coding", 415, "gzip;q=1", own, "")
	if s := r.as("bob", "POST", "/v1/chat/completions", gzipped(own), "Content-Encoding", "gzip"); s.status != 403 {
		t.Errorf("a packed model that the key may not use: %d %s", s.status, s.body)
	}
	if s := r.as("alice", "POST", "/v1/chat/completions", own, "Content-Encoding", "bz2"); s.header.Get("Accept-Encoding") != "gzip, deflate, zstd, br" ||
		s.code() != "unsupported_encoding" {
		t.Errorf("%d %s %v; want the codings that are read", s.status, s.body, s.header)
	}
	if s := r.as("alice", "POST", "/v1/chat/completions", gzipped(own)+"x", "Content-Encoding", "gzip"); s.code() != "invalid_encoding" {
		t.Errorf("%d %s", s.status, s.body)
	}
	for _, body := range []io.Reader{strings.NewReader(gzipped(own)), io.MultiReader(strings.NewReader(gzipped(own)))} { // with a length, and chunked
		req, _ := http.NewRequest("POST", "http://"+r.Addr()+"/v1/chat/completions", body)
		req.Header.Set("Content-Encoding", "gzip")
		req.Header.Set("X-Api-Key", "alice-secret")
		resp, err := testClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if hits, _, got := two.got(); resp.StatusCode != 200 || hits != 1 || got != own {
			t.Errorf("%d, %d hits, %q", resp.StatusCode, hits, got)
		}
	}
	eventually(t, "no request left", func() bool { return r.front.Stats().InFlight == 0 && r.inFlight() == 0 })
}

// TestDecodersOfTwoKeys: one key's packed bodies that do not end take no more than its part of the decoders' memory.
func TestDecodersOfTwoKeys(t *testing.T) {
	t.Parallel()
	_, url := newListening(t, "sim")
	r := start(t, keysFor(t)+withServer(settings("roundrobin", url), "buffer_body_bytes = 65536\nread_timeout = \"1s\""), 1)
	const wide = "\x28\xb5\x2f\xfd\x00\x68\x28\x00\x00hello" // a frame of zstd with a window of 8 MiB
	var open []net.Conn
	for range 3 { // of the 64 MiB for all
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Api-Key: alice-secret\r\nContent-Encoding: zstd\r\nContent-Length: 2000\r\n\r\n%s\x08\x00\x00a", wide)
	}
	done := make(chan bool)
	go func() { // keep them going
		for range 30 {
			select {
			case <-done:
				return
			case <-time.After(200 * time.Millisecond):
			}
			for _, c := range open {
				_, _ = c.Write([]byte("\x08\x00\x00a")) // another block
			}
		}
	}()
	f := func(who, coding, body string, status int, code string) {
		t.Helper()
		s := r.as(who, "POST", "/v1/chat/completions", body, "Content-Encoding", coding)
		if s.status != status || s.code() != code || (s.header.Get("Retry-After") != "") != (status == 429) {
			t.Errorf("%s, %s: %d %s; want %d %s", who, coding, s.status, s.body, status, code)
		}
	}
	const own = `{"model":"sim"}`
	eventually(t, "alice's part is taken", func() bool {
		return r.as("alice", "POST", "/v1/chat/completions", wide, "Content-Encoding", "zstd").code() == "unpacking_full"
	})
	f("alice", "zstd", wide, 429, "unpacking_full")
	f("alice", "gzip", gzipped(own), 200, "")
	f("bob", "zstd", wide, 400, "invalid_encoding")                                        // it was read to its end, which is none
	f("bob", "zstd", strings.Replace(zstandard, "two", "sim", 1), 400, "invalid_encoding") // a wrong checksum
	f("bob", "gzip", gzipped(own), 200, "")
	close(done)
	for _, c := range open {
		c.Close()
	}
	eventually(t, "nothing is left", func() bool { return r.front.Stats().InFlight == 0 })
	f("alice", "zstd", wide, 400, "invalid_encoding")
}

// TestPackedPromptsAreKnown: the index and the decision see a packed prompt as the same one that came plain.
func TestPackedPromptsAreKnown(t *testing.T) {
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 2)
	body := `{"model":"sim","messages":[{"role":"user","content":"` + strings.Repeat("a long prompt ", 200) + `"}],"max_tokens":1}`
	first := r.do("POST", "/v1/chat/completions", body, "X-Warmpath-Explain", "1")
	again := r.do("POST", "/v1/chat/completions", gzipped(body), "Content-Encoding", "gzip", "X-Warmpath-Explain", "1")
	if again.status != 200 || again.header.Get("X-Warmpath-Worker") != first.header.Get("X-Warmpath-Worker") ||
		again.header.Get("X-Warmpath-Matched-Blocks") == "0" {
		t.Errorf("first %v\nagain, packed, %v", first.header, again.header)
	}
}
