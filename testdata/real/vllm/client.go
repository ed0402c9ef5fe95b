package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// object is a JSON object.
type object = map[string]any

// client sends requests to one base URL, and asks the router to explain itself.
type client struct {
	base    string
	http    *http.Client
	session string // what SageMaker's field names; "" = no such field
	explain string // how the router is to explain itself; "" = in header fields
	token   string // of an admin port; "" = none
}

// in is the client in a session.
func (c *client) in(session string) *client {
	d := *c
	d.session = session
	return &d
}

// asking is the client with another way for the router to explain itself.
func (c *client) asking(explain string) *client {
	d := *c
	d.explain = explain
	return &d
}

func newClient(base string) *client {
	return &client{base: base, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// answer is what came back, also where it broke off.
type answer struct {
	status      int
	header      http.Header
	body        []byte
	err         error // no answer, or one that broke off
	sent, first time.Time
}

// send makes a request and reads the answer to its end. watch, if not nil, sees the body as it grows.
func (c *client) send(ctx context.Context, method, path string, body any, watch func(soFar []byte)) *answer {
	a := &answer{sent: time.Now()}
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			a.err = err
			return a
		}
		text = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, text)
	if err != nil {
		a.err = err
		return a
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Warmpath-Explain", cmp.Or(c.explain, "1"))
	if c.session != "" {
		req.Header.Set("X-Amzn-SageMaker-Session-Id", c.session)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.GetBody = nil // no repeat by net/http itself: the router's answers are what is checked
	resp, err := c.http.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	for buf := make([]byte, 32<<10); ; {
		n, err := resp.Body.Read(buf)
		if n > 0 && a.first.IsZero() {
			a.first = time.Now()
		}
		a.body = append(a.body, buf[:n]...)
		if n > 0 && watch != nil {
			watch(a.body)
		}
		if errors.Is(err, io.EOF) {
			return a
		}
		if err != nil {
			a.err = err
			return a
		}
	}
}

func (c *client) post(ctx context.Context, path string, body any) *answer {
	return c.send(ctx, "POST", path, body, nil)
}

func (a *answer) worker() string { return a.header.Get("X-Warmpath-Worker") }

func (a *answer) events() bool {
	return strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream")
}

// fault says why the answer is not a whole and honest one; nil if it is. A vLLM that is stopped answers 200 and hides
// the failure in it: the finish reason "abort", an error event, a stream with no event but that of include_usage.
func (a *answer) fault() error {
	head := a.body[:min(len(a.body), 300)]
	switch {
	case a.err != nil:
		return fmt.Errorf("after %d bytes: %w", len(a.body), a.err)
	case a.status != http.StatusOK:
		return fmt.Errorf("status %d: %s", a.status, head)
	case has(a.body, `"finish_reason":"abort"`, `"stop_reason":"abort"`, `"status":"failed"`, `"status":"cancelled"`,
		`"error":{`, `"error": {`):
		return fmt.Errorf("a failure inside a 200: %s", a.body[max(0, len(a.body)-400):])
	case a.events() && !has(a.body, "data: [DONE]", "event: message_stop", "event: response.completed",
		"event: response.incomplete"):
		return fmt.Errorf("a stream without its end: %s", a.body[max(0, len(a.body)-300):])
	case a.events() && !has(a.body, `"choices":[{`, "event: content_block_delta", "event: response.output_text.delta"):
		return fmt.Errorf("a stream without output: %s", head)
	}
	return nil
}

func has(body []byte, any ...string) bool {
	for _, s := range any {
		if bytes.Contains(body, []byte(s)) {
			return true
		}
	}
	return false
}

// each calls visit for the body, or for every event of a stream that is JSON.
func (a *answer) each(visit func(v any)) {
	texts := func(yield func([]byte) bool) { yield(a.body) }
	if a.events() {
		texts = func(yield func([]byte) bool) {
			for line := range bytes.Lines(a.body) {
				if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && !yield(data) {
					return
				}
			}
		}
	}
	for text := range texts {
		var v any
		if json.Unmarshal(text, &v) == nil {
			visit(v)
		}
	}
}

// last returns the value at the path of keys ("usage", "prompt_tokens") in the body, or in the last event that has
// it. A number as key is an index.
func (a *answer) last(keys ...any) (found any) {
	a.each(func(v any) {
		v = dig(v, keys)
		if v != nil {
			found = v
		}
	})
	return found
}

func dig(v any, keys []any) any {
	for _, k := range keys {
		switch k := k.(type) {
		case string:
			o, _ := v.(object)
			v = o[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

// number is last as a number; -1 if there is none.
func (a *answer) number(keys ...any) int {
	if f, ok := a.last(keys...).(float64); ok {
		return int(f)
	}
	return -1
}

func (a *answer) text(keys ...any) string {
	s, _ := a.last(keys...).(string)
	return s
}
