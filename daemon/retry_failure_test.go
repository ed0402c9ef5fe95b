package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// completion is an answer that the router counts as served.
const completion = `{"id":"cmpl-1","object":"text_completion","model":"sim","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`

// fakeWorker is a worker whose /v1/completions the test writes itself.
func fakeWorker(t *testing.T, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/metrics", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/kv_event_sources", http.NotFound) // as before vLLM 0.31
	mux.HandleFunc("/weight_info", http.NotFound)
	mux.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
	})
	mux.HandleFunc("/", serve)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestBodyAndHeadersReachTheWorkerUnchanged(t *testing.T) {
	var body, path string
	var header http.Header
	w := fakeWorker(t, func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body, path, header = string(b), r.URL.RequestURI(), r.Header
		rw.Header().Set("X-From-Worker", "yes")
		io.WriteString(rw, completion)
	})
	r := start(t, settings("roundrobin", w.URL), 1)
	const odd = "{ \"model\":\"sim\",\"odd\\u0041\" : [1e999,  {\"x\":\"\\ud83d\\ude00\"}], \"prompt\":\"\\n\"}\n"
	s := r.do("POST", "/v1/completions?a=b%2Fc", odd, "X-Mine", "1", "Te", "trailers", "X-Warmpath-Explain", "1")
	if body != odd || path != "/v1/completions?a=b%2Fc" {
		t.Errorf("the worker got %q at %q", body, path)
	}
	if header.Get("X-Mine") != "1" || header.Get("Te") != "" || header.Get("X-Warmpath-Explain") != "" || header.Get("Accept-Encoding") != "identity" {
		t.Errorf("the worker got the headers %v", header)
	}
	if s.header.Get("X-From-Worker") != "yes" {
		t.Errorf("the client got the headers %v", s.header)
	}
	r.do("GET", "/v1/any/other%20path", "")
	if path != "/v1/any/other%20path" {
		t.Errorf("another path arrived as %q", path)
	}
}

func TestDyingWorkersCostNoUnansweredRequest(t *testing.T) {
	f := sims(t, 4, vllmsim.Config{})
	r := start(t, settings("roundrobin", f.URLs()...), 4)
	for _, mode := range []string{vllmsim.FaultDie, vllmsim.Fault503, vllmsim.FaultReset} {
		if err := f[0].SetFault(vllmsim.Fault{Mode: mode}); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":2}`); s.status != 200 {
				t.Fatalf("%s: request %d: %d %v %s", mode, i, s.status, s.err, s.body)
			}
		}
		if err := f[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultNone}); err != nil {
			t.Fatal(err)
		}
		r.waitUp(4)
	}
	eventually(t, "nothing in flight", func() bool { return r.inFlight() == 0 })
}

func (r *running) inFlight() (n int) {
	for _, p := range r.describe() {
		for _, w := range p.Workers {
			n += w.InFlight
		}
	}
	return n
}

func TestStreamIsPassedOnAsItComes(t *testing.T) {
	step := make(chan struct{})
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(rw, "data: {\"choices\":[{\"index\":0,\"text\":\"%d\"}]}\n\n", i)
			rw.(http.Flusher).Flush()
			<-step
		}
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	resp, err := testClient.Post("http://"+r.Addr()+"/v1/completions", "application/json", strings.NewReader(`{"stream":true,"prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	br := bufio.NewReader(resp.Body)
	for i := range 3 { // each line arrives while the worker waits: nothing is buffered
		if l, err := br.ReadString('\n'); l != fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"text\":\"%d\"}]}\n", i) {
			t.Fatalf("line %d is %q, %v", i, l, err)
		}
		br.ReadString('\n')
		step <- struct{}{}
	}
}

func TestClientThatLeavesMidStreamFreesTheWorker(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{Speed: 1})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	for range 8 {
		ctx, cancel := context.WithCancel(context.Background())
		req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+r.Addr()+"/v1/completions",
			strings.NewReader(`{"model":"sim","prompt":"x","max_tokens":20000,"stream":true}`))
		resp, err := testClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.ReadFull(resp.Body, make([]byte, 10))
		cancel()
		resp.Body.Close()
	}
	eventually(t, "the worker idle", func() bool { s := f[0].Stats(); return s.Running == 0 && s.Waiting == 0 && r.inFlight() == 0 })
}

func TestDrainCutsNoStream(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{Speed: 1})
	r := start(t, settings("prefixaware", f.URLs()...), 2)
	var wg sync.WaitGroup
	var done, began atomic.Int32
	for i := range 50 {
		wg.Go(func() {
			resp, err := (&http.Client{Timeout: 30 * time.Second}).Post("http://"+r.Addr()+"/v1/completions", "application/json",
				strings.NewReader(fmt.Sprintf(`{"model":"sim","prompt":"%d","max_tokens":60,"stream":true}`, i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			began.Add(1)
			b, err := io.ReadAll(resp.Body)
			if err != nil || !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
				t.Errorf("stream %d ended with %v: %.80q", i, err, b)
				return
			}
			done.Add(1)
		})
	}
	eventually(t, "50 streams open", func() bool { return began.Load() == 50 })
	if err := r.stop(); err != nil {
		t.Errorf("drain: %v", err)
	}
	wg.Wait()
	if done.Load() != 50 {
		t.Errorf("%d of 50 streams ended well", done.Load())
	}
}

func TestOddURLsHarmNoWorker(t *testing.T) {
	var path string
	w := fakeWorker(t, func(_ http.ResponseWriter, r *http.Request) { path = r.RequestURI })
	r := start(t, settings("prefixaware", w.URL), 1)
	f := func(target string, status int, arrives bool) {
		t.Helper()
		path = ""
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", target)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		resp.Body.Close()
		if resp.StatusCode != status || (path != "") != arrives {
			t.Errorf("%s: %d, the worker got %q; want %d, arrives %v", target, resp.StatusCode, path, status, arrives)
		}
	}
	f("/v1/x%20y?q=%2F%20", 200, true)
	f("/v1/x%2Fy", 400, false)
	f("/v1/../sim/stats", 400, false)
	f("/v1/%2e%2E/sim", 400, false)
	for range 10 {
		f("/v1/%zz", 400, false)
	}
	if s := r.describe()[0].Workers[0]; s.State != "up" || strings.Contains(s.LastError, "127.0.0.1") {
		t.Errorf("the worker is %s: %q", s.State, s.LastError)
	}
}

func TestReadyShowsClientsNoAddress(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, settings("prefixaware", f.URLs()...), 1)
	if err := f[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultDie}); err != nil {
		t.Fatal(err)
	}
	r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x"}`)
	for _, url := range []string{"http://" + r.Addr() + "/ready", "http://" + r.AdminAddr() + "/api/v1/pools"} {
		if s := do(t, "GET", url, ""); strings.Contains(s.body, strings.TrimPrefix(f[0].URL(), "http://")) {
			t.Errorf("%s shows the worker's address: %s", url, s.body)
		}
	}
}
