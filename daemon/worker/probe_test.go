package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a fleet without a network: it answers as the test says, and hangs until the deadline where it says nothing.
type wire struct {
	mu     sync.Mutex
	health map[string]any // by host: a status, an error, or nil to hang
	asked  map[string]int // by host and path
	pages  string
}

func (f *wire) set(host string, v any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.health[host] = v
}

func (f *wire) count(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[key]
}

func (f *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.asked[r.URL.Host+r.URL.Path]++
	v := f.health[r.URL.Host]
	f.mu.Unlock()
	body := ""
	switch r.URL.Path {
	case "/v1/models":
		body = `{"data":[{"id":"tiny"}]}`
	case "/metrics":
		body = f.pages
	}
	switch v := v.(type) {
	case int:
		return &http.Response{StatusCode: v, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	case error:
		return nil, v
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// play runs a pool of n workers on a wire inside a bubble of fake time.
func play(t *testing.T, n int, body func(*Pool, *wire)) {
	synctest.Test(t, func(t *testing.T) {
		f := &wire{health: map[string]any{}, asked: map[string]int{}, pages: "vllm:num_requests_running 2\n"}
		s := specs(n)
		for i := range s {
			s[i].URL = fmt.Sprintf("http://w%d", i)
			f.health[fmt.Sprintf("w%d", i)] = 200
		}
		p := New(Config{Workers: s, Client: &http.Client{Transport: f}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.Run(ctx); close(done) }()
		synctest.Wait()
		body(p, f)
		stop()
		<-done
	})
}

func now(p *Pool, model string) string {
	synctest.Wait()
	return snap(p, model, time.Since(p.began).Seconds())
}

func TestRunCadence(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		if got := now(p, "tiny"); got != "w0 w1" { // no time has passed: the first check is made at once
			t.Fatalf("at start: %s", got)
		}
		time.Sleep(time.Minute)
		near(t, "health checks a minute", float64(f.count("w0/health")), 30, 4)
		near(t, "listings a minute", float64(f.count("w0/v1/models")), 7, 1)
		near(t, "scrapes a minute", float64(f.count("w0/metrics")), 12, 2)
		if got := now(p, "other"); got != "unknown model" {
			t.Errorf("a model that nobody lists: %s", got)
		}
		if s := p.Stats(time.Now()); s[0].Running != 2 || s[0].MetricsAge > 6*time.Second {
			t.Errorf("stats: %+v", s[0])
		}
	})
}

func TestRunDeathAndReturn(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		f.set("w0", fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		time.Sleep(2300 * time.Millisecond)
		if got := now(p, "tiny"); got != "w1" {
			t.Errorf("w0 refuses: %s; want w1", got)
		}
		scrapes := f.count("w0/metrics")
		time.Sleep(time.Minute)
		if n := f.count("w0/metrics"); n != scrapes {
			t.Errorf("a dead worker was scraped %d times", n-scrapes)
		}
		f.set("w0", 200)
		time.Sleep(2300 * time.Millisecond)
		if got := now(p, "tiny"); got != "w0 w1" {
			t.Errorf("w0 is back: %s; want both within an interval", got)
		}
		f.set("w1", 503) // the engine is dead
		time.Sleep(2300 * time.Millisecond)
		if got := now(p, "tiny"); got != "w0" {
			t.Errorf("w1 says 503: %s; want w0", got)
		}
		f.set("w1", 404) // a server without /health
		time.Sleep(2300 * time.Millisecond)
		if got := now(p, "tiny"); got != "w0 w1" {
			t.Errorf("w1 says 404: %s; want both", got)
		}
	})
}

// TestBrokenRequestAsksHealth: the check that a broken request asks for finds a dead worker long before the next interval.
// TestNoDescriptorSaysNothingOfAWorker: a check that this process has no descriptor for takes no worker down.
func TestNoDescriptorSaysNothingOfAWorker(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		f.set("w0", fmt.Errorf("dial: %w", syscall.EMFILE))
		time.Sleep(time.Minute)
		if got := now(p, "tiny"); got != "w0 w1" {
			t.Errorf("without a descriptor for a minute: %s; want both", got)
		}
	})
}

