package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// daemonOf serves completions the way the daemon does, with h between the
// reading of the body and the answer.
func daemonOf(t *testing.T, h func(w http.ResponseWriter, n int, model string)) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/completions" || r.Method != "POST" || r.ContentLength != int64(len(data)) ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Warmpath-Explain") != "1" {
			t.Errorf("got %s %s of %d bytes, headers %v, %v", r.Method, r.URL, len(data), r.Header, err)
		}
		_, rest, _ := strings.Cut(string(data[:60]), `"model":"`)
		model, _, _ := strings.Cut(rest, `"`)
		mu.Lock()
		i := n
		n++
		mu.Unlock()
		h(w, i, model)
	}))
	t.Cleanup(s.Close)
	return s
}

func stream(w http.ResponseWriter, prompt, cached int) {
	w.Header().Set("Content-Type", "text/event-stream")
	for range 3 {
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"kalo\"}]}\n\n")
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`+
		"\n\ndata: [DONE]\n\n", prompt, cached)
}

func TestRunEveryModelOverHTTP(t *testing.T) {
	s := daemonOf(t, func(w http.ResponseWriter, n int, model string) {
		w.Header().Set("X-Warmpath-Worker", fmt.Sprintf("w%d", n%4))
		if n == 70 {
			w.WriteHeader(503)
			fmt.Fprint(w, `{"error":{"message":"no worker is up"}}`)
			return
		}
		stream(w, 1600, map[string]int{"A": 800, "B": 0}[model])
	})
	var progress strings.Builder
	report, err := Run(t.Context(), Config{URL: s.URL + "/", Models: []string{"A", "B"}, File: traceFile, Speed: 100,
		Progress: &progress})
	if err != nil {
		t.Fatal(err)
	}
	a, b := report.Results[0], report.Results[1]
	if a.Model != "A" || a.Answered != 60 || a.BlockHitRate != .5 || a.TTFT.Count != 60 || a.Workers != 4 ||
		a.RequestsBusiestOverMean != 1 {
		t.Errorf("A: %+v", a)
	}
	if b.Model != "B" || b.Answered != 59 || b.BlockHitRate != 0 || b.Errors["status 503"] != 1 ||
		b.FirstError != "status 503: no worker is up" {
		t.Errorf("B: %+v", b)
	}
	if a.TTFT.P50 <= 0 || a.TTFT.P50 > a.Total.P50 || a.TTFT.P99 > 100*60 {
		t.Errorf("times %+v, %+v", a.TTFT, a.Total)
	}
	if !strings.Contains(progress.String(), "replay: B: 60 of 60 sent, 59 answered, 1 failed, 0 in flight") {
		t.Errorf("progress:\n%s", progress.String())
	}
}

func TestConnectionsAreReused(t *testing.T) {
	s := daemonOf(t, func(w http.ResponseWriter, n int, _ string) {
		if n%5 == 4 {
			w.WriteHeader(429)
			fmt.Fprint(w, `{"error":{"message":"slow down"}}`)
			return
		}
		stream(w, 1, 0)
	})
	var mu sync.Mutex
	dialled := 0
	tr := newTransport(1)
	defer tr.CloseIdleConnections()
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		dialled++
		return dial(ctx, network, addr)
	}
	trace := readTestTrace(t, 20)
	res, err := play(t.Context(), testConfig(t, Config{URL: s.URL, Speed: 1e6, MaxInFlight: 1}), tr, "A", trace)
	if err != nil || res.Answered != 16 || res.Errors["status 429"] != 4 || dialled > 2 {
		t.Errorf("%d connections for %d requests, %v, %v", dialled, res.Sent, res.Errors, err)
	}
}

func TestErrorKindsOverHTTP(t *testing.T) {
	s := daemonOf(t, func(w http.ResponseWriter, n int, _ string) {
		const out = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
		switch n {
		case 0:
			stream(w, 1, 0)
		case 1: // dies in mid stream
			fmt.Fprint(w, out)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 2: // dies before the head
			panic(http.ErrAbortHandler)
		case 3: // ends politely, but without [DONE]
			fmt.Fprint(w, out)
		case 4:
			fmt.Fprint(w, out, "data: {\"error\":{\"message\":\"engine died\"}}\n\ndata: [DONE]\n\n")
		case 5:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(307)
		}
	})
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	res, err := play(t.Context(), testConfig(t, Config{URL: s.URL, MaxInFlight: 1}), newTransport(1), "A",
		requests(0, 0, 0, 0, 0, 0))
	want := map[string]int{"stream cut short": 2, "connection lost": 1, "error event": 1, "status 307": 1}
	if err != nil || res.Answered != 1 || !maps.Equal(res.Errors, want) || res.TTFT.Count != 4 {
		t.Errorf("got %+v, %v; want errors %v", res, err, want)
	}
}

func TestNobodyListens(t *testing.T) {
	url := "http://" + porttest.Address(t)
	report, err := Run(t.Context(), Config{URL: url, Models: []string{"A", "B"}, File: traceFile, Speed: 100})
	if err == nil || !strings.Contains(err.Error(), "is the daemon at "+url) || len(report.Results) != 1 ||
		report.Results[0].Errors["connect"] < giveUpAfter {
		t.Errorf("got %v, %+v", err, report)
	}
}

func TestCancelOverHTTP(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // other bodies are cut by the cancel
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n")
		w.(http.Flusher).Flush()
		cancel()
		<-gone
	}))
	defer s.Close()
	defer close(gone)
	start := time.Now()
	report, err := Run(ctx, Config{URL: s.URL, Models: []string{"A", "B"}, File: traceFile, Speed: .01})
	if !errors.Is(err, context.Canceled) || time.Since(start) > 10*time.Second || len(report.Results) != 1 ||
		report.Results[0].Answered != 0 {
		t.Errorf("after %v: %v, %+v", time.Since(start), err, report)
	}
}

func TestConfigErrors(t *testing.T) {
	good := Config{URL: "http://127.0.0.1:1", Models: []string{"A"}, File: "none"}
	f := func(change func(*Config), want string) {
		t.Helper()
		c := good
		change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(func(c *Config) { c.URL = "127.0.0.1:8080" }, "give one like http://127.0.0.1:8080")
	f(func(c *Config) { c.URL = "" }, "give one like")
	f(func(c *Config) { c.URL = "ftp://x" }, "give one like")
	f(func(c *Config) { c.Models = nil }, "no model named")
	f(func(c *Config) { c.Models = []string{"A", ""} }, "no model named")
	f(func(c *Config) { c.Speed = -1 }, "speed -1 is not between")
	f(func(c *Config) { c.Speed = math.NaN() }, "speed NaN is not between")
	f(func(c *Config) { c.Limit = -1 }, "limit is negative; 0 takes the default")
	f(func(c *Config) { c.MaxInFlight = -1 }, "max in flight is negative")
	f(func(c *Config) { c.Grace = -1 }, "grace is negative")
	f(func(c *Config) {}, "none: no such file or directory; give a file of JSON lines")
}
