package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestConfigureKeepsWhatIsKnown: new settings are in force at once, and nothing that was learnt is lost.
func TestConfigureKeepsWhatIsKnown(t *testing.T) {
	p := upPool(t, 2)
	w := p.workers[0]
	p.fleet, w.rel, p.samples = 3, 2, 50
	k := p.Begin(w, Dispatch{PromptTokens: 100}, p.after(1))
	before := p.Stats(p.after(2))[0]
	cost := p.Estimate(15000, 0) * before.Slow
	p.Configure(Config{PrefillTokensPerSecond: 30000, MaxInFlight: 9})
	after := p.Stats(p.after(2))[0]
	near(t, "predicted seconds of a prompt", p.Estimate(15000, 0)*after.Slow, cost, cost*1e-6)
	if after.InFlight != 1 || after.Limit != 9 || after.State != "up" || after.Sent != 1 {
		t.Errorf("after Configure: %+v", after)
	}
	if p.C1() != 1./30000 || p.C2() != 2*p.C1()/65536 {
		t.Errorf("C1 %v, C2 %v of the new speed", p.C1(), p.C2())
	}
	k.End(p.after(3), Outcome{Kind: Answered})
}

// TestConfigureIntervals: a loop that sleeps by the old interval looks at the new one at once.
func TestConfigureIntervals(t *testing.T) {
	play(t, 1, func(p *Pool, f *wire) {
		p.Configure(Config{HealthInterval: time.Hour, ScrapeInterval: time.Hour})
		time.Sleep(time.Minute)
		health, scrapes := f.count("w0/health"), f.count("w0/metrics")
		time.Sleep(10 * time.Minute)
		if n, m := f.count("w0/health")-health, f.count("w0/metrics")-scrapes; n+m > 0 {
			t.Errorf("%d checks and %d scrapes in ten minutes; want one an hour", n, m)
		}
		p.Configure(Config{HealthInterval: time.Second, ScrapeInterval: time.Second})
		time.Sleep(10 * time.Second)
		near(t, "checks in ten seconds", float64(f.count("w0/health")-health), 10, 2)
		near(t, "scrapes in ten seconds", float64(f.count("w0/metrics")-scrapes), 10, 2)
	})
}

// TestKeyAndCA asks a worker that wants a key, over TLS by an authority of our own.
func TestKeyAndCA(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	var log syncBuffer
	c := Config{Workers: []Spec{{ID: "a", URL: s.URL}}, HealthInterval: 20 * time.Millisecond, ScrapeInterval: 20 * time.Millisecond,
		HealthTimeout: 5 * time.Second, Key: "sesame-1", Log: slog.New(slog.NewTextHandler(&log, nil))}
	p := New(c)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()
	until := func(what string, ok func(Stats) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(p.Stats(time.Now())[0]); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not in 20 s: %s; %+v", what, p.Stats(time.Now())[0])
			}
		}
	}
	until("a certificate by nobody that we know", func(s Stats) bool { return strings.Contains(s.LastError, "certificate") && !s.Up })
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c.TLS = &tls.Config{RootCAs: roots}
	p.Configure(c)
	until("the wrong key", func(s Stats) bool { return strings.Contains(s.LastError, "401") && s.Up })
	c.Key = "sesame-2"
	p.Configure(c)
	until("models and metrics", func(s Stats) bool { return len(s.Models) == 1 && s.Running == 7 })
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
