package daemon

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// breaker is a worker that is healthy and closes the connection of every request.
func breaker(t *testing.T) string {
	t.Helper()
	return fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}).URL
}

// TestExplainWhileWorkersFail: the decision of a request whose workers all failed names rows of a picture that was
// drawn anew.
func TestExplainWhileWorkersFail(t *testing.T) {
	t.Parallel()
	r := start(t, settings("prefixaware", breaker(t), breaker(t)), 2)
	for i := range 10 {
		s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`, "X-Warmpath-Explain", "1")
		if s.status != 503 || s.header.Get("X-Warmpath-Pool") != "main" {
			t.Errorf("request %d: %d %s, explained %q; want 503 with the decision", i, s.status, s.body, s.header.Get("X-Warmpath-Pool"))
		}
	}
}

// unlisted is a worker that does not tell its models: every name may be one.
func unlisted(t *testing.T) string {
	t.Helper()
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) { rw.Write([]byte(completion)) })
	inner := w.Config.Handler
	w.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			http.NotFound(rw, r)
			return
		}
		inner.ServeHTTP(rw, r)
	})
	return w.URL
}

// TestMadeUpModelsAreNotKept: names of a megabyte, each another, leave nothing behind.
func TestMadeUpModelsAreNotKept(t *testing.T) {
	r := start(t, settings("prefixaware", unlisted(t)), 0)
	eventually(t, "the worker is up", func() bool { return r.describe()[0].Up == 1 })
	ask := func(i int) {
		name := strings.Repeat(string(rune('a'+i%26)), 1<<20) + string(rune('a'+i/26))
		if s := r.do("POST", "/v1/completions", `{"model":"`+name+`","prompt":"x"}`); s.status != 200 {
			t.Fatalf("request %d: %d %.100s", i, s.status, s.body)
		}
	}
	live := func() int64 {
		runtime.GC()
		runtime.GC() // the pools' second generation too
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	ask(0)
	before := live()
	for i := 1; i < 60; i++ {
		ask(i)
	}
	if grown := live() - before; grown > 20<<20 {
		t.Errorf("59 names of 1 MB: %d MB more are held; want none of them", grown>>20)
	}
}

// TestClientTextIsCut: what a client names stands in the log and in answers with 256 bytes at most.
func TestClientTextIsCut(t *testing.T) {
	t.Setenv("WARMPATH_TEST_KEY", "sesame-sesame")
	log := filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("prefixaware", unlisted(t)), "access_log = \""+log+"\"\nmax_header_bytes = 100_000")+
		"[[keys]]\nname = \"team\"\nenv = \"WARMPATH_TEST_KEY\"\nmodels = [\"sim\"]\n", 0)
	eventually(t, "the worker is up", func() bool { return r.describe()[0].Up == 1 })
	long := strings.Repeat("\\u0001", 1<<20)
	path := strings.Repeat("x", 30_000)
	for _, s := range []seen{
		r.do("POST", "/v1/completions", `{"model":"`+long+`","prompt":"x"}`, "Authorization", "Bearer sesame-sesame"),
		r.do("POST", "/v1/"+path, `{"model":"`+long+`"}`, "Authorization", "Bearer sesame-sesame", "X-Request-Id", path),
		r.do("GET", "/"+path, ""),
		r.do(strings.Repeat("M", 40_000), "/v1/x", "", "Authorization", "Bearer sesame-sesame"),
		r.do("GET", "/sessions/"+path, "", "Authorization", "Bearer sesame-sesame"),
		r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`, "Authorization", "Bearer sesame-sesame", "X-Session-Id", path),
	} {
		if len(s.body) > 3000 {
			t.Errorf("%d: an answer of %d bytes: %.80s", s.status, len(s.body), s.body)
		}
	}
	eventually(t, "five lines are written", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Count(string(text), "\n") >= 5
	})
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if len(line) > 4000 { // \u0001 is six bytes in JSON
			t.Errorf("a line of %d bytes: %.120s", len(line), line)
		}
	}
}
