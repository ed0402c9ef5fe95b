package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/pair"
)

// TestModelsThatOnlyPrefillersList: a model that no worker lists which answers clients, and a name that leads to it, are
// not in the list of models. A request for one is refused at once, short or long, and reaches no worker.
func TestModelsThatOnlyPrefillersList(t *testing.T) {
	t.Parallel()
	for _, name := range pair.Connectors() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const sim, lone = `{"id":"sim","object":"model"}`, `{"id":"lone","object":"model"}`
			p, d := newSpeaker(t, sim, lone), newSpeaker(t, sim)
			p.says(200, "application/json", completion)
			d.says(200, "application/json", completion)
			toml := strings.Replace(settings("prefixaware", p.url, d.url), "[[pools.workers]]", fmt.Sprintf("[pools.disaggregation]\n"+
				"connector = %q\nrule = \"threshold\"\nthreshold = 200\n[[pools.workers]]", name), 1)
			toml = strings.Replace(toml, "id = \"w1\"\n", "id = \"w1\"\nrole = \"prefill\"\n", 1)
			toml = strings.Replace(toml, "id = \"w2\"\n", "id = \"w2\"\nrole = \"decode\"\n", 1)
			r := start(t, toml+"[[models]]\nname = \"alias\"\nto = [{ model = \"lone\" }]\n", 2)
			if s := r.do("GET", "/v1/models", ""); s.status != 200 || !strings.Contains(s.body, "sim") ||
				strings.Contains(s.body, "lone") || strings.Contains(s.body, "alias") {
				t.Errorf("%d %s", s.status, s.body)
			}
			for _, model := range []string{"lone", "alias"} {
				for _, words := range []int{2, 2000} {
					began := time.Now()
					s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":%q}`, model, longText("x", words)))
					if (s.status != 404 && s.status != 503) || !strings.Contains(s.body, `"message"`) || time.Since(began) > 5*time.Second {
						t.Errorf("%s: after %v: %d %s", model, time.Since(began), s.status, s.body)
					}
				}
			}
			for _, w := range []*speaker{p, d} {
				w.mu.Lock()
				if len(w.asked) > 0 {
					t.Errorf("a worker was asked: %.200q", w.asked)
				}
				w.mu.Unlock()
			}
		})
	}
}
