package daemon

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestLastWordsOfADyingWorkerAreRetried: what vLLM 0.32 answers on its way out (recorded under testdata/real/vllm).
func TestLastWordsOfADyingWorkerAreRetried(t *testing.T) {
	t.Parallel()
	f := func(body, state string, status int) {
		t.Helper()
		dying := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(500)
			io.WriteString(rw, body)
		})
		s := sims(t, 1, vllmsim.Config{})
		r := start(t, settings("roundrobin", dying.URL, s[0].URL()), 2)
		for range 4 {
			if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":2}`); s.status != 200 && s.status != status {
				t.Errorf("%.40s: %d %s", body, s.status, s.body)
			}
		}
		if w := r.describe()[0].Workers[0]; w.State != state {
			t.Errorf("%.40s: the worker is %s; want %s", body, w.State, state)
		}
	}
	f(`{"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","param":null,"code":500}}`, "draining", 200)
	f(`{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}}`, "draining", 200)
	f(`{"error":{"message":"your prompt made me fail","type":"InternalServerError","param":null,"code":500}}`, "up", 500)
}

// TestWorkersLeftOutOfTheChoiceAreAskedLast: a worker in slow start is in few choices, and in every last resort.
func TestWorkersLeftOutOfTheChoiceAreAskedLast(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, withPool(settings("roundrobin", f.URLs()...), `slow_start = "60s"`), 2)
	fault := func(i int, mode string) {
		t.Helper()
		if err := f[i].SetFault(vllmsim.Fault{Mode: mode}); err != nil {
			t.Fatal(err)
		}
	}
	fault(0, vllmsim.FaultDie)
	eventually(t, "one down", func() bool { return r.describe()[0].Workers[0].State == "down" })
	fault(0, vllmsim.FaultNone)
	r.waitUp(2)
	for _, mode := range []string{vllmsim.Fault503, vllmsim.FaultReset} {
		fault(1, mode)
		for range 4 {
			if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":2}`); s.status != 200 {
				t.Fatalf("%s: %d %s", mode, s.status, s.body)
			}
		}
	}
	eventually(t, "nothing in flight", func() bool { return r.inFlight() == 0 })
	if n := r.state.Load().pools[0].route.Workers.Up(time.Now()); n == 0 {
		t.Error("no worker is up")
	}
}

// TestKeepAliveCommentsAreNotHeldBack: vLLM's --sse-keep-alive-interval is for what stands between it and the client.
func TestKeepAliveCommentsAreNotHeldBack(t *testing.T) {
	step := make(chan struct{})
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, ": keep-alive\n\n")
		rw.(http.Flusher).Flush()
		<-step
		io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\ndata: [DONE]\n\n")
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	resp, err := testClient.Post("http://"+r.Addr()+"/v1/completions", "application/json", strings.NewReader(streamed))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 14)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != ": keep-alive\n\n" {
		t.Fatalf("%q, %v", first, err)
	}
	close(step)
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(b), "data: [DONE]\n\n") {
		t.Errorf("%q, %v", b, err)
	}
}

// TestWorkerThatAnswersOnly500 stands beside a good one: no client sees its 500.
func TestWorkerThatAnswersOnly500(t *testing.T) {
	t.Parallel()
	const words = `{"error":{"message":"CUDA error: an illegal memory access was encountered","type":"InternalServerError","param":null,"code":500}}`
	for _, strategy := range []string{"roundrobin", "prefixaware"} {
		bad := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(500)
			io.WriteString(rw, words)
		})
		good := sims(t, 1, vllmsim.Config{})
		r := start(t, strings.Replace(fromDefaults("", bad.URL, good[0].URL()), "roundrobin", strategy, 1), 2)
		failed := 0
		for i := range 26 {
			if s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"x%d","max_tokens":2}`, i)); s.status != 200 {
				failed++
			}
		}
		if w := r.describe()[0].Workers[0]; failed > 0 || w.State != "ejected" {
			t.Errorf("%s: %d of 26 requests failed, the worker is %s; want 0 and ejected", strategy, failed, w.State)
		}
		_ = r.stop()
	}
}

// TestRequestsThatFailEverywhereAreNotMultiplied: they get the worker's own words, and the fleet at most a few of
// them twice.
func TestRequestsThatFailEverywhereAreNotMultiplied(t *testing.T) {
	const words = `{"error":{"message":"your prompt made me fail","type":"InternalServerError","param":null,"code":500}}`
	var asked atomic.Int32
	serve := func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked.Add(1)
		if strings.Contains(string(b), "poison") {
			rw.WriteHeader(500)
			io.WriteString(rw, words)
			return
		}
		io.WriteString(rw, `{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}`)
	}
	r := start(t, settings("roundrobin", fakeWorker(t, serve).URL, fakeWorker(t, serve).URL, fakeWorker(t, serve).URL), 3)
	const n = 120
	for i := range n {
		prompt := "fine"
		if i%4 == 0 {
			prompt = "poison"
		}
		s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"`+prompt+`"}`)
		if prompt == "poison" && (s.status != 500 || s.body != words) || prompt == "fine" && s.status != 200 {
			t.Fatalf("request %d, %s: %d %s", i, prompt, s.status, s.body)
		}
	}
	t.Logf("%d requests, %d asked of workers", n, asked.Load())
	if over := asked.Load() - n; over > n/10 {
		t.Errorf("%d of %d requests were asked twice; want at most %d", over, n, n/10)
	}
}

// TestLateFirstBytesEject: a worker that hangs costs its requests first_byte_retry; after five in a row it gets a
// trial now and then.
func TestLateFirstBytesEject(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, withPool(settings("roundrobin", f.URLs()...), `first_byte_retry = "1s"`), 2)
	if err := f[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultStall}); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"x","stream":%v}`, i%2 == 0), "X-Warmpath-Explain", "1")
		if s.status != 200 || s.err != nil {
			t.Fatalf("request %d: %d %v %s", i, s.status, s.err, s.body)
		}
	}
	w := r.state.Load().pools[0].route.Workers.Stats(time.Now())[0]
	if w.Ejections == 0 || w.Broken > 8 {
		t.Errorf("%d ejections, %d requests were late; want one after 5, and few trials", w.Ejections, w.Broken)
	}
	eventually(t, "nothing in flight", func() bool { return r.inFlight() == 0 && r.front.Stats().InFlight == 0 })
}

// TestNobodyIsLeft: only a request that has somewhere to go is said, and counted, to go there.
func TestNobodyIsLeft(t *testing.T) {
	down := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	r, lines := startLogged(t, settings("roundrobin", fakeWorker(t, down).URL), 1)
	if s := r.do("POST", "/v1/completions", short, "X-Request-Id", "doomed"); s.status != 503 {
		t.Fatalf("%d %s; want 503", s.status, s.body)
	}
	l := lines.wait(t, "no worker is left for the request: its client gets an error")
	if l["id"] != "doomed" || l["pool"] != "main" || l["reason"] != "no_answer" || l["level"] != "WARN" {
		t.Errorf("%v; want id, pool and reason, as a warning", l)
	}
	moves := lines.with(t, "request goes to the next worker")
	for _, l := range moves {
		if l["next"] == nil || l["id"] != "doomed" {
			t.Errorf("%v; want the next worker", l)
		}
	}
	if got := r.metric("warmpath_retries_total"); len(moves) != 1 || // a silent worker is asked once more
		got != float64(len(moves)) {
		t.Errorf("%d moves are logged, and %v counted", len(moves), got)
	}
}
