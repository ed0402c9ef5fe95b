package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// respond makes a stored response and returns its id.
func (r *running) respond(who string) string {
	r.t.Helper()
	s := r.as(who, "POST", "/v1/responses", `{"model":"sim","input":"the words of `+who+`","max_output_tokens":4}`)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(s.body), &made); err != nil || s.status != 200 || made.ID == "" {
		r.t.Fatalf("%d %s", s.status, s.body)
	}
	return made.ID
}

// TestAStoredResponseIsItsKeys: what one key made is to another as if nobody had made it, at both routers, by every
// way to it.
func TestAStoredResponseIsItsKeys(t *testing.T) {
	f := sims(t, 2, vllmsim.Config{})
	toml := keysFor(t) + fmt.Sprintf("[cache]\nredis = %q\ntimeout = \"1s\"\n", redistest.Start(t).URL()) + settings("roundrobin", f.URLs()...)
	first, second := start(t, toml, 2), start(t, toml, 2)
	for _, owner := range []string{"alice", "bob"} {
		id := first.respond(owner)
		next := func(id string) string {
			return `{"model":"sim","input":"and then?","previous_response_id":"` + id + `","max_output_tokens":4}`
		}
		for i, r := range []*running{first, second} {
			want := func(status int, who, method, path, body string) {
				t.Helper()
				s := r.as(who, method, path, body)
				if s.status != status || status == 404 && s.code() != "response_not_found" {
					t.Errorf("router %d: %s %s %s of %s for %s: %d %s; want %d", i, method, path, body, owner, who, s.status, s.body, status)
				}
			}
			stranger := map[string]string{"alice": "bob", "bob": "alice"}[owner]
			want(200, owner, "GET", "/v1/responses/"+id, "")
			want(200, owner, "POST", "/v1/responses", next(id))
			for _, unknown := range []string{id, "resp_nobody"} {
				want(404, stranger, "GET", "/v1/responses/"+unknown, "")
				want(404, stranger, "GET", "/v1/responses/"+unknown+"?stream=true", "")
				want(404, stranger, "GET", "/v1/response%73/"+unknown, "")
				want(404, stranger, "DELETE", "/v1/responses/"+unknown, "")
				want(404, stranger, "POST", "/v1/responses/"+unknown+"/cancel", "{}")
				want(404, stranger, "GET", "/v1/responses/"+unknown+"/input_items", "")
				want(404, stranger, "POST", "/v1/responses", next(unknown))
				want(404, stranger, "POST", "/v1/responses", strings.Replace(next(unknown), "resp_", `\u0072esp_`, 1))
			}
			got, missing := r.as(stranger, "GET", "/v1/responses/"+id, "").body, r.as(stranger, "GET", "/v1/responses/resp_nobody", "").body
			if strings.ReplaceAll(got, id, "ID") != strings.ReplaceAll(missing, "resp_nobody", "ID") {
				t.Errorf("another key's response is told from one that is not there: %s, %s", got, missing)
			}
		}
	}
}

// TestAStoredResponseIsNotReachedUnread: a body that we cannot read to its end may name another key's response.
func TestAStoredResponseIsNotReachedUnread(t *testing.T) {
	w := newWitness(t)
	r := start(t, keysFor(t)+withServer(settings("roundrobin", w.url), "buffer_body_bytes = 65536\noverflow_bytes = 0"), 1)
	hidden := `{"model":"sim","input":"` + strings.Repeat("x", 70_000) + `","previous_response_id":"resp_x"}`
	for what, c := range map[string]struct {
		body string
		want int
	}{"a long body": {hidden, 413}, "a cut body": {hidden[:60_000], 400}, "UTF-16": {"{\x00\"\x00", 400}, "its own": {`{"model":"sim","input":"x"}`, 200}} {
		if s := r.as("alice", "POST", "/v1/responses", c.body); s.status != c.want || (len(w.since()) > 0) != (c.want == 200) {
			t.Errorf("%s: %d %s; want %d", what, s.status, s.body, c.want)
		}
	}
	if s := r.as("alice", "POST", "/v1/chat/completions", `{"model":`); s.status != 200 || len(w.since()) != 1 {
		t.Errorf("a key for all models and malformed JSON: %d %s", s.status, s.body)
	}
}
