package probe_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/probe"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

// quick asks often.
var quick = probe.Config{
	HealthInterval: 20 * time.Millisecond, ScrapeInterval: 20 * time.Millisecond, HealthTimeout: 5 * time.Second,
}

// TestServer runs the loops over real connections against pages recorded from vLLM.
func TestServer(t *testing.T) {
	page, err := os.ReadFile("testdata/metrics-0.32.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	var user atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, secret, _ := r.BasicAuth()
		user.Store(name + ":" + secret)
		switch r.URL.Path {
		case "/health":
		case "/metrics":
			w.Write(page)
		case "/v1/models":
			fmt.Fprint(w, `{"object":"list","data":[{"id":"tiny"}]}`)
		default:
			http.Redirect(w, r, "/health", http.StatusFound)
		}
	}))
	defer s.Close()
	var log logtest.Log
	capacity, down := make(chan int, 9), make(chan bool, 9)
	c := worker.Config{
		Workers: []worker.Spec{{ID: "a", URL: strings.Replace(s.URL, "//", "//me:hunter2@", 1)}},
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
		Caches:  caches{down: down, capacity: capacity},
	}
	q := quick
	var last worker.Stats
	run(t, c, q, func(p *worker.Pool, _ *probe.Prober) {
		last = followServer(t, p, s, capacity, down)
	})
	if user.Load() != "me:hunter2" {
		t.Errorf("credentials sent: %v", user.Load())
	}
	for _, text := range []string{log.String(), fmt.Sprintf("%+v", last)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "me:") {
			t.Errorf("credentials are shown: %s", text)
		}
	}
	if !strings.Contains(last.LastError, "refused") {
		t.Errorf("last error %q; want a refused connection", last.LastError)
	}
}

// caches passes on what the pool says of the workers' caches.
type caches struct {
	down     chan bool
	capacity chan int
}

func (c caches) Down(uint32)             { c.down <- true }
func (caches) Restarted(uint32)          {}
func (caches) Outdated(uint32)           {}
func (c caches) Resized(_ uint32, n int) { c.capacity <- n }

// followServer ends the server once the pool has read all of it, and returns what the pool knows of the worker then.
func followServer(t *testing.T, p *worker.Pool, s *httptest.Server, capacity chan int, down chan bool) worker.Stats {
	t.Helper()
	if n := got(t, capacity); n != 0 {
		t.Errorf("capacity %d when registered; want 0", n)
	}
	if n := got(t, capacity); n != 2944 {
		t.Errorf("capacity %d; want 2944", n)
	}
	for len(p.Models(nil)) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	got(t, down)
	return p.Stats(time.Now())[0]
}

// TestKeyAndCA asks a worker that wants a key, over TLS by an authority of our own.
func TestKeyAndCA(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%s was asked for in %q; the worker would compress it", r.URL.Path, r.Header.Get("Accept-Encoding"))
		}
		mu.Lock()
		seen[r.URL.Path] = r.Header.Get("Authorization")
		mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer sesame-2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"tiny"}]}`)
		case "/metrics":
			fmt.Fprintln(w, "vllm:num_requests_running 7")
		}
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	var log logtest.Log
	c := worker.Config{Workers: []worker.Spec{{ID: "a", URL: s.URL}}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	q := quick
	q.Key = "sesame-1"
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	run(t, c, q, func(p *worker.Pool, prober *probe.Prober) { trySecrets(t, p, prober, q, roots) })
	mu.Lock()
	defer mu.Unlock()
	for _, path := range []string{"/health", "/v1/models", "/metrics"} {
		if seen[path] != "Bearer sesame-2" {
			t.Errorf("%s was asked with %q", path, seen[path])
		}
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("the key is in the log:\n%s", log.String())
	}
}

// trySecrets gives the prober the authority, and then the key, and checks what the pool learns with each.
func trySecrets(t *testing.T, p *worker.Pool, prober *probe.Prober, q probe.Config, roots *x509.CertPool) {
	t.Helper()
	until := func(what string, ok func(worker.Stats) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(p.Stats(time.Now())[0]); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not in 20 s: %s; %+v", what, p.Stats(time.Now())[0])
			}
		}
	}
	until("a certificate by nobody that we know", func(s worker.Stats) bool {
		return strings.Contains(s.LastError, "certificate") && !s.Up
	})
	q.TLS = &tls.Config{RootCAs: roots}
	prober.Configure(q)
	until("the wrong key", func(s worker.Stats) bool { return strings.Contains(s.LastError, "401") && s.Up })
	q.Key = "sesame-2"
	prober.Configure(q)
	until("models and metrics", func(s worker.Stats) bool { return len(s.Models) == 1 && s.Running == 7 })
}

func got[T any](t *testing.T, c chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing in 20 s")
		panic("unreachable")
	}
}
