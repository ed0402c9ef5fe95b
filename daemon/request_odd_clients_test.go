package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestModelBehindWhatIsHeld: a long body whose model has not come yet must not go to a worker of another model.
// Anthropic's SDK for Python sends messages before the model, and a form may have its file first.
func TestModelBehindWhatIsHeld(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	worker := func(model string) string {
		w := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Method == "POST" {
				hits.Add(1)
			}
			fmt.Fprintf(rw, `{"data":[{"id":%q}]}`, model)
		}))
		t.Cleanup(w.Close)
		return w.URL
	}
	llm, ears, more := worker("llm"), worker("ears"), worker("llm")
	long := strings.Repeat("x", 70_000)
	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	const json, form = "application/json", "multipart/form-data; boundary=b"
	f := func(r *running, what, path, kind, body string, want int) {
		t.Helper()
		hits.Store(0)
		s := r.do("POST", path, body, "Content-Type", kind)
		if s.status != want || (hits.Load() == 1) != (want == 200) || want == 413 && !strings.Contains(s.body, "put the model first") {
			t.Errorf("%s: %d, %d hits: %s; want %d", what, s.status, hits.Load(), s.body, want)
		}
	}
	text := withServer(settings("roundrobin", llm, ears), "buffer_body_bytes = 65536\noverflow_bytes = 0") // else see TestLateModels
	for name, r := range map[string]*running{
		"one pool": start(t, text, 2),
		"two pools": start(t, strings.Replace(withServer(settings("roundrobin", llm), "buffer_body_bytes = 65536\noverflow_bytes = 0"), `"*"`, `"llm"`, 1)+
			"[[pools]]\nname = \"two\"\nmodels = [\"ears\"]\n[[pools.workers]]\nurl = \""+ears+"\"\n", 2),
	} {
		f(r, name+", behind", "/v1/chat/completions", json, `{"messages":"`+long+`","model":"ears"}`, 413)
		f(r, name+", before", "/v1/chat/completions", json, `{"model":"ears","messages":"`+long+`"}`, 200)
		f(r, name+", a file before", "/v1/audio/transcriptions", form, part("file", long)+part("model", "ears")+"--b--\r\n", 413)
		f(r, name+", a file behind", "/v1/audio/transcriptions", form, part("model", "ears")+part("file", long)+"--b--\r\n", 200)
		f(r, name+", no form", "/v1/audio", "application/octet-stream", long, 200)
	}
	same := start(t, withServer(settings("roundrobin", llm, more), "buffer_body_bytes = 65536"), 2)
	f(same, "one model", "/v1/chat/completions", json, `{"messages":"`+long+`","model":"llm"}`, 200)
	f(start(t, text, 2), "a pool that the path names", "/endpoints/main/invocations", json, `{"x":"`+long+`"}`, 200)
}

// TestExpectInAnySpelling: a client that waits for 100 before it sends its body gets it, however it writes the field.
func TestExpectInAnySpelling(t *testing.T) {
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) { _, _ = io.Copy(rw, r.Body) })
	r := start(t, settings("roundrobin", w.URL), 1)
	for _, expect := range []string{"Expect: 100-continue", "expect: 100-continue", "EXPECT:100-Continue"} {
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 2\r\n\r\n", expect)
		in := bufio.NewReader(c)
		if line, err := in.ReadString('\n'); line != "HTTP/1.1 100 Continue\r\n" {
			t.Errorf("%s: %q %v; want 100", expect, line, err)
			continue
		}
		in.ReadString('\n')
		io.WriteString(c, "{}")
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %v %v; want 200", expect, resp, err)
		}
	}
}

// TestRedirectsStayHere: a client that follows a worker's redirect comes here again.
func TestRedirectsStayHere(t *testing.T) {
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", "http://"+r.Host+strings.TrimSuffix(r.URL.Path, "/"))
		rw.WriteHeader(307)
	})
	r := start(t, settings("roundrobin", w.URL), 1)
	head := raw(t, r.Addr(), "POST /v1/chat/completions/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	if !strings.HasPrefix(head, "HTTP/1.1 307 ") || !strings.Contains(head, "\r\nLocation: /v1/chat/completions\r\n") {
		t.Errorf("%s\nwant a Location without an address", head)
	}
}
