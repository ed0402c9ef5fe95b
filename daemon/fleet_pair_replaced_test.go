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
