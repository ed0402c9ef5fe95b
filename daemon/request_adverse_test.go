package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestNoRequestInsideAnother: a body that is not read is no request, whatever path or method it came with.
func TestNoRequestInsideAnother(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	inner := "XGET /v1/models HTTP/1.1\r\nHost: inner\r\n\r\n"
	for _, line := range []string{"GET /health", "GET /ready", "HEAD /ready", "FOO /v1/models", "POST /nowhere", "DELETE /health"} {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", line, len(inner), inner)
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		b, err := io.ReadAll(c)
		if n := strings.Count(string(b), "HTTP/1.1 "); n != 1 || err != nil {
			t.Errorf("%s: %d answers, %v: %s", line, n, err, b)
		}
		c.Close()
	}
	for _, head := range []string{"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "GET /ready HTTP/1.1\r\nHost: x\nX: y\r\n\r\n"} {
		if resp, _, _ := r.raw(head); resp.StatusCode != 400 || !resp.Close {
			t.Errorf("%.40q: %d; want 400 and a close", head, resp.StatusCode)
		}
	}
}

// TestBodyThatIsPartlyGoneIsNotRepeated: what a failed worker has taken of a long body cannot be sent again.
func TestBodyThatIsPartlyGoneIsNotRepeated(t *testing.T) {
	var got, whole atomic.Int32
	serve := func(rw http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, io.LimitReader(r.Body, 300_000))
		got.Add(1)
		if n == 300_000 && err == nil {
			panic(http.ErrAbortHandler) // in the midst of the body
		}
		whole.Add(1)
	}
	a, b := fakeWorker(t, serve), fakeWorker(t, serve)
	r := start(t, withServer(settings("roundrobin", a.URL, b.URL), "buffer_body_bytes = 65536"), 2)
	for _, chunked := range []bool{true, false} {
		body := io.Reader(strings.NewReader(`{"model":"sim","x":"` + strings.Repeat("y", 2_000_000) + `"}`))
		if chunked {
			body = struct{ io.Reader }{body}
		}
		resp, err := testClient.Post("http://"+r.Addr()+"/v1/completions", "application/json", body)
		if err != nil {
			continue // the connection broke while we were sending: honest as well
		}
		resp.Body.Close()
		if resp.StatusCode < 500 {
			t.Errorf("chunked %v: %d", chunked, resp.StatusCode)
		}
	}
	if got.Load() != 2 || whole.Load() != 0 {
		t.Errorf("workers got %d bodies, %d taken for whole; want 2, 0", got.Load(), whole.Load())
	}
}

// TestModelsOfAKeyHoldWhateverTheBody: what we cannot read to its end may name another model to the worker.
func TestModelsOfAKeyHoldWhateverTheBody(t *testing.T) {
	var hits atomic.Int32
	w := fakeWorker(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	dir := t.TempDir()
	write(t, filepath.Join(dir, "k"), "some-secret")
	r := start(t, fmt.Sprintf("[[keys]]\nname = \"k\"\nfile = %q\nmodels = [\"sim\"]\n", dir+"/k")+
		withServer(settings("roundrobin", w.URL), "buffer_body_bytes = 65536"), 1)
	f := func(what, path, kind, body string, want int) {
		t.Helper()
		hits.Store(0)
		s := r.do("POST", path, body, "X-Api-Key", "some-secret", "Content-Type", kind)
		if s.status != want || (hits.Load() > 0) != (want == 200) {
			t.Errorf("%s: %d, %d hits: %s; want %d", what, s.status, hits.Load(), s.body, want)
		}
	}
	const json = "application/json"
	f("its model", "/v1/completions", json, `{"model":"sim"}`, 200)
	f("another", "/v1/completions", json, `{"model":"secret"}`, 403)
	f("the last of two", "/v1/completions", json, `{"model":"sim","model":"secret"}`, 403)
	f("behind what is too deep", "/v1/completions", json, `{"model":"sim","a":`+strings.Repeat("[", 900)+strings.Repeat("]", 900)+`,"model":"secret"}`, 400)
	f("behind what is held", "/v1/completions", json, `{"model":"sim","a":"`+strings.Repeat("x", 70_000)+`","model":"secret"}`, 403)
	f("an adapter of its name", "/v1/load_lora_adapter", json, `{"model":"sim","lora_name":"sim"}`, 403)
	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	const form = "multipart/form-data; boundary=b"
	f("a form", "/v1/audio/transcriptions", form, part("model", "sim")+part("file", "RIFF")+"--b--\r\n", 200)
	f("a form of many parts", "/v1/audio/transcriptions", form, part("model", "sim")+strings.Repeat(part("x", "y"), 300)+part("model", "secret")+"--b--\r\n", 400)
}

// TestEventsThatAreNotUnderstoodGoOn: what we cannot read is not broken.
func TestEventsThatAreNotUnderstoodGoOn(t *testing.T) {
	stream := "data: no JSON at all\n\ndata: {\"choices\":[{\"index\":0,\"text\":\"" + strings.Repeat("z", 1<<20) + "\"}]}\n\ndata: [DONE]\n\n"
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, stream)
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	if s := r.do("POST", "/v1/completions", streamed); s.status != 200 || s.err != nil || s.body != stream {
		t.Errorf("%d, %v, %d bytes; want %d", s.status, s.err, len(s.body), len(stream))
	}
}

// TestTheBeginningOfAnEventIsNoEvent: a client that reads events never sees half a one before the error.
func TestTheBeginningOfAnEventIsNoEvent(t *testing.T) {
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n")
		rw.(http.Flusher).Flush()
		io.WriteString(rw, "data: {\"choices\":[{\"ind")
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	s := r.do("POST", "/v1/completions", streamed)
	if !errors.Is(s.err, io.ErrUnexpectedEOF) || strings.Contains(s.body, `"ind`+"\n") || strings.Count(s.body, "data: ") != 2 || !strings.Contains(s.body, "worker_broke_off") {
		t.Errorf("%v: %s", s.err, s.body)
	}
}

// TestDrainWaitsForNobodyWithoutARequest: a connection opened ahead, or half a header, holds no rollout up.
func TestDrainWaitsForNobodyWithoutARequest(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), "drain_timeout = \"60s\"\nread_timeout = \"50s\""), 1)
	for _, text := range []string{"", "POST /v1/completions HTTP/1.1\r\nHo"} {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, text)
	}
	began := time.Now()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the drain took %v", took)
	}
}

// TestExpectedRefusalsAreTold: who asks before the body gets the whole answer.
func TestExpectedRefusalsAreTold(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), "max_body_bytes = 1000\nbuffer_body_bytes = 1000"), 1)
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != 413 || !strings.Contains(string(b), "body_too_large") {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}
