package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestWorkersBelowAPath: workers that share an address, each below a path of its own, are checked, listed, read and asked
// there, and nothing goes elsewhere.
func TestWorkersBelowAPath(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	mux := http.NewServeMux()
	for i, w := range f {
		to, err := url.Parse(w.URL())
		if err != nil {
			t.Fatal(err)
		}
		path := []string{"/models/one", "/models/two"}[i]
		mux.Handle(path+"/", http.StripPrefix(path, &httputil.ReverseProxy{FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the router asks for %s", r.URL)
		http.NotFound(w, r)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	r := start(t, settings("roundrobin", s.URL+"/models/one", s.URL+"/models/two"), 2)
	for _, body := range []string{
		`{"model":"sim","prompt":"x","max_tokens":4}`,
		`{"model":"sim","prompt":"x","max_tokens":4,"stream":true}`,
		`{"model":"sim","prompt":"` + strings.Repeat("word ", 40_000) + `","max_tokens":4}`,
	} {
		for range 2 {
			if got := r.do("POST", "/v1/completions", body); got.status != 200 {
				t.Errorf("%.60s: %d %.200s", body, got.status, got.body)
			}
		}
	}
	for i, w := range f {
		if n := w.Stats().Finished; n != 3 {
			t.Errorf("worker %d: %d requests; want 3", i+1, n)
		}
	}
	for i, w := range r.describe()[0].Workers {
		if w.State != "up" || w.Why != "" {
			t.Errorf("worker %d: %s (%s)", i+1, w.State, w.Why)
		}
	}
}

// TestRootPaths: a router behind a proxy that leaves a path before those of clients serves all of its own paths there and
// without it, and sends a client back below it.
func TestRootPaths(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("roundrobin", f.URLs()...), `root_paths = ["/llm", "/a/b"]`), 1)
	body := `{"model":"sim","prompt":"x","max_tokens":4}`
	for path, want := range map[string]int{"": 200, "/llm": 200, "/a/b": 200, "/llmx": 404, "/a": 404, "/llm/llm": 404} {
		for _, ask := range [][3]string{{"POST", "/v1/completions", body}, {"GET", "/v1/models", ""}, {"GET", "/health", ""},
			{"POST", "/v1/completions?x=%2F", body}} {
			if got := r.do(ask[0], path+ask[1], ask[2]); got.status != want {
				t.Errorf("%s %s%s: %d; want %d: %.200s", ask[0], path, ask[1], got.status, want, got.body)
			}
		}
	}
	got := r.do("POST", "/llm/sessions", "{}")
	if to := got.header.Get("Location"); !strings.HasPrefix(to, "/llm/sessions/") {
		t.Errorf("a session: %d at %q; want it below /llm", got.status, to)
	}
}

// TestPairBelowAPath: a prefiller and a decoder below a path hand prompts over as others do.
func TestPairBelowAPath(t *testing.T) {
	t.Parallel()
	below := func(w *vllmsim.Server) string {
		to, err := url.Parse(w.URL())
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(http.StripPrefix("/engine", &httputil.ReverseProxy{FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}))
		t.Cleanup(s.Close)
		return s.URL + "/engine"
	}
	f := startRolesWith(t, 1, 1, rolesOptions{before: below, beforePrefiller: below})
	for i := range 4 {
		if err := f.ask(t.Context(), fmt.Sprint("long ", i), 1500, i%2 == 0); err != nil {
			t.Error(err)
		}
	}
	// A prefiller may be late on a busy machine.
	if n := f.metric("warmpath_prefills_total", `result="done"`); n < 2 {
		t.Errorf("%v of 4 prompts were handed over", n)
	}
	if n := f.pinned(); n != 0 {
		t.Errorf("%d blocks are kept", n)
	}
}
