package vllmsim

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// want decodes an answer into a generic value; the status must be as given.
func want(t *testing.T, w *httptest.ResponseRecorder, status int) map[string]any {
	t.Helper()
	if w.Code != status {
		t.Fatalf("got %d, want %d: %s", w.Code, status, w.Body)
	}
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return v
}

func TestPoolingEndpoints(t *testing.T) {
	s := newTiny(t, Config{})
	floats := want(t, do(s, "POST", "/v1/embeddings", `{"input":["one","two"],"dimensions":8}`), 200)["data"].([]any)
	first := floats[0].(map[string]any)["embedding"].([]any)
	if len(floats) != 2 || len(first) != 8 {
		t.Fatalf("got %d vectors of %d", len(floats), len(first))
	}
	packed := want(t, do(s, "POST", "/v1/embeddings", `{"input":"one","dimensions":8,"encoding_format":"base64"}`), 200)
	raw, err := base64.StdEncoding.DecodeString(packed["data"].([]any)[0].(map[string]any)["embedding"].(string))
	if err != nil || len(raw) != 32 {
		t.Fatalf("base64 gave %d bytes and %v", len(raw), err)
	}
	sum := 0.0
	for i, x := range first {
		f := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		sum += f * f
		if math.Abs(f-x.(float64)) > 1e-6 {
			t.Errorf("number %d is %v as a float and %v in base64", i, x, f)
		}
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("length %v, want 1", sum)
	}
	for _, path := range []string{"/rerank", "/v1/rerank", "/v2/rerank"} {
		a := want(t, do(s, "POST", path,
			`{"query":"blue sky","documents":["red","the blue sky",{"text":"blue"}],"top_n":2}`), 200)
		r := a["results"].([]any)
		if best := r[0].(map[string]any); len(r) != 2 || best["index"] != 1.0 ||
			best["document"].(map[string]any)["text"] != "the blue sky" {
			t.Errorf("%s: got %v", path, r)
		}
	}
	for _, body := range []string{`{"text_1":"a","text_2":["a","b"]}`, `{"queries":["a","b"],"documents":["a","b"]}`,
		`{"data_1":"a","data_2":["x","y"]}`} {
		if a := want(t, do(s, "POST", "/v1/score", body), 200); len(a["data"].([]any)) != 2 {
			t.Errorf("%s: got %v", body, a)
		}
	}
	for path, body := range map[string]string{"/pooling": `{"input":[5,6]}`, "/classify": `{"input":"x"}`} {
		if a := want(t, do(s, "POST", path, body), 200); len(a["data"].([]any)) != 1 {
			t.Errorf("%s: got %v", path, a)
		}
	}
	want(t, do(s, "POST", "/score", `{"text_1":["a","b"],"text_2":["a"]}`), 400)
	want(t, do(s, "POST", "/v1/rerank", `{"documents":["a"]}`), 400)
	want(t, do(s, "POST", "/v1/embeddings", `{"input":"x","dimensions":-1}`), 400)
	want(t, do(s, "POST", "/v1/embeddings", `{"input":"x","model":"nope"}`), 404)
}

// heardBody is a multipart body with a file of n bytes.
func heardBody(n int, fields ...string) (body, contentType string) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	f, _ := m.CreateFormFile("file", "speech.wav")
	f.Write(make([]byte, n))
	for i := 0; i+1 < len(fields); i += 2 {
		m.WriteField(fields[i], fields[i+1])
	}
	m.Close()
	return b.String(), m.FormDataContentType()
}

