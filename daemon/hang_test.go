package daemon

import (
	"io"
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
