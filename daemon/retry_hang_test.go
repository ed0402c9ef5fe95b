package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestHangingEngineLosesItsPrompts: the engine that holds a prompt hangs, while its server answers /health and begins
// each answer. Clients that gave up on it find another worker when they repeat their requests.
func TestHangingEngineLosesItsPrompts(t *testing.T) {
	t.Parallel()
	var hung atomic.Pointer[string]
	worker := func(name string) string {
		return fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // else the server does not see that the router leaves
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Engine", name)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			if h := hung.Load(); h != nil && *h == name {
				<-r.Context().Done()
				return
			}
			io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"text\":\"x\"}]}\n\ndata: [DONE]\n\n")
		}).URL
	}
	r := start(t, settings("prefixaware", worker("a"), worker("b")), 2)
	body := `{"model":"sim","stream":true,"prompt":"` + strings.Repeat("the same prompt ", 2000) + `"}`
	ask := func(patience time.Duration) (engine string) {
		req, err := http.NewRequest("POST", "http://"+r.Addr()+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		resp, err := (&http.Client{Timeout: patience}).Do(req)
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.Header.Get("X-Engine")
	}
	holder := ask(time.Minute)
	if again := ask(time.Minute); holder == "" || again != holder {
		t.Fatalf("the prompt went to %q and then to %q", holder, again)
	}
	eventually(t, "both answers have ended", func() bool { return r.inFlight() == 0 })
	hung.Store(&holder)
	var clients sync.WaitGroup
	for range 5 {
		clients.Go(func() { ask(10500 * time.Millisecond) })
	}
	clients.Wait()
	eventually(t, "repeats get an answer", func() bool { got := ask(time.Second); return got != "" && got != holder })
	for _, w := range r.describe()[0].Workers {
		if strings.Contains(w.Why, "no byte of any answer in 10 s") != (w.State == "ejected") {
			t.Errorf("%s is %s: %q", w.ID, w.State, w.Why)
		}
	}
}

// TestHungWorkerIsTriedByTheRouter: a worker takes requests and never answers, while its health is good. Once that is known no
// client waits there: the router itself asks it for a token, one request at a time, and has clients go there again when
// one came.
func TestHungWorkerIsTriedByTheRouter(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	var clients, tries, atOnce, most atomic.Int64
	hung := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // else the server does not see that the router leaves
		own := strings.Contains(string(body), `"max_tokens":1,`)
		if own {
			tries.Add(1)
			most.Store(max(most.Load(), atOnce.Add(1)))
			defer atOnce.Add(-1)
		} else {
			clients.Add(1)
		}
		if hangs.Load() {
			<-r.Context().Done()
			return
		}
		io.WriteString(w, completion)
	})
	good := fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, completion) })
	r := start(t, settings("roundrobin", hung.URL, good.URL), 2)
	ask := func(patience time.Duration) time.Duration {
		began := time.Now()
		resp, err := (&http.Client{Timeout: patience}).Post("http://"+r.Addr()+"/v1/completions", "application/json",
			strings.NewReader(`{"model":"sim","stream":true,"prompt":"x"}`))
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return time.Since(began)
	}
	hangs.Store(true)
	var waiting sync.WaitGroup
	for range 10 {
		waiting.Go(func() { ask(10500 * time.Millisecond) })
	}
	waiting.Wait()
	eventually(t, "the hung worker is ejected", func() bool { return r.describe()[0].Workers[0].State == "ejected" })
	before := clients.Load()
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if took := ask(time.Minute); took > 2*time.Second {
			t.Fatalf("a client has waited %v", took)
		}
	}
	if n := clients.Load() - before; n != 0 || tries.Load() < 2 || most.Load() != 1 {
		t.Errorf("the hung worker got %d clients' requests and %d of the router, %d at once; want 0, 2 or more, 1", n, tries.Load(),
			most.Load())
	}
	if why := r.describe()[0].Workers[0].Why; !strings.Contains(why, "nor a token for the router itself") {
		t.Errorf("it is ejected since %q", why)
	}
	hangs.Store(false)
	eventually(t, "clients go there again", func() bool { ask(time.Minute); return clients.Load() > before })
}

// TestSlowUploadsAreNoHang: clients that leave in the midst of a large body say nothing of the worker, which waited for
// the rest of it.
func TestSlowUploadsAreNoHang(t *testing.T) {
	t.Parallel()
	idle := func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }
	a, b := fakeWorker(t, idle), fakeWorker(t, idle)
	r := start(t, withServer(settings("roundrobin", a.URL, b.URL), "buffer_body_bytes = 65536"), 2)
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() {
			c, err := net.Dial("tcp", r.Addr())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprint(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
				"Content-Length: 200000\r\n\r\n"+`{"model":"sim","stream":true,"prompt":"`+strings.Repeat("x", 70000))
			for range 21 {
				time.Sleep(500 * time.Millisecond)
				io.WriteString(c, "more of the prompt")
			}
		})
	}
	clients.Wait()
	eventually(t, "all requests have ended", func() bool { return r.inFlight() == 0 })
	for _, w := range r.describe()[0].Workers {
		if w.State != "up" {
			t.Errorf("%s is %s: %q", w.ID, w.State, w.Why)
		}
	}
}
