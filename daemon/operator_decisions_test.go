package daemon

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// decided asks the admin listener for a path and reads its JSON.
func (r *running) decided(path string, v any) (status int, text string) {
	r.t.Helper()
	resp, err := http.Get("http://" + r.AdminAddr() + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode == 200 {
		if err := json.Unmarshal(b, v); err != nil {
			r.t.Fatalf("%s: %v", b, err)
		}
	}
	return resp.StatusCode, string(b)
}

// TestEveryRequestIsExplainedAfterwards: who served it, what the others would have cost, who was skipped and why; those
// that were refused too. No prompt and no key is told.
func TestEveryRequestIsExplainedAfterwards(t *testing.T) {
	t.Setenv("WARMPATH_TEST_KEY", "sesame-sesame")
	urls := append(sims(t, 2, vllmsim.Config{}).URLs(), "http://127.0.0.1:1")
	r := start(t, settings("prefixaware", urls...)+"[[keys]]\nname = \"team\"\nenv = \"WARMPATH_TEST_KEY\"\n", 2)
	const prompt = "a secret prompt of some length, which nobody may ever read again in a page or a log of this router; it is long"
	ask := func(id, key, model string) int {
		t.Helper()
		return r.do("POST", "/v1/completions", `{"model":"`+model+`","prompt":"`+prompt+`","max_tokens":3}`,
			"X-Request-Id", id, "Authorization", "Bearer "+key).status
	}
	if got := ask("good", "sesame-sesame", "sim"); got != 200 {
		t.Fatal(got)
	}
	ask("unknown-model", "sesame-sesame", "another")
	ask("wrong-key", "not-the-key-at-all", "sim")
	var d decisions.Decision
	f := func(id string, status int) string {
		t.Helper()
		d = decisions.Decision{}
		code, text := r.decided("/api/v1/decisions/"+id, &d)
		if code != 200 || d.ID != id || d.Status != status || d.Open || d.Path != "/v1/completions" {
			t.Errorf("%s: %d %s", id, code, text)
		}
		if strings.Contains(text, "secret prompt") || strings.Contains(text, "sesame") || strings.Contains(text, "not-the-key") {
			t.Errorf("it tells too much: %s", text)
		}
		return text
	}
	text := f("good", 200)
	if d.Worker == "" || d.Reason == "" || d.Key != "team" || d.Pool != "main" || d.Module == "" || !d.Usage.Known || d.FirstByte <= 0 {
		t.Errorf("%s", text)
	}
	if len(d.Candidates) != 3 || d.Candidates[0].Worker != d.Worker || d.Candidates[1].Cost <= 0 ||
		!strings.HasPrefix(d.Candidates[2].Skipped, "down") || len(d.Frame) == 0 {
		t.Errorf("%s", text)
	}
	if text := f("unknown-model", 503); d.End == "" || len(d.Candidates) != 3 || d.Candidates[0].Skipped != "does not list the model" {
		t.Errorf("%s", text)
	}
	if text := f("wrong-key", 401); d.End == "" || d.Key != "" {
		t.Errorf("%s", text)
	}
	var list []decisions.Decision
	r.decided("/api/v1/decisions?limit=2", &list)
	if len(list) != 2 || list[0].ID != "wrong-key" || list[1].ID != "unknown-model" {
		t.Errorf("%+v", list)
	}
	if code, text := r.decided("/api/v1/decisions?limit=x", nil); code != 400 {
		t.Errorf("%d %s", code, text)
	}
	if code, text := r.decided("/api/v1/decisions/a%20b%2Fc", nil); code != 404 || !strings.Contains(text, "X-Request-Id has the id that took its place") {
		t.Errorf("an id that no request can have: %d %s", code, text)
	}
	if code, text := r.decided("/api/v1/decisions/nobody", nil); code != 404 || !strings.Contains(text, "decisions_bytes") ||
		!strings.Contains(text, "before an upgrade") || !strings.Contains(text, "before a restart") || !strings.Contains(text, "--log FILE") {
		t.Errorf("%d %s", code, text)
	}
}

// TestDecisionsAreSeenLive: a viewer sees a stream within a second, while it still runs, and its end.
func TestDecisionsAreSeenLive(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")
		rw.(http.Flusher).Flush()
		<-finish
		io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"two\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	r := start(t, settings("prefixaware", w.URL), 1)
	req, _ := http.NewRequest("GET", "http://"+r.AdminAddr()+"/api/v1/decisions", nil)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := make(chan decisions.Decision, 100)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var told struct{ Decisions []decisions.Decision }
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &told) == nil {
				for _, d := range told.Decisions {
					events <- d
				}
			}
		}
	}()
	answered := make(chan int)
	go func() {
		answered <- r.do("POST", "/v1/chat/completions", `{"model":"sim","stream":true,"messages":[{"role":"user","content":"x"}]}`,
			"X-Request-Id", "live").status
	}()
	next := func(what string) (d decisions.Decision) {
		t.Helper()
		select {
		case d = <-events:
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was told of " + what)
		}
		return d
	}
	if d := next("the decision"); d.ID != "live" || !d.Open || len(d.Candidates) != 1 || d.Worker != d.Candidates[0].Worker {
		t.Errorf("%+v", d)
	}
	close(finish)
	if d := next("the end"); d.ID != "live" || d.Open || d.Status != 200 {
		t.Errorf("%+v", d)
	}
	if got := <-answered; got != 200 {
		t.Error(got)
	}
	_ = r.stop() // ends the viewer too
	for range events {
	}
}
