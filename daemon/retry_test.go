package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/vllmsim"
)

// TestLastWordsOfADyingWorkerAreRetried: what vLLM 0.32 answers on its way out (recorded under testdata/realvllm).
func TestLastWordsOfADyingWorkerAreRetried(t *testing.T) {
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
	f(`{"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}}`, "up", 200)
	f(`{"error":{"message":"your prompt made me fail","type":"InternalServerError","param":null,"code":500}}`, "up", 500)
}

// TestWorkersLeftOutOfTheChoiceAreAskedLast: a worker in slow start is in few choices, and in every last resort.
func TestWorkersLeftOutOfTheChoiceAreAskedLast(t *testing.T) {
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
	if n := r.state.Load().pools[0].workers.Up(time.Now()); n == 0 {
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
