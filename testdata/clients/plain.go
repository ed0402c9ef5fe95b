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
		{"POST", "/tokenize", `{"prompt":"eight by"}`, `"count":2`},
		{"POST", "/tokenize", `{"messages":[{"role":"user","content":"eight by"}]}`, `"count":5`},
		{"POST", "/detokenize", `{"tokens":[1684234849]}`, `"prompt":"abcd"`},
		{"POST", "/invocations", `{"messages":[{"role":"user","content":"hi"}],"max_tokens":2}`, `"object":"chat.completion"`},
		{"POST", "/invocations", `{"prompt":"hi","max_tokens":2}`, `"object":"text_completion"`},
		{"POST", "/rerank", `{"query":"sea","documents":["land","the sea"]}`, `"results":[{"index":1`},
		{"POST", "/v1/rerank", `{"query":"sea","documents":["land","the sea"]}`, `"results":[{"index":1`},
		{"POST", "/v2/rerank", `{"query":"sea","documents":["land","the sea"]}`, `"results":[{"index":1`},
		{"POST", "/score", `{"text_1":"sea","text_2":["land","the sea"]}`, `"object":"score"`},
		{"POST", "/v1/score", `{"text_1":"sea","text_2":["land","the sea"]}`, `"object":"score"`},
		{"POST", "/pooling", `{"input":"sea"}`, `"object":"pooling"`},
		{"POST", "/classify", `{"input":"sea"}`, `"num_classes":2`},
		{"GET", "/health", "", ""},
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