func TestBrokenRequestAsksHealth(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		time.Sleep(10*time.Second + 300*time.Millisecond)
		f.set("w0", fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		p.Begin(p.workers[0], Dispatch{}, time.Now()).End(time.Now(), Outcome{Kind: Broken})
		time.Sleep(minGap + time.Millisecond)
		if got := now(p, "tiny"); got != "w1" {
			t.Errorf("%v after a broken answer of a dead worker: %s; want w1", minGap, got)
		}
	})
}

// TestBrokenRequestsDoNotFlood: however many requests fail, a worker gets at most one check each minGap.
func TestBrokenRequestsDoNotFlood(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		before := f.count("w0/health")
		for range 1000 {
			p.Begin(p.workers[0], Dispatch{}, time.Now()).End(time.Now(), Outcome{Kind: Failed})
			time.Sleep(time.Millisecond)
		}
		if n := f.count("w0/health") - before; n > 6 {
			t.Errorf("%d health checks in a second of failures; want at most 6", n)
		}
	})
}

func TestRunHangingHealth(t *testing.T) {
	play(t, 1, func(p *Pool, f *wire) {
		f.set("w0", nil)
		k := p.Begin(p.workers[0], Dispatch{PromptTokens: 10}, time.Now())
		for range 60 {
			time.Sleep(time.Second)
			k.Flow(time.Now())
		}
		if got := now(p, "tiny"); got != "w0" {
			t.Errorf("/health hangs for a minute while tokens flow: %s; want w0", got)
		}
		time.Sleep(10 * time.Second)
		if got := now(p, "tiny"); got != "none up" {
			t.Errorf("10 s after the last token: %s; want none up", got)
		}
		const want = "/health: no answer within 2s" // not Go's "context deadline exceeded"
		if got := p.Stats(time.Now())[0].LastError; got != want {
			t.Errorf("the log and the page say %q; want %q", got, want)
		}
	})
}

func TestUpdateStartsAndStopsLoops(t *testing.T) {
	play(t, 1, func(p *Pool, f *wire) {
		f.set("new", 200)
		p.Update([]Spec{{ID: "new", URL: "http://new"}})
		if got := now(p, "tiny"); got != "new" {
			t.Errorf("after the update: %s; want new", got)
		}
		if s := p.Stats(time.Now())[0]; !s.SlowStart {
			t.Errorf("a worker added to a running pool does not start slowly: %+v", s)
		}
		before := f.count("w0/health")
		time.Sleep(time.Minute)
		if n := f.count("w0/health"); n != before {
			t.Errorf("the removed worker was asked %d times", n-before)
		}
		if s := p.Stats(time.Now())[0]; s.SlowStart {
			t.Errorf("slow start does not end in a minute: %+v", s)
		}
	})
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
	var log syncBuffer
	up, capacity, down := make(chan bool, 9), make(chan int, 9), make(chan bool, 9)
	p := New(Config{
		Workers:        []Spec{{ID: "a", URL: strings.Replace(s.URL, "//", "//me:hunter2@", 1)}},
		HealthInterval: 20 * time.Millisecond, ScrapeInterval: 20 * time.Millisecond, HealthTimeout: 5 * time.Second,
		Log:        slog.New(slog.NewTextHandler(&log, nil)),
		OnUp:       func(uint32) { up <- true },
		OnDown:     func(uint32) { down <- true },
		OnCapacity: func(_ uint32, n int) { capacity <- n },
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	got(t, up)
	if n := got(t, capacity); n != 0 {
		t.Errorf("capacity %d when registered; want 0", n)
	}
	if n := got(t, capacity); n != 2944 {
		t.Errorf("capacity %d; want 2944", n)
	}
	if user.Load() != "me:hunter2" {
		t.Errorf("credentials sent: %v", user.Load())
	}
	for len(p.Models()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	got(t, down)
	stop()
	<-done
	last := p.Stats(time.Now())[0]
	for _, text := range []string{log.String(), fmt.Sprintf("%+v", last)} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "me:") {
			t.Errorf("credentials are shown: %s", text)
		}
	}
	if !strings.Contains(last.LastError, "refused") {
		t.Errorf("last error %q; want a refused connection", last.LastError)
	}
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

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
