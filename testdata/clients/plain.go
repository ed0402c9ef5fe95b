package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// check is one line of the output.
type check struct {
	name string
	run  func(ctx context.Context) error
}

// runChecks runs checks in order, each for a minute at most.
func runChecks(ctx context.Context, client string, t *total, checks []check) {
	for _, c := range checks {
		one, cancel := context.WithTimeout(ctx, time.Minute)
		err := c.run(one)
		cancel()
		if err != nil {
			t.line(fmt.Sprintf("FAIL %s %s: %s", client, c.name, strings.ReplaceAll(err.Error(), "\n", " ")))
			continue
		}
		t.line("ok " + client + " " + c.name)
	}
}

// plainChecks asks for what vLLM has and no SDK speaks.
func plainChecks(ctx context.Context, f *fleet, t *total) error {
	var list []check
	for _, c := range []struct{ method, path, body, want string }{
		{method: "POST", path: "/tokenize", body: `{"prompt":"eight by"}`, want: `"count":2`},
		{method: "POST", path: "/tokenize", body: `{"messages":[{"role":"user","content":"eight by"}]}`, want: `"count":5`},
		{method: "POST", path: "/detokenize", body: `{"tokens":[1684234849]}`, want: `"prompt":"abcd"`},
		{method: "POST", path: "/invocations", body: `{"messages":[{"role":"user","content":"hi"}],"max_tokens":2}`,
			want: `"object":"chat.completion"`},
		{method: "POST", path: "/invocations", body: `{"prompt":"hi","max_tokens":2}`, want: `"object":"text_completion"`},
		{method: "POST", path: "/rerank", body: `{"query":"sea","documents":["land","the sea"]}`,
			want: `"results":[{"index":1`},
		{method: "POST", path: "/v1/rerank", body: `{"query":"sea","documents":["land","the sea"]}`,
			want: `"results":[{"index":1`},
		{method: "POST", path: "/v2/rerank", body: `{"query":"sea","documents":["land","the sea"]}`,
			want: `"results":[{"index":1`},
		{method: "POST", path: "/score", body: `{"text_1":"sea","text_2":["land","the sea"]}`, want: `"object":"score"`},
		{method: "POST", path: "/v1/score", body: `{"text_1":"sea","text_2":["land","the sea"]}`, want: `"object":"score"`},
		{method: "POST", path: "/pooling", body: `{"input":"sea"}`, want: `"object":"pooling"`},
		{method: "POST", path: "/classify", body: `{"input":"sea"}`, want: `"num_classes":2`},
		{method: "GET", path: "/health", body: "", want: ""},
	} {
		list = append(list, check{c.method + " " + c.path, func(ctx context.Context) error {
			body := c.body
			if body != "" {
				body = `{"model":"` + model + `",` + body[1:]
			}
			got, err := send(ctx, c.method, f.url+c.path, body)
			if err == nil && !strings.Contains(got, c.want) {
				err = fmt.Errorf("got %.300s, want %s in it", got, c.want)
			}
			return err
		}})
	}
	runChecks(ctx, "go http", t, list)
	return nil
}

// send makes one request; an answer other than 200 is an error.
func send(ctx context.Context, method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %.200s", r.Status, b)
	}
	return string(b), err
}
