package vllmsim

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// newTiny is a worker like the one that was recorded; fast, unless the test watches single tokens.
func newTiny(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Models = []string{"tiny"}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// do sends one request to the handler; "" is no body.
func do(s *Server, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// call is one recorded exchange of models.json, tokenize.json or return-token-ids.json.
type call struct {
	Request struct {
		Method, Path string
		Body         json.RawMessage
	}
	Status string
	Reply  json.RawMessage
}

func TestPlainWireMatchesRecording(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	leftOut := []string{"/kv_event_sources"} // KV events are not simulated
	for _, file := range []string{"models.json", "tokenize.json", "return-token-ids.json"} {
		var calls []call
		if err := json.Unmarshal(recorded(t, file), &calls); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if slices.Contains(leftOut, c.Request.Path) {
				continue
			}
			body := string(c.Request.Body)
			switch {
			case body == "null":
				body = ""
			case c.Request.Path == "/v1/completions":
				body = strings.Replace(body, `"Hello"`, `"Hello, you"`, 1)
			}
			w := do(s, c.Request.Method, c.Request.Path, body)
			if got := "HTTP/1.1 200 OK"; w.Code != 200 || c.Status != got {
				t.Errorf("%s %s: got %d, recorded %s", c.Request.Method, c.Request.Path, w.Code, c.Status)
			}
			sameShape(t, file+" "+c.Request.Path, w.Body.Bytes(), c.Reply)
		}
	}
}

func TestStreamWireMatchesRecording(t *testing.T) {
	s := newTiny(t, Config{}) // real time: one event a token, as recorded
	f := func(file, path, body string) {
		t.Helper()
		w := do(s, "POST", path, body)
		// As with vLLM, tokens that are ready together go in one event, and on a busy machine they may be.
		for range 50 {
			if len(eventsOf(t, w.Body.Bytes())) == len(eventsOf(t, recorded(t, file))) {
				break
			}
			w = do(s, "POST", path, body)
		}
		if ct := w.Header().Get("Content-Type"); ct != "text/event-stream; charset=utf-8" {
			t.Errorf("%s: content type %q", path, ct)
		}
		got, want := eventsOf(t, w.Body.Bytes()), eventsOf(t, recorded(t, file))
		if len(got) != len(want) {
			t.Fatalf("%s: got %d events, recorded %d:\n%s", path, len(got), len(want), w.Body)
		}
		if g, w := eventNames(w.Body.Bytes()), eventNames(recorded(t, file)); !slices.Equal(g, w) {
			t.Errorf("%s: events %q, recorded %q", path, g, w)
		}
		for i := range want {
			if want[i] == "[DONE]" {
				if got[i] != "[DONE]" {
					t.Errorf("%s: event %d is %s, want [DONE]", path, i, got[i])
				}
				continue
			}
			sameShape(t, path, []byte(got[i]), []byte(want[i]))
		}
	}
	f("responses-stream.sse", "/v1/responses", `{"input":"Hello","max_output_tokens":2,"stream":true,"temperature":0}`)
	f("messages-stream.sse", "/v1/messages", `{"messages":[{"role":"user","content":"hi"}],"max_tokens":2,"stream":true}`)
	f("chat-stream.sse", "/v1/chat/completions", `{"messages":[{"role":"user","content":"hi"}],"max_tokens":3,
		"stream":true,
		"return_token_ids":true,"stream_options":{"include_usage":true}}`)
	f("completion-stream.sse", "/v1/completions", `{"prompt":"Hello","max_tokens":3,"stream":true,"return_token_ids":true,
		"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`)
}

// exchange is one case of errors.json or ok.json.
type exchange struct {
	Name    string
	Request struct {
		Method, Path string
		Headers      map[string]*string
		Body         any
	}
	Status  string
	Headers map[string]string
	Body    string
}

// send plays a recorded request. Two of them mean something else to this tokenizer and are replaced by their like.
func send(t *testing.T, s *Server, x exchange) *httptest.ResponseRecorder {
	t.Helper()
	body, isText := x.Request.Body.(string)
	if !isText && x.Request.Body != nil {
		b, _ := json.Marshal(x.Request.Body)
		body = string(b)
	}
	switch x.Name {
	case "prompt too long (tokens)":
		body = `{"prompt":[5` + strings.Repeat(",5", 2999) + `]}`
	case "token out of vocabulary":
		body = `{"prompt":[5,4294967295],"max_tokens":2}`
	case "http/1.0", "ping":
		body = ""
	}
	var header []string
	for k, v := range x.Request.Headers {
		if v == nil {
			header = append(header, k, "")
		} else {
			header = append(header, k, *v)
		}
	}
	return do(s, x.Request.Method, x.Request.Path, body, header...)
}

// TestErrorsMatchRecording compares status, allow header, type, param and code, and the message up to the refused
// value.
func TestErrorsMatchRecording(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000, MaxModelLen: 1024})
	var list []exchange
	if err := json.Unmarshal(recorded(t, "errors.json"), &list); err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		w := send(t, s, x)
		if got := "HTTP/1.1 " + http.StatusText(w.Code); !strings.HasSuffix(x.Status, http.StatusText(w.Code)) {
			t.Errorf("%s: got %s, recorded %s: %s", x.Name, got, x.Status, w.Body)
			continue
		}
		for _, h := range []string{"content-type", "allow", "vary", "server"} {
			if got, want := w.Header().Get(h), x.Headers[h]; got != want {
				t.Errorf("%s: header %s: got %q, recorded %q", x.Name, h, got, want)
			}
		}
		sameShape(t, x.Name, w.Body.Bytes(), []byte(x.Body))
		got, want := errorOf(t, w.Body.String()), errorOf(t, x.Body)
		if got.Type != want.Type || got.Code != want.Code || (got.Param == nil) != (want.Param == nil) ||
			got.Param != nil && *got.Param != *want.Param {
			t.Errorf("%s: got %s, recorded %s", x.Name, w.Body, x.Body)
		}
		if g, w := upToInput(got.Message), upToInput(want.Message); g != w && x.Name != "token out of vocabulary" {
			t.Errorf("%s: message\n got %s\nwant %s", x.Name, g, w)
		}
	}
}

func upToInput(message string) string {
	message, _, _ = strings.Cut(message, "'input'")
	return message
}

func errorOf(t *testing.T, body string) apiError {
	t.Helper()
	var v struct{ Error apiError }
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	return v.Error
}

func TestAnswersMatchRecording(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	var list []exchange
	if err := json.Unmarshal(recorded(t, "ok.json"), &list); err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		w := send(t, s, x)
		if w.Code != 200 {
			t.Errorf("%s: got %d: %s", x.Name, w.Code, w.Body)
			continue
		}
		if x.Body == "" {
			if w.Body.Len() != 0 {
				t.Errorf("%s: got %q, recorded nothing", x.Name, w.Body)
			}
			continue
		}
		sameShape(t, x.Name, w.Body.Bytes(), []byte(x.Body))
		if got, want := w.Header().Get("endpoint-load-metrics"), x.Headers["endpoint-load-metrics"]; got != want {
			t.Errorf("%s: load report %q, recorded %q", x.Name, got, want)
		}
		if strings.Contains(x.Name, "request") {
			if got, want := idOf(w.Body.String()), idOf(x.Body); got != want {
				t.Errorf("%s: id %q, recorded %q", x.Name, got, want)
			}
		}
	}
}

func idOf(body string) string {
	var v struct{ ID string }
	json.Unmarshal([]byte(body), &v)
	return v.ID
}
