package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/pair"
)

// TestAPrefillerIsReplaced: a prefiller gets another address under its id, as a pod of a StatefulSet does, while a prompt is
// on its way to it, or just before. The prompt waits for the first health check of the one that has come, which computes it.
func TestAPrefillerIsReplaced(t *testing.T) {
	t.Parallel()
	for _, name := range pair.Connectors() {
		for _, when := range []string{"before", "on its way"} {
			if c := pair.Connector(name); c.Within() && when != "before" {
				continue // the sidecar calls it
			}
			t.Run(name+", "+when, func(t *testing.T) {
				t.Parallel()
				var once sync.Once
				replace := func() {}
				r, e, _ := startConnectorWith(t, pair.Connector(name), "python 0.32", func(w http.ResponseWriter, r *http.Request) {
					once.Do(func() {
						if when != "before" {
							replace()
						}
					})
					panic(http.ErrAbortHandler) // its pod is gone
				})
				checked := time.Now().Add(time.Hour)
				twin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.Method == "POST":
						e.prefill(w, r)
					case r.URL.Path == "/v1/models":
						fmt.Fprint(w, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
					default:
						time.Sleep(time.Until(checked))
					}
				}))
				t.Cleanup(twin.Close)
				text, err := os.ReadFile(r.file)
				if err != nil {
					t.Fatal(err)
				}
				replace = func() {
					checked = time.Now().Add(100 * time.Millisecond) // of the half second that a prompt waits at least
					write(t, r.file, strings.Replace(string(text), e.first, twin.URL, 1))
					if err := r.Reload(); err != nil {
						t.Error(err)
					}
				}
				if when == "before" {
					replace()
				}
				s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":%q}`, longText(name, 2000)),
					"Authorization", "Bearer secret-key-0123456789")
				e.mu.Lock()
				defer e.mu.Unlock()
				e.refused = slices.DeleteFunc(e.refused, func(s string) bool { return s == "KV of nothing" }) // that wait was ended
				if s.status != 200 || e.handed != 1 || len(e.refused) > 0 {
					t.Errorf("%d %s; %d prompts handed over; refused: %q", s.status, s.body, e.handed, e.refused)
				}
			})
		}
	}
}

// TestPrefillersAlone: a pool whose decoders are scaled to zero holds its requests for them, as wait_empty says. Without
// that the client is told that no worker is up, and nothing of keys.
func TestPrefillersAlone(t *testing.T) {
	t.Parallel()
	l := &life{lone: true}
	l.start(t, pair.NIXL)
	l.listWorkers("d1")
	l.reload()
	ask := func() seen {
		return do(t, "POST", "http://"+l.Addr()+"/v1/completions", `{"model":"sim","max_tokens":9,"prompt":"hello"}`)
	}
	if s := ask(); s.status != 503 || !strings.Contains(s.body, `"no_worker"`) {
		t.Errorf("%d %s; want 503, no_worker", s.status, s.body)
	}
	text, err := os.ReadFile(l.file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, l.file, string(text)+"[pools.queue]\nwait_empty = \"20s\"\n")
	l.reload()
	answer := make(chan seen)
	go func() { answer <- ask() }()
	eventually(t, "the request waits", func() bool {
		return l.metric("warmpath_queue_depth") == 1
	})
	l.listWorkers()
	l.reload()
	if s := <-answer; s.status != 200 {
		t.Errorf("%d %s, %v", s.status, s.body, s.err)
	}
}
