package daemon

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestEveryFormOfPrompt: whatever form a prompt has, its request is routed by its prefix, explained, counted by the limits
// of its key, salted, and split between prefiller and decoder.
func TestEveryFormOfPrompt(t *testing.T) {
	t.Parallel()
	ids := strings.TrimSuffix(strings.Repeat("1234,5678,", 1000), ",")
	text := strings.Repeat("the same few words. ", 400)
	message := `{"role":"user","content":"` + text + `"}`
	forms := []struct {
		about, path, body string
		alone             bool // a decoder serves it alone: nobody knows what its prompts have in common with one another
	}{
		{about: "a chat", path: "/v1/chat/completions", body: `{"model":"sim","max_tokens":9,"messages":[` + message + `]}`},
		{about: "a chat with its ids", path: "/v1/chat/completions", body: `{"model":"sim","max_tokens":9,"messages":[` + message + `],"kv_transfer_params":{"prompt_token_ids":[` + ids + `]}}`},
		{about: "a batch of one chat", path: "/v1/chat/completions/batch", body: `{"model":"sim","max_tokens":9,"messages":[[` + message + `]]}`},
		{about: "a batch of chats", path: "/v1/chat/completions/batch", body: `{"model":"sim","max_tokens":9,"messages":[[` + message + `],[` + message + `]]}`, alone: true},
		{about: "ids", path: "/v1/completions", body: `{"model":"sim","max_tokens":9,"prompt":[` + ids + `]}`},
		{about: "ids in a list", path: "/v1/completions", body: `{"model":"sim","max_tokens":9,"prompt":[[` + ids + `]]}`},
		{about: "lists of ids", path: "/v1/completions", body: `{"model":"sim","max_tokens":9,"prompt":[[` + ids + `],[` + ids + `]]}`, alone: true},
		{about: "ids in, ids out", path: "/inference/v1/generate", body: `{"model":"sim","token_ids":[` + ids + `],"sampling_params":{"max_tokens":9}}`},
		{about: "ids by SageMaker's door", path: "/invocations", body: `{"model":"sim","max_tokens":9,"prompt":[` + ids + `]}`},
	}

	whole := func() (*atomic.Int64, *atomic.Pointer[string], string) {
		var n atomic.Int64
		var last atomic.Pointer[string]
		return &n, &last, fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			body := string(b)
			n.Add(1)
			last.Store(&body)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"request_id":"x","choices":[{"index":0,"token_ids":[7],"text":"x","message":{"role":"assistant","content":"x"},"finish_reason":"length"}],`+
				`"kv_transfer_params":{"remote_host":"h"}}`)
		}).URL
	}
	a, sent, first := whole()
	b, _, second := whole()
	r := start(t, limited(t, "team", "tokens_per_minute = 100000000\ncache_salt = true\nexplain = true")+settings("prefixaware", first, second), 2)
	p, _, prefiller := whole()
	_, _, decoder := whole()
	split := start(t, strings.Replace(withPool(settings("prefixaware", prefiller, decoder),
		`disaggregation = { connector = "nixl", rule = "threshold", threshold = 500 }`), "id = \"w1\"\n", "id = \"w1\"\nrole = \"prefill\"\n", 1), 2)

	for i, f := range forms {
		body := strings.Replace(f.body, `"model":"sim"`, fmt.Sprintf(`"model":"sim","priority":%d`, i), 1)
		before := a.Load()*1000 + b.Load()
		had, used, _ := r.taken("team")
		cold := r.as("team", "POST", f.path, body, "X-Warmpath-Explain", "1")
		at := a.Load()*1000 + b.Load() - before
		waittest.Until(t, f.about+" has ended", func() bool { n, _, _ := r.taken("team"); return n == had+1 })
		if _, now, _ := r.taken("team"); now-used < 1500 || now-used > 6000 {
			t.Errorf("%s: %.0f tokens are counted", f.about, now-used)
		}
		warm := r.as("team", "POST", f.path, body, "X-Warmpath-Explain", "1")
		if cold.status != 200 || warm.status != 200 || a.Load()*1000+b.Load()-before != 2*at {
			t.Errorf("%s: %d %s, then %d; the second went elsewhere", f.about, cold.status, cold.body, warm.status)
		}
		if got := warm.header.Get("X-Warmpath-Matched-Blocks"); got == "" || got == "0" || warm.header.Get("X-Warmpath-Reason") == "" {
			t.Errorf("%s: %s blocks are matched, the reason is %q", f.about, got, warm.header.Get("X-Warmpath-Reason"))
		}
		if salted := sent.Load(); at >= 1000 && saltIn(t, *salted) == "" {
			t.Errorf("%s: no salt", f.about)
		}

		was := p.Load()
		if s := split.do("POST", f.path, f.body); s.status != 200 || strings.Contains(s.body, "remote_host") || (p.Load()-was == 1) == f.alone {
			t.Errorf("%s, split: %d %s, and %d prefills", f.about, s.status, s.body, p.Load()-was)
		}
	}
}
