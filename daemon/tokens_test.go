package daemon

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/tokens"
	"github.com/warmpath/warmpath/daemon/vllmsim"
)

// Under kvaware the ids of prompts are had from the workers, once a text, and are those that the engine reports itself.
func TestTokenIDsAreTheEngines(t *testing.T) {
	r := start(t, settings("kvaware", sims(t, 2, vllmsim.Config{}).URLs()...)+"[pools.tokens]\nbudget = \"2s\"\n", 2)
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
	r.do("POST", "/v1/chat/completions", chatBody(false, []message{{"user", "When is high water?"}}))
	if got := r.metric("warmpath_tokens_total"); got != 0 {
		t.Errorf("%v requests wanted ids; want none under prefixaware", got)
	}
	if s := fmt.Sprint(r.describe()[0].Strategy); s != "prefixaware" {
		t.Error(s)
	}
}
