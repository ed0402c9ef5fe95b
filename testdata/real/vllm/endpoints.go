package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// cached is how many prompt tokens the engine found in its cache, in each endpoint's own words; -1 if it does not say.
func (a *answer) cached() int {
	for _, path := range [][]any{
		{"usage", "prompt_tokens_details", "cached_tokens"},            // chat, completions
		{"usage", "input_tokens_details", "cached_tokens"},             // responses
		{"response", "usage", "input_tokens_details", "cached_tokens"}, // responses, streamed
		{"usage", "cache_read_input_tokens"},                           // messages
	} {
		if n := a.number(path...); n >= 0 {
			return n
		}
	}
	return -1
}

// checkEndpoints sends each kind of request twice: the second time the engine must have its prompt. Then what has no
// prompt, and what vLLM refuses: its own words must come through.
func checkEndpoints(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c := s.router.client
	figure := "tokens cached at the second time:"
	for i, k := range kinds {
		body := k.body(fresh(100), 8)
		first, second := c.post(ctx, k.path, body), c.post(ctx, k.path, body)
		for _, a := range []*answer{first, second} {
			if err := a.fault(); err != nil {
				return "", fmt.Errorf("%s: %w", k.path, err)
			}
		}
		if k.path == "/tokenize" {
			continue
		}
		if first.worker() != second.worker() || second.cached() <= 0 {
			return "", fmt.Errorf("%s: %d tokens cached at %s, which the first time was %s", k.path, second.cached(),
				second.worker(), first.worker())
		}
		figure += fmt.Sprintf(" %s %d,", names[i], second.cached())
	}
	text := fresh(10)
	ids := c.post(ctx, "/tokenize", object{"model": "tiny", "prompt": text})
	back := c.post(ctx, "/detokenize", object{"model": "tiny", "tokens": ids.last("tokens")})
	if got := back.text("prompt"); got != text {
		return "", fmt.Errorf("/tokenize (%v), then /detokenize (%v): got %q, want %q", ids.fault(), back.fault(), got, text)
	}
	count := c.post(ctx, "/v1/messages/count_tokens", object{"model": "tiny", "messages": said("user", text)})
	if count.number("input_tokens") <= 0 {
		return "", fmt.Errorf("/v1/messages/count_tokens: %v %s", count.fault(), count.body)
	}
	if a := c.post(ctx, "/invocations", chatBody(said("user", text), 4, false)); a.fault() != nil {
		return "", fmt.Errorf("/invocations: %w", a.fault())
	}
	if a := c.send(ctx, "GET", "/v1/models", nil, nil); a.text("data", 0, "id") != "tiny" {
		return "", fmt.Errorf("/v1/models: %v %s", a.fault(), a.body)
	}
	return figure + " tokenize and detokenize agree", refusals(ctx, c)
}

// refusals are answers whose status and shape are vLLM's, or must look so.
func refusals(ctx context.Context, c *client) error {
	long := fresh(9000)
	for _, r := range []struct {
		path   string
		body   any
		status int
		keys   []any // of a text that the body must have
	}{
		{path: "/v1/chat/completions", body: object{"model": "absent", "messages": said("user", "x")}, status: 404,
			keys: []any{"error", "message"}},
		{path: "/v1/chat/completions", body: chatBody(said("user", long), 1, false), status: 400,
			keys: []any{"error", "message"}},
		{path: "/v1/chat/completions", body: chatBody(said("user", long), 1, true), status: 400,
			keys: []any{"error", "message"}},
		{path: "/v1/completions", body: object{"model": "tiny", "prompt": "x", "max_tokens": "many"}, status: 400,
			keys: []any{"error", "message"}},
		{path: "/v1/responses", body: object{"model": "tiny", "input": "x", "previous_response_id": "resp_absent"},
			status: 404, keys: []any{"error", "message"}},
		{path: "/v1/messages", body: object{"model": "absent", "max_tokens": 4, "messages": said("user", "x")}, status: 404,
			keys: []any{"error", "message"}},
		{path: "/v1/messages", body: object{"model": "tiny", "max_tokens": 4, "messages": said("user", long)}, status: 400,
			keys: []any{"error", "message"}},
		{path: "/v1/embeddings", body: object{"model": "tiny", "input": "x"}, status: 404, keys: nil},
	} {
		a := c.post(ctx, r.path, r.body)
		if a.err != nil || a.status != r.status || r.keys != nil && a.text(r.keys...) == "" {
			return fmt.Errorf("%s with %.60v: status %d (%v), want %d: %.300s", r.path, r.body, a.status, a.err, r.status,
				a.body)
		}
		if r.path == "/v1/messages" && a.text("type") != "error" {
			return fmt.Errorf("%s: an error in another shape than Anthropic's: %.300s", r.path, a.body)
		}
	}
	return nil
}

// checkResponses keeps conversations in both workers' own stores. What names an answer must go to the worker that made
// it: a router that does not follow fails every second time.
func checkResponses(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c := s.router.client
	made := make([]*answer, 8)
	var wg sync.WaitGroup
	for i := range made { // side by side, so that both workers get some
		wg.Go(func() {
			made[i] = c.post(ctx, "/v1/responses",
				object{"model": "tiny", "input": fresh(60), "max_output_tokens": 8, "store": true})
		})
	}
	wg.Wait()
	ids, at := []string{}, map[string]int{}
	for _, a := range made {
		if err := a.fault(); err != nil {
			return "", err
		}
		ids = append(ids, a.text("id"))
		at[a.worker()]++
	}
	if len(at) < 2 {
		return "", fmt.Errorf("all answers were made by one worker: %v", at)
	}
	cached := 0
	for _, id := range ids {
		for range 3 {
			if a := c.send(ctx, "GET", "/v1/responses/"+id, nil, nil); a.status != http.StatusOK || a.text("id") != id {
				return "", fmt.Errorf("GET /v1/responses/{id}: status %d at %q (%v) %.200s; stored: %v", a.status, a.worker(),
					a.err, a.body, at)
			}
		}
		for _, stream := range []bool{false, true} {
			a := c.post(ctx, "/v1/responses", object{"model": "tiny", "input": "and then?", "max_output_tokens": 8,
				"store":                true,
				"previous_response_id": id, "stream": stream})
			if err := a.fault(); err != nil {
				return "", fmt.Errorf("previous_response_id, stream %v: %w", stream, err)
			}
			if a.cached() <= 0 {
				return "", fmt.Errorf("previous_response_id, stream %v: %d tokens cached at %s", stream, a.cached(), a.worker())
			}
			cached += a.cached()
		}
	}
	job := c.post(ctx, "/v1/responses", object{"model": "tiny", "input": fresh(20), "max_output_tokens": 4000,
		"store": true, "background": true})
	id := job.text("id")
	a := c.send(ctx, "POST", "/v1/responses/"+id+"/cancel", nil, nil)
	if a.status != http.StatusOK || a.text("status") != "cancelled" {
		return "", fmt.Errorf("cancel of a background response (%s): status %d %.200s", job.text("status"), a.status, a.body)
	}
	return fmt.Sprintf("%d stored answers (w1 %d, w2 %d) got 3 times each and continued twice, %d tokens cached in "+
		"all; 1 cancelled",
		len(ids), at["w1"], at["w2"], cached), nil
}