func TestMediaEndpoints(t *testing.T) {
	s := newTiny(t, Config{})
	for _, path := range []string{"/v1/audio/transcriptions", "/v1/audio/translations"} {
		body, ct := heardBody(10000, "model", "tiny")
		if a := want(t, do(s, "POST", path, body, "Content-Type", ct),
			200); len(a["text"].(string)) != 3*engine.BytesPerToken {
			t.Errorf("%s: got %v", path, a)
		}
		body, ct = heardBody(10000, "stream", "true")
		w := do(s, "POST", path, body, "Content-Type", ct)
		if e := eventsOf(t, w.Body.Bytes()); len(e) != 4 || e[3] != "[DONE]" {
			t.Errorf("%s: got %q", path, e)
		}
		body, ct = heardBody(1, "model", "nope")
		want(t, do(s, "POST", path, body, "Content-Type", ct), 404)
		want(t, do(s, "POST", path, `{}`), 400)
	}
	w := do(s, "POST", "/v1/audio/speech", `{"input":"four","voice":"x"}`)
	if w.Code != 200 || w.Header().Get("Content-Type") != "audio/wav" || w.Body.Len() != 44+2400 ||
		!strings.HasPrefix(w.Body.String(), "RIFF") {
		t.Errorf("speech: %d, %d bytes of %s", w.Code, w.Body.Len(), w.Header().Get("Content-Type"))
	}
	a := want(t, do(s, "POST", "/v1/images/generations", `{"prompt":"a boat","n":2}`), 200)
	if n := len(a["data"].([]any)); n != 2 {
		t.Errorf("%d images, want 2", n)
	}
}

func TestAPIKeyGuardsWhatVLLMGuards(t *testing.T) {
	s := newTiny(t, Config{APIKey: "secret"})
	for path, guarded := range map[string]bool{"/v1/models": true, "/v2/rerank": true, "/inference/v1/generate": true,
		"/health": false, "/metrics": false, "/version": false} {
		w := do(s, "GET", path, "")
		if got := w.Code == http.StatusUnauthorized; got != guarded {
			t.Errorf("%s without a key: %d", path, w.Code)
		}
		if guarded && w.Body.String() != `{"error":"Unauthorized"}` {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	if w := do(s, "GET", "/v1/models", "", "Authorization", "Bearer secret"); w.Code != 200 {
		t.Errorf("with the key: %d", w.Code)
	}
	if w := do(s, "GET", "/v1/models", "", "Authorization", "Bearer secrets"); w.Code != http.StatusUnauthorized {
		t.Errorf("with a wrong key: %d", w.Code)
	}
}

func TestMessages(t *testing.T) {
	s := newTiny(t, Config{Speed: 1000})
	a := want(t, do(s, "POST", "/v1/messages",
		`{"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"max_tokens":4000}`), 200)
	if a["stop_reason"] != "end_turn" || a["content"].([]any)[0].(map[string]any)["text"] == "" {
		t.Errorf("got %v, want an end of its own", a)
	}
	n := want(t, do(s, "POST", "/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"hi"}]}`),
		200)["input_tokens"]
	if n != float64(1+MessageTokens+GenerationTokens) {
		t.Errorf("%v tokens counted", n)
	}
	tools := `"tools":[{"name":"weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}],` +
		`"max_tokens":100`
	a = want(t, do(s, "POST", "/v1/messages",
		`{"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"any"},`+tools+`}`), 200)
	use := a["content"].([]any)[0].(map[string]any)
	if a["stop_reason"] != "tool_use" || use["name"] != "weather" || use["input"].(map[string]any)["city"] == "" {
		t.Errorf("got %v, want a call", a)
	}
	w := do(s, "POST", "/v1/messages", `{"stream":true,"messages":[{"role":"user","content":"use the tool"}],`+tools+`}`)
	joined := ""
	for _, e := range eventsOf(t, w.Body.Bytes()) {
		var v struct {
			Delta struct {
				Partial string `json:"partial_json"`
			}
		}
		json.Unmarshal([]byte(e), &v)
		joined += v.Delta.Partial
	}
	if joined != `{"city":"kalo"}` {
		t.Errorf("streamed input is %q: %s", joined, w.Body)
	}
	if e := want(t, do(s, "POST", "/v1/messages", `{"messages":[]}`), 400); e["type"] != "error" {
		t.Errorf("got %v, want an error of the endpoint's own shape", e)
	}
}
