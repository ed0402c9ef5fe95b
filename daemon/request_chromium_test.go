package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// page asks the router as a chat application does, and tells its own server what it saw. The first event of the
// stream must reach it while the worker waits to be told so.
const page = `<!doctype html><script>
(async () => {
  const seen = {};
  try {
    const r = await fetch(ROUTER + "/v1/chat/completions", {method: "POST", body: JSON.stringify({model: "sim", stream: true,
      messages: [{role: "user", content: "hello"}]}), headers: {"Content-Type": "application/json", "Authorization": "Bearer sesame-sesame",
      "X-Session-Id": "a-chat", "X-Warmpath-Explain": "1"}});
    seen.status = r.status;
    seen.id = r.headers.get("X-Request-Id");
    seen.strategy = r.headers.get("X-Warmpath-Strategy");
    const reader = r.body.getReader(), text = new TextDecoder();
    seen.text = "";
    for (let first = true; ; first = false) {
      const {done, value} = await reader.read();
      if (done) break;
      seen.text += text.decode(value, {stream: true});
      if (first) await fetch("/first", {method: "POST"});
    }
    const no = await fetch(ROUTER + "/v1/models", {headers: {"Authorization": "Bearer a-wrong-key"}});
    seen.refused = no.status;
    seen.why = (await no.json()).error.code;
    seen.ready = (await (await fetch(ROUTER + "/ready")).json()).ready;
  } catch (e) { seen.error = String(e); }
  await fetch("/result", {method: "POST", body: JSON.stringify(seen)});
})();
</script>`

// sight is what the page saw.
type sight struct {
	Status, Refused                int
	ID, Strategy, Text, Why, Error string
	Ready                          bool
}

// browse opens the page in a browser of its own and returns what the page saw.
func browse(t *testing.T, router string, first func()) sight {
	t.Helper()
	result := make(chan sight, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, strings.ReplaceAll(page, "ROUTER", fmt.Sprintf("%q", router)))
	})
	mux.HandleFunc("POST /first", func(http.ResponseWriter, *http.Request) { first() })
	mux.HandleFunc("POST /result", func(_ http.ResponseWriter, r *http.Request) {
		var s sight
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			t.Error(err)
		}
		result <- s
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	home := t.TempDir()
	browser := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+home, server.URL)
	browser.Env = append(os.Environ(), "HOME="+home)
	browser.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	var said strings.Builder
	browser.Stderr = &said
	browser.WaitDelay = 5 * time.Second
	if err := browser.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-browser.Process.Pid, syscall.SIGKILL)
		_ = browser.Wait()
	}()
	select {
	case s := <-result:
		return s
	case <-time.After(2 * time.Minute):
		_ = syscall.Kill(-browser.Process.Pid, syscall.SIGKILL)
		_ = browser.Wait()
		t.Fatalf("the page told nothing within 2 minutes:\n%s", said.String())
		return sight{}
	}
}

// TestARealBrowser: a page of another origin sends JSON with a key, reads the answer as it comes and the request's id.
func TestARealBrowser(t *testing.T) {
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no chromium: apt-get install chromium")
		}
		t.Skip("SKIPPED: there is no chromium, so no real browser calls; apt-get install chromium")
	}
	t.Setenv("WARMPATH_TEST_KEY", "sesame-sesame")
	seen := make(chan struct{}, 1)
	w := fakeWorker(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.Header().Set("Access-Control-Allow-Origin", "*") // as vLLM does
		io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")
		rw.(http.Flusher).Flush()
		select {
		case <-seen:
		case <-time.After(time.Minute):
			return // the stream breaks
		}
		io.WriteString(rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"two\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	})
	r := start(t, settings("prefixaware", w.URL)+"[[keys]]\nname = \"team\"\nenv = \"WARMPATH_TEST_KEY\"\nexplain = true\n", 1)
	s := browse(t, "http://"+r.Addr(), func() { seen <- struct{}{} })
	if s.Error != "" || s.Status != 200 || len(s.ID) != 32 || s.Strategy != "prefixaware" || !strings.HasSuffix(s.Text, "data: [DONE]\n\n") {
		t.Errorf("the page saw %+v; want 200, an id, a strategy and the whole stream", s)
	}
	if s.Refused != 401 || s.Why != "invalid_api_key" || !s.Ready {
		t.Errorf("the page saw %+v; want 401 invalid_api_key for a wrong key, and ready", s)
	}
}
