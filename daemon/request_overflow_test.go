package daemon

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// withOverflow sets small bounds, and a folder of the test's own.
func withOverflow(t *testing.T, text string) (toml, dir string) {
	dir = t.TempDir()
	return withServer(text, fmt.Sprintf("buffer_body_bytes = 65536\nmax_body_bytes = 4_000_000\noverflow_bytes = 6_000_000\noverflow_dir = %q", dir)), dir
}

// late is a body whose model comes behind so many bytes.
func late(n int, behind string) string {
	return `{"messages":"` + strings.Repeat("x", n) + `","model":"two"` + behind + `}`
}

// varied is late of letters that cannot be packed much.
func varied(n int) string {
	b := []byte(late(n, ""))
	for i := range n {
		b[len(`{"messages":"`)+i] = "abcdefgh"[rand.IntN(8)]
	}
	return string(b)
}

// TestLateModels: a long body goes where its model is served, byte for byte, wherever in it the model stands.
func TestLateModels(t *testing.T) {
	t.Setenv("DORA_KEY", "dora-secret")
	one, url1 := newListening(t, "one")
	two, url2 := newListening(t, "two")
	text, dir := withOverflow(t, settings("roundrobin", url1, url2))
	r := start(t, keysFor(t)+`[[keys]]
name = "dora"
env = "DORA_KEY"
models = ["two"]
`+text, 2)
	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	const json, form = "application/json", "multipart/form-data; boundary=b"
	f := func(what, who string, status int, code, path, kind, body string, header ...string) {
		t.Helper()
		for range 2 { // two workers in turns
			s := r.as(who, "POST", path, body, append([]string{"Content-Type", kind}, header...)...)
			astray, _, _ := one.got()
			hits, _, got := two.got()
			if len(header) > 0 {
				got = body // it was packed
			}
			if s.status != status || s.code() != code || astray != 0 || (hits == 1) != (status == 200) || hits == 1 && got != body {
				t.Errorf("%s: %d %.200s, %d hits, %d astray, %d of %d bytes", what, s.status, s.body, hits, astray, len(got), len(body))
			}
		}
	}
	const chat = "/v1/chat/completions"
	f("behind the buffer", "alice", 200, "", chat, json, late(70_000, ""))
	f("far behind", "alice", 200, "", chat, json, late(1_500_000, ""))
	f("in the middle", "alice", 200, "", chat, json, late(100_000, `,"more":"`+strings.Repeat("y", 2_000_000)+`"`))
	f("input before it", "alice", 200, "", "/v1/embeddings", json, strings.Replace(late(100_000, ""), "messages", "input", 1))
	f("a file before it", "alice", 200, "", "/v1/audio/transcriptions", form, part("file", strings.Repeat("\xff", 300_000))+part("model", "two")+"--b--\r\n")
	f("a picture before it", "alice", 200, "", "/v1/images/edits", form, part("image", strings.Repeat("\x00", 70_000))+part("model", "two")+part("mask", strings.Repeat("\x01", 900_000))+"--b--\r\n")
	f("packed", "alice", 200, "", chat, json, gzipped(late(700_000, "")), "Content-Encoding", "gzip")
	f("over the room", "alice", 413, "body_too_large", chat, json, late(3_500_000, ""))
	f("over the room, packed", "alice", 413, "body_too_large", chat, json, gzipped(varied(3_500_000)), "Content-Encoding", "gzip")
	f("over the limit, packed", "alice", 413, "body_too_large", chat, json, gzipped(varied(5_000_000)), "Content-Encoding", "gzip")
	f("a bomb", "alice", 413, "body_unpacks_too_large", chat, json, gzipped(late(2_000_000, "")), "Content-Encoding", "gzip")

	f("a key for the model", "dora", 200, "", chat, json, late(500_000, ""))
	f("a key for the model, which comes first", "dora", 200, "", chat, json, `{"model":"two","x":"`+strings.Repeat("x", 500_000)+`"}`)
	f("a key for another", "bob", 403, "model_not_found", chat, json, late(500_000, ""))
	f("a second model at the end", "dora", 400, "ambiguous_model", chat, json, late(500_000, `,"model":"two"`))
	f("no end", "dora", 400, "invalid_json", chat, json, strings.TrimSuffix(late(500_000, ""), "}"))
	f("a form with two models", "dora", 400, "ambiguous_form", "/v1/audio/transcriptions", form,
		part("model", "two")+part("file", strings.Repeat("z", 300_000))+part("model", "two")+"--b--\r\n")
	f("another's response at the end", "alice", 404, "response_not_found", "/v1/responses", json,
		`{"model":"two","input":"`+strings.Repeat("x", 300_000)+`","previous_response_id":"resp_of_another"}`)
	f("a long input", "alice", 200, "", "/v1/responses", json, `{"model":"two","input":"`+strings.Repeat("x", 300_000)+`"}`)
	if files, _ := os.ReadDir(dir); len(files) != 0 || r.server.Overflow() != 0 {
		t.Errorf("%v and %d bytes are left", files, r.server.Overflow())
	}
}

