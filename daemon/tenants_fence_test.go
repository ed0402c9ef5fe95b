package daemon

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestFencesOfKeys: over HTTP nothing that a key with workers of its own sends reaches another's worker: by no endpoint,
// session or strategy, and not while every third answer of its own workers is 503. Keys whose workers are down, or whose
// labels nobody has, learn which of the two it is.
func TestFencesOfKeys(t *testing.T) {
	t.Parallel()
	var foreign, fails, served atomic.Int64
	worker := func(of string) string {
		return fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			for _, who := range []string{"alice", "bob"} {
				if who != of && strings.Contains(string(body), who+" says") {
					foreign.Add(1)
				}
			}
			served.Add(1)
			if fails.Add(1)%3 == 0 {
				w.WriteHeader(503)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"id":"x-1","object":"text_completion","model":"sim","choices":[{"index":0,"text":"x","finish_reason":"stop"}]}`)
		}).URL
	}
	dir, keys := t.TempDir(), ""
	for name, labels := range map[string]string{"alice": "for=alice", "bob": "for=bob", "carol": "for=carol", "dave": "for=dave"} {
		write(t, filepath.Join(dir, name), name+"-secret")
		keys += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\nworkers = %q\nexplain = true\n", name, filepath.Join(dir, name), labels)
	}
	text := keys + "[sessions]\nidentity = [\"X-Session-Id\"]\nbind = \"always\"\n" +
		settings("prefixaware", worker("alice"), worker("alice"), worker("bob"), "http://127.0.0.1:1")
	for i, of := range []string{"alice", "alice", "bob", "dave"} {
		id := fmt.Sprintf("id = \"w%d\"\n", i+1)
		text = strings.Replace(text, id, id+fmt.Sprintf("labels = { for = %q }\n", of), 1)
	}
	r := start(t, text, 3)
	for i := range 120 {
		who := []string{"alice", "bob"}[i%2]
		say := func(path, body string) {
			s := r.as(who, "POST", path, strings.ReplaceAll(body, "TEXT", who+" says "+fmt.Sprint(i)),
				"X-Session-Id", fmt.Sprint(i%7), "X-Warmpath-Explain", "1")
			if s.status != 200 && s.status != 503 && s.status != 429 && s.status != 424 { // 424 is SageMaker's 503
				t.Fatalf("%s at %s: %d %s", who, path, s.status, s.body)
			}
			if list := s.header.Get("X-Warmpath-Candidates"); who == "alice" && strings.Contains(list, "w3") ||
				who == "bob" && strings.Contains(list, "w1") {
				t.Errorf("%s learns of foreign workers: %s", who, list)
			}
		}
		say("/v1/completions", `{"model":"sim","prompt":"TEXT"}`)
		say("/v1/chat/completions", `{"model":"sim","messages":[{"role":"user","content":"TEXT"}]}`)
		say("/tokenize", `{"model":"sim","prompt":"TEXT"}`)
		say("/v1/files", `{"purpose":"TEXT"}`)
		say("/endpoints/main/invocations", `{"model":"sim","prompt":"TEXT"}`)
	}
	if n := foreign.Load(); n > 0 || served.Load() < 300 {
		t.Errorf("of %d requests %d came to a foreign worker", served.Load(), n)
	}
	if s := r.as("carol", "POST", "/v1/completions", `{"model":"sim","prompt":"x"}`); s.status != 503 ||
		!strings.Contains(s.body, "no_worker_for_key") || s.header.Get("Retry-After") != "" {
		t.Errorf("labels that nobody has: %d %v %s", s.status, s.header, s.body)
	}
	if s := r.as("dave", "POST", "/v1/completions", `{"model":"sim","prompt":"x"}`); s.status != 503 ||
		!strings.Contains(s.body, "keys.workers") || s.header.Get("Retry-After") == "" {
		t.Errorf("a worker that is down: %d %v %s", s.status, s.header, s.body)
	}
	if s := r.as("alice", "POST", "/endpoints/nope/invocations", `{"model":"sim","prompt":"x"}`); s.status != 400 ||
		!strings.Contains(s.body, "Endpoint nope not found") || s.header.Get(errorField) != "ValidationError" {
		t.Errorf("an endpoint that is no pool: %d %v %s", s.status, s.header, s.body)
	}
}
