package daemon

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/tokens"
)

// report makes what the first worker reports of its cache live, without which nobody wants ids.
func (r *running) report() { r.state.Load().pools[0].route.Held.Writer(0).SetLive(true) }

// Under kvaware the ids of prompts are had from the workers, once a text, and are those that the engine reports itself.
func TestTokenIDsAreTheEngines(t *testing.T) {
	r := start(t, settings("kvaware", sims(t, 2, vllmsim.Config{}).URLs()...)+"[pools.tokens]\nbudget = \"2s\"\n", 2)
	r.report()
	f := func(path string, kind prompt.Kind, body string, first tokens.Outcome) {
		t.Helper()
		for i, outcome := range []tokens.Outcome{first, tokens.Cached} {
			if first == tokens.Given {
				outcome = first
			}
			before := r.metric("warmpath_tokens_total", fmt.Sprintf("outcome=%q", outcome))
			s := r.do("POST", path, body)
			if s.status != 200 {
				t.Fatalf("%d %s", s.status, s.body)
			}
			if got := r.metric("warmpath_tokens_total", fmt.Sprintf("outcome=%q", outcome)); got != before+1 {
				t.Errorf("%s, round %d: %v requests were %s; want one more than %v", body, i, got, outcome, before)
			}
			var reply struct {
				Prompt  []uint32 `json:"prompt_token_ids"`
				Choices []struct {
					Prompt []uint32 `json:"prompt_token_ids"`
				} `json:"choices"`
			}
			if err := json.Unmarshal([]byte(s.body), &reply); err != nil {
				t.Fatal(err)
			}
			q := new(tokens.Question)
			q.Read(kind, "sim", []byte(body))
			got, _ := r.state.Load().pools[0].asking.IDs(t.Context(), tokens.Request{Question: q, Body: []byte(body),
				Arrived: time.Now()})
			if want := append(reply.Prompt, reply.Choices[0].Prompt...); !slices.Equal(got, want) {
				t.Errorf("%s: ids %v; the engine had %v", body, got, want)
			}
		}
	}
	f("/v1/chat/completions", prompt.Chat, `{"model":"sim","return_token_ids":true,"max_tokens":3,"messages":[
		{"role":"system","content":"You know the tides."},{"role":"user","content":"When is high \u0077ater?"}]}`, tokens.Asked)
	f("/v1/completions", prompt.Completion,
		`{"model":"sim","return_token_ids":true,"max_tokens":3,"prompt":"When is high water?"}`, tokens.Asked)
	f("/v1/completions", prompt.Completion,
		`{"model":"sim","return_token_ids":true,"max_tokens":3,"prompt":[1000,1001,1002]}`, tokens.Given)
}

// Other strategies ask no worker for ids.
func TestTokenIDsAreNotAskedForByOthers(t *testing.T) {
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	r.do("POST", "/v1/chat/completions", chatBody(false, []chatMessage{{"user", "When is high water?"}}))
	if got := r.metric("warmpath_tokens_total"); got != 0 {
		t.Errorf("%v requests wanted ids; want none under prefixaware", got)
	}
	if s := fmt.Sprint(r.describe()[0].Strategy); s != "prefixaware" {
		t.Error(s)
	}
}

// What workers were asked to name in their answers is learnt, and no client sees it.
func TestAnswersTeachUnseen(t *testing.T) {
	t.Parallel()
	varies := regexp.MustCompile(`"id":"[a-z]+-[^"]*"|"created":[0-9]+|"cached_tokens":[0-9]+|"created_cache_tokens":[0-9]+`)
	learning := func(learn bool) *running {
		r := start(t, settings("kvaware", sims(t, 1, vllmsim.Config{}).URLs()...)+
			fmt.Sprintf("[pools.tokens]\nbudget = \"0s\"\nlearn = %v\n", learn), 1)
		r.report()
		return r
	}
	with, without := learning(true), learning(false)
	f := func(path, body string) {
		t.Helper()
		a, b := with.do("POST", path, body), without.do("POST", path, body)
		got, want := varies.ReplaceAllString(a.body, ""), varies.ReplaceAllString(b.body, "")
		if a.status != 200 || a.err != nil || got != want || !strings.Contains(want, "token_ids") {
			t.Errorf("%s: %d %v\n%s\nwithout learning\n%s", body, a.status, a.err, got, want)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "Transfer-Encoding"} {
			if name != "Content-Length" && a.header.Get(name) != b.header.Get(name) {
				t.Errorf("%s: %s is %q; without learning %q", body, name, a.header.Get(name), b.header.Get(name))
			}
		}
		if n := a.header.Get("Content-Length"); n != "" && n != fmt.Sprint(len(a.body)) {
			t.Errorf("%s: Content-Length %s of %d bytes", body, n, len(a.body))
		}
		again := with.metric("warmpath_tokens_total", `outcome="cached"`)
		with.do("POST", path, body)
		if got := with.metric("warmpath_tokens_total", `outcome="cached"`); got != again+1 {
			t.Errorf("%s: the answer has taught nothing", body)
		}
	}
	long := strings.Repeat("When is high water? ", 6000)
	for i, text := range []string{"When is high water?", long} {
		f("/v1/chat/completions", fmt.Sprintf(`{"max_tokens":5,"messages":[{"role":"user","content":%q}]}`, text+"a"))
		f("/v1/chat/completions", fmt.Sprintf(`{"max_tokens":1,"stream":true,"stream_options":{"include_usage":true},
			"messages":[{"role":"user","content":%q}]}`, text+"b"))
		f("/v1/completions", fmt.Sprintf(`{"max_tokens":5,"n":2,"prompt":%q}`, text+"c"))
		f("/v1/completions", fmt.Sprintf(`{"max_tokens":1,"stream":true,"prompt":%q}`, text+"d"))
		if got := with.metric("warmpath_tokens_total", `outcome="late"`); got != float64(4*(i+1)) {
			t.Errorf("%v requests were late; want each once", got)
		}
	}
}