// TestLateModelsAreRepeated: a body that has been kept whole can go to a second worker.
func TestLateModelsAreRepeated(t *testing.T) {
	two, url := newListening(t, "two")
	_, other := newListening(t, "one")
	var tried atomic.Int64
	dying := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			_, _ = io.Copy(io.Discard, r.Body)
			tried.Add(1)
			panic(http.ErrAbortHandler)
		}
		io.WriteString(rw, `{"data":[{"id":"two"}]}`)
	}))
	t.Cleanup(dying.Close)
	text, _ := withOverflow(t, settings("roundrobin", dying.URL, url, other))
	r := start(t, text, 3)
	body := late(500_000, "")
	for range 4 {
		s := r.do("POST", "/v1/chat/completions", body)
		if hits, _, got := two.got(); s.status != 200 || hits != 1 || got != body {
			t.Errorf("%d %s, %d hits", s.status, s.body, hits)
		}
	}
	if tried.Load() == 0 {
		t.Error("the worker that dies was never tried")
	}
}

// TestLateModelsLeaveNothing: whatever ends a request while its body is kept, no file, descriptor or memory is left.
func TestLateModelsLeaveNothing(t *testing.T) {
	t.Parallel()
	_, url1 := newListening(t, "one")
	_, url2 := newListening(t, "two")
	text, dir := withOverflow(t, settings("roundrobin", url1, url2))
	r := start(t, withServer(text, `read_timeout = "1s"`), 2)
	begun := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		had := r.server.Overflow()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2600000\r\n\r\n%.2500000s", late(2_500_000, ""))
		eventually(t, "most of it is kept", func() bool { return r.server.Overflow() >= had+2_400_000 })
		return c
	}
	none := func(what string) {
		t.Helper()
		eventually(t, what+": nothing is left", func() bool {
			return r.server.Overflow() == 0 && r.front.Stats().InFlight == 0 && descriptors(t) == 0
		})
	}
	c := begun()
	if s := r.do("POST", "/v1/chat/completions", late(900_000, "")); s.status != 429 || s.code() != "overflow_full" || s.header.Get("Retry-After") == "" {
		t.Errorf("while the room is taken: %d %s", s.status, s.body)
	}
	c.Close()
	none("the client left")
	c = begun()
	answer, _ := io.ReadAll(c)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("the rest did not come: %.200s", answer)
	}
	c.Close()
	none("read_timeout has passed")
	if s := r.do("POST", "/v1/chat/completions", late(900_000, "")); s.status != 200 {
		t.Errorf("the room is free again: %d %s", s.status, s.body)
	}
	if err := os.Rename(dir, dir+"-gone"); err != nil {
		t.Fatal(err)
	}
	if s := r.do("POST", "/v1/chat/completions", late(900_000, "")); s.status != 503 || s.code() != "body_not_kept" {
		t.Errorf("no folder: %d %s", s.status, s.body)
	}
	none("there is no folder")
	if err := os.Rename(dir+"-gone", dir); err != nil {
		t.Fatal(err)
	}
	if s := r.do("POST", "/v1/chat/completions", late(900_000, "")); s.status != 200 {
		t.Errorf("the folder is back: %d %s", s.status, s.body)
	}
	none("the end")
}

// TestLateModelsOfTwoKeys: what one key keeps leaves room for another's body, however many bodies it is in.
func TestLateModelsOfTwoKeys(t *testing.T) {
	_, url1 := newListening(t, "one")
	_, url2 := newListening(t, "two")
	text, _ := withOverflow(t, settings("roundrobin", url1, url2))
	r := start(t, keysFor(t)+text, 2)
	for i := range 4 {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Api-Key: alice-secret\r\nContent-Length: 2900000\r\n\r\n%.900000s", late(900_000, ""))
		// One after the other: of several that are over the bound together, more than one could be refused.
		eventually(t, "alice's part is taken", func() bool { return r.server.Overflow() >= min(2_500_000, (int64(i)+1)*800_000) })
	}
	f := func(who string, size, status int, code string) {
		t.Helper()
		if s := r.as(who, "POST", "/v1/chat/completions", late(size, "")); s.status != status || s.code() != code {
			t.Errorf("%s, %d bytes: %d %s; want %d %s", who, size, s.status, s.body, status, code)
		}
	}
	f("alice", 900_000, 429, "overflow_full")
	f("bob", 900_000, 403, "model_not_found") // it was read to its model
	f("carol", 900_000, 403, "model_not_found")
	f("carol", 3_100_000, 413, "body_too_large")
}

// descriptors counts those of this process that are files of kept bodies.
func descriptors(t *testing.T) int {
	t.Helper()
	links, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system has no /proc")
	}
	n := 0
	for _, l := range links {
		to, _ := os.Readlink(filepath.Join("/proc/self/fd", l.Name()))
		if strings.Contains(to, "warmpath-body-") {
			n++
		}
	}
	return n
}

// TestOneModelIsNotKept: where any worker will do, a long body is streamed, and needs no folder.
func TestOneModelIsNotKept(t *testing.T) {
	two, url := newListening(t, "two")
	text, dir := withOverflow(t, settings("roundrobin", url))
	r := start(t, text, 1)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	body := late(2_000_000, "")
	if s := r.do("POST", "/v1/chat/completions", body); s.status != 200 {
		t.Errorf("%d %s", s.status, s.body)
	}
	if hits, _, got := two.got(); hits != 1 || got != body {
		t.Errorf("%d hits, %d bytes", hits, len(got))
	}
}
