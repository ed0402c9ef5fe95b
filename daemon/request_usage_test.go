package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEveryAnswerIsCounted: what a key has used of its tokens after one request is what the engine says in the answer,
// however long that is and at whatever path; else the bytes of the body and of the answer's text.
func TestEveryAnswerIsCounted(t *testing.T) {
	t.Parallel()
	var answer atomic.Pointer[[2]string] // its type, and the text
	url := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", answer.Load()[0])
		io.WriteString(w, answer.Load()[1])
	}).URL
	r := start(t, limited(t, "team", "tokens_per_minute = 100000000")+settings("roundrobin", url), 1)
	const chat, ask = "/v1/chat/completions", `{"model":"sim","messages":[{"role":"user","content":"hello there"}]}`
	const json, events = "application/json", "text/event-stream"
	probs := `[` + strings.Repeat(`{"token":"usage","logprob":-1.5,"top_logprobs":[{"token":"\"}","logprob":-2}]},`, 40_000) + `{}]`
	usage := `{"prompt_tokens":500,"total_tokens":2000,"completion_tokens":1500}`
	long := strings.Repeat("a word ", 400_000)
	form := "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsim\r\n--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n" +
		strings.Repeat("y", 100_000) + "\r\n--x--\r\n"
	for _, c := range []struct {
		about, path, body string
		kind, answer      string
		least, most       float64
	}{
		{"log-probabilities", chat, ask, json, `{"choices":[{"logprobs":{"content":` + probs + `}}],"usage":` + usage + `}`, 2000, 2000},
		{"usage before them", chat, ask, json, `{"usage":` + usage + `,"choices":[{"logprobs":{"content":` + probs + `}}]}`, 2000, 2000},
		{"several choices", chat, ask, json, `{"choices":[` + strings.Repeat(`{"message":{"content":"`+long[:400_000]+`"}},`, 8) + `{}],"usage":` + usage + `}`, 2000, 2000},
		{"one event", chat, ask, events, `data: {"choices":[{"delta":{"content":"` + long + `"}}],"usage":` + usage + "}\n\ndata: [DONE]\n\n", 2000, 2000},
		{"an event before it", chat, ask, events, `data: {"choices":[{"delta":{"content":"` + long + `"}}]}` + "\r\n\r\n" + `data: {"choices":[],"usage":` + usage + "}\r\n\r\ndata: [DONE]\r\n\r\n", 2000, 2000},
		{"a response in one event", "/v1/responses", `{"model":"sim","input":"hello"}`, events, `data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"` +
			long + `"}]}],"usage":{"input_tokens":500,"output_tokens":1500}}}` + "\n\n", 2000, 2000},
		{"a message", "/v1/messages", ask, json, `{"type":"message","content":[{"type":"tool_use","name":"f","input":{"usage":{"output_tokens":1},"x":"` + long + `"}}],"stop_reason":"end_turn","usage":{"input_tokens":500,"output_tokens":1500}}`, 2000, 2000},
		{"vectors", "/v1/embeddings", `{"model":"sim","input":"hello"}`, json, `{"data":[{"embedding":[` + strings.Repeat("0.123456,", 300_000) + `1]}],"usage":{"prompt_tokens":500,"total_tokens":500}}`, 500, 500},
		{"no completion_tokens", chat, ask, json, `{"choices":[{"message":{"content":"` + long[:8000] + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":500}}`, 2000, 3000},
		{"no usage", chat, ask, json, `{"choices":[{"message":{"content":"` + long[:8000] + `"},"finish_reason":"stop"}]}`, 1500, 2500},

		{"a batch of chats", chat + "/batch", ask, json, `{"choices":[],"usage":` + usage + `}`, 2000, 2000},
		{"Cohere's", "/v2/embed", `{"model":"sim","texts":["x"]}`, json, `{"embeddings":{},"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":2000.0}}}`, 2000, 2000},
		{"Cohere's chat", "/cohere/v2/chat", ask, events, `data: {"type":"message-end","delta":{"usage":{"tokens":{"input_tokens":500,"output_tokens":1500}}}}` + "\n\n", 2000, 2000},
		{"token ids in, and out", "/inference/v1/generate", `{"model":"sim","token_ids":[` + strings.Repeat("1234,", 399) + `1]}`, json, `{"choices":[{"token_ids":[` + strings.Repeat("1234,", 1499) + `1]}]}`, 1500, 2500},
		{"a path of tomorrow, in other words", "/v1/dream", `{"model":"sim"}`, json, `{"usage":{"input_tokens":500,"output_tokens":1500}}`, 2000, 2000},
		{"without words", "/v1/dream", `{"model":"sim","about":"` + long[:4000] + `"}`, json, `{"text":"` + long[:4000] + `"}`, 1500, 2500},
		{"by SageMaker's door", "/invocations", `{"model":"sim","about":"x"}`, json, `{"usage":` + usage + `}`, 2000, 2000},
		{"a sound", "/v1/audio/transcriptions", form, json, `{"text":"hello","usage":{"type":"tokens","input_tokens":1500,"output_tokens":500,"total_tokens":2000}}`, 2000, 2000},
		{"a sound by its seconds", "/v1/audio/transcriptions", form, json, `{"text":"hello","usage":{"type":"duration","seconds":9}}`, 1, 5},
		{"speech", "/v1/audio/speech", `{"model":"sim","input":"hello"}`, "audio/wav", long, 0, 0},
		{"a file", "/v1/files", form, json, `{"id":"file-1"}`, 0, 0},
		{"a question for tokens", "/tokenize", `{"model":"sim","prompt":"hello"}`, json, `{"count":2000,"tokens":[1],"usage":` + usage + `}`, 0, 0},
		{"for their number", "/v1/messages/count_tokens", ask, json, `{"input_tokens":2000}`, 0, 0},
		{"for a text", "/detokenize", `{"model":"sim","tokens":[1,2]}`, json, `{"prompt":"` + long[:4000] + `"}`, 0, 0},
		{"for what an engine would get", chat + "/render", ask, json, `{"text":"` + long[:4000] + `"}`, 0, 0},
	} {
		answer.Store(&[2]string{c.kind, c.answer})
		had, before, _ := r.taken("team")
		head := []string{"Content-Type", "application/json"}
		if strings.HasPrefix(c.body, "--x") {
			head[1] = "multipart/form-data; boundary=x"
		}
		got := r.as("team", "POST", c.path, c.body, head...)
		if got.status != 200 || got.body != c.answer {
			t.Errorf("%s: %d %.200s, of %d bytes", c.about, got.status, got.body, len(got.body))
		}
		eventually(t, c.about+" has ended", func() bool { n, _, _ := r.taken("team"); return n == had+1 })
		if _, used, _ := r.taken("team"); used-before < c.least || used-before > c.most {
			t.Errorf("%s: %.0f tokens; want %.0f to %.0f", c.about, used-before, c.least, c.most)
		}
	}
}

// TestSaltsAtEveryPath: a key's salt is in each body for which an engine may compute a prompt, at paths that are not
// known too. Where it cannot be written the request is refused, and the words name what helps.
func TestSaltsAtEveryPath(t *testing.T) {
	t.Parallel()
	p, url := newSpy(t)
	r := start(t, tenants(t, "cache_salt = true")+settings("roundrobin", url), 1)
	for _, path := range []string{"/v1/chat/completions/batch", "/inference/v1/generate", "/v2/embed", "/cohere/v2/chat", "/v1/generative_scoring", "/v1/responses/compact",
		"/v1/dream", "/v1/dream/deep", "/v1/videos", "/v1/audio/speech", "/invocations"} {
		for body, own := range map[string]string{`{"model":"sim"}`: "", ` { "cache_salt" : "x" } `: "/x", `{"text":"` + strings.Repeat("x", 100_000) + `"}`: ""} {
			s := r.as("alice", "POST", path, body)
			sent, _ := p.last()
			if got := saltIn(t, sent); s.status != 200 || len(got) != 22+len(own) || !strings.HasSuffix(got, own) {
				t.Errorf("%s %.40s: %d, and the salt is %q", path, body, s.status, got)
			}
		}
	}
	const form = "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsim\r\n--x--\r\n"
	for _, c := range []struct{ path, kind, body, want string }{
		{"/v1/dream", "application/json", "[]", "keys.cache_salt"},
		{"/v1/dream", "text/plain", "a dream", "keys.cache_salt"},
		{"/v1/dream", "application/json", `{"a":`, "keys.cache_salt"},
		{"/v1/dream", "multipart/form-data; boundary=x", form, "keys.cache_salt"},
		{"/v1/chat/completions", "multipart/form-data; boundary=x", form, "keys.cache_salt"},
		{"/invocations", "text/csv", "a,b", "keys.cache_salt"},
		{"/v1/dream", "application/json", "", ""},
		{"/v1/audio/transcriptions", "multipart/form-data; boundary=x", form, ""},
		{"/v1/files", "multipart/form-data; boundary=x", form, ""},
		{"/tokenize", "application/json", `{"model":"sim","prompt":"x"}`, ""},
		{"/v1/chat/completions/render", "application/json", `{"messages":[]}`, ""},
		{"/detokenize", "application/json", `{"tokens":[]}`, ""},
		{"/v1/load_lora_adapter", "application/json", `{"lora_name":"x"}`, ""},
	} {
		before := p.count()
		s := r.as("alice", "POST", c.path, c.body, "Content-Type", c.kind)
		body, _ := p.last()
		switch {
		case c.want != "" && (s.status != 400 || !strings.Contains(s.body, c.want) || p.count() != before):
			t.Errorf("%s %.20q: %d %s, and %d got it", c.path, c.body, s.status, s.body, p.count()-before)
		case c.want == "" && (s.status != 200 || p.count() == before || body != c.body):
			t.Errorf("%s %.20q: %d %s, and the worker got %q", c.path, c.body, s.status, s.body, body)
		}
	}
}

// count is how many requests came.
func (p *spy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.bodies)
}

// frugal is a worker whose streams have a usage only if they are asked for one, as OpenAI's: null in each chunk, and the numbers
// in a last one. Each chunk has ten tokens.
type frugal struct {
	refuses bool         // stream_options, in the words of an older engine
	asked   atomic.Int64 // requests with stream_options
	came    atomic.Int64
	twice   atomic.Bool // a field came twice
}

func (f *frugal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var b struct {
		Model   string
		N       int
		Stream  bool
		Options *struct {
			Include    bool `json:"include_usage"`
			Continuous bool `json:"continuous_usage_stats"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(body, &b)
	f.came.Add(1)
	if strings.Count(string(body), "stream_options") > 1 || strings.Count(string(body), "include_usage") > 1 {
		f.twice.Store(true)
	}
	if b.Options != nil {
		f.asked.Add(1)
		if f.refuses {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`)
			return
		}
	}
	const usage = `{"prompt_tokens":700,"total_tokens":1000,"completion_tokens":300}`
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 30 {
		also := ""
		if b.Options != nil && b.Options.Include {
			also = `,"usage":null`
			if b.Options.Continuous {
				also = `,"usage":` + usage
			}
		}
		finish := "null"
		if i >= 30-max(1, b.N) {
			finish = `"stop"`
		}
		fmt.Fprintf(w, `data: {"id":"x-%s","object":"c","model":%q,"choices":[{"index":%d,"delta":{"content":"word"},"text":"word","finish_reason":%s}]%s}`+"\n\n",
			r.Header.Get("X-Request-Id"), b.Model, i%max(1, b.N), finish, also)
		w.(http.Flusher).Flush()
	}
	if b.Options != nil && b.Options.Include {
		fmt.Fprintf(w, `data: {"id":"x-%s","object":"c","model":%q,"choices":[],"usage":%s}`+"\n\n", r.Header.Get("X-Request-Id"), b.Model, usage)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// TestRouterAsksForUsage: a stream of a key with a limit of tokens counts by the engine's usage, whether the client asks for one or
// not. One that does not gets, to the byte, what it gets without a limit. A worker that refuses to be asked is asked once.
func TestRouterAsksForUsage(t *testing.T) {
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		f := &frugal{refuses: refuses}
		url := fakeWorker(t, f.ServeHTTP).URL
		r := start(t, "[server]\nbuffer_body_bytes = 65536\n"+strings.Replace(settings("roundrobin", url), "[server]\n", "", 1)+
			limited(t, "team", "tokens_per_minute = 100000000\ncache_salt = true", "free", "cache_salt = true")+
			"[[models]]\nname = \"nick\"\nto = [{ model = \"sim\" }]\n", 1)
		const say = `"messages":[{"role":"user","content":"hi"}]`
		for i, c := range []struct {
			path, body string
			asks       bool // the client does
		}{
			{"/v1/chat/completions", `{"model":"sim","stream":true,` + say + `}`, false},
			{"/v1/chat/completions", `{"model":"nick","stream":true,` + say + `}`, false},
			{"/v1/completions", `{"model":"sim","prompt":"hi","stream":true}`, false},
			{"/v1/chat/completions", `{"model":"sim","n":3,"stream":true,"stream_options":null,` + say + `}`, false},
			{"/v1/chat/completions", `{"model":"nick","stream_options":{"include_usage":false},"stream":true,` + say + `}`, false},
			{"/v1/chat/completions", `{"model":"sim","stream":true,"stream_options":{"continuous_usage_stats":true},` + say + `}`, false},
			{"/invocations", `{"model":"sim","stream":true,` + say + `}`, false},
			{"/v1/completions", `{"stream":true,"prompt":"` + strings.Repeat("x", 100_000) + `","model":"nick"}`, false},
			{"/v1/chat/completions", `{"model":"nick","stream":true,"stream_options":{"include_usage":true},` + say + `}`, true},
		} {
			_, before, _ := r.taken("team")
			came, asked := f.came.Load(), f.asked.Load()
			got := r.as("team", "POST", c.path, c.body, "X-Request-Id", "same")
			want := r.as("free", "POST", c.path, c.body, "X-Request-Id", "same")
			same := func(s string) string { return regexp.MustCompile(`x-same-\w+`).ReplaceAllString(s, "x") }
			if same(got.body) != same(want.body) || got.status != want.status {
				t.Errorf("refuses %v, %s %.100s: %d\n%.300s\nwant %d\n%.300s", refuses, c.path, c.body, got.status, got.body, want.status, want.body)
			}
			eventually(t, "it has ended", func() bool { _, _, n := r.taken("team"); return n == 0 })
			_, used, _ := r.taken("team")
			if !refuses && used-before != 1000 {
				t.Errorf("%s %.100s: %.0f tokens; want 1000", c.path, c.body, used-before)
			}
			if refuses && got.status == 200 && used-before < 30 {
				t.Errorf("%s %.100s: %.0f tokens; want some for 30 events", c.path, c.body, used-before)
			}
			if more := f.came.Load() - came; refuses && i > 0 && more != 2 || refuses && i == 0 && (more != 3 || f.asked.Load() != asked+1) {
				t.Errorf("%s %.100s: %d requests came at the worker that refuses", c.path, c.body, more)
			}
		}
		if f.twice.Load() {
			t.Error("the worker got a field twice")
		}
	}
}

// TestCachedTokensOfAPair: of a prompt that a prefiller has computed as much is free as the prefiller says was cached, in whole
// answers and in streams. What the decoder says, which was handed all of it, and what the router believes make nothing free.
func TestCachedTokensOfAPair(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about              string
		prefiller, decoder string // what each says of cached tokens
		stream, refuses    bool
		want               float64
	}{
		{"nobody says", "", "", false, false, 2005},
		{"the decoder alone", "", `,"prompt_tokens_details":{"cached_tokens":1999}`, false, false, 2005},
		{"the decoder alone, in a stream", "", `,"prompt_tokens_details":{"cached_tokens":1999}`, true, false, 2005},
		{"the prefiller alone", `,"prompt_tokens_details":{"cached_tokens":500}`, "", false, false, 1505},
		{"both, in a stream", `,"prompt_tokens_details":{"cached_tokens":500}`, `,"prompt_tokens_details":{"cached_tokens":1999}`, true, false, 1505},
		{"a decoder that refuses to be asked", `,"prompt_tokens_details":{"cached_tokens":500}`, "", true, true, -1},
	} {
		var prefills, refused atomic.Int64
		prefiller := fakeWorker(t, func(w http.ResponseWriter, _ *http.Request) {
			prefills.Add(1)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"length"}],"kv_transfer_params":{"remote_block_ids":[1]},"usage":{"prompt_tokens":2000,"completion_tokens":1,"total_tokens":2001`+c.prefiller+`}}`)
		})
		decoder := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			usage := `{"prompt_tokens":2000,"completion_tokens":5,"total_tokens":2005` + c.decoder + `}`
			w.Header().Set("Content-Type", "application/json")
			asks := strings.Contains(string(body), `"include_usage":true`)
			if !strings.Contains(string(body), "remote_block_ids") {
				t.Errorf("%s: the decoder is told of no prefiller: %.200s", c.about, body)
			}
			switch {
			case c.refuses && asks:
				refused.Add(1)
				http.Error(w, `{"error":{"message":"stream_options is not known"}}`, 400)
			case c.stream:
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"five tokens"},"finish_reason":"stop"}]}`+"\n\n")
				if asks {
					io.WriteString(w, `data: {"choices":[],"usage":`+usage+"}\n\n")
				}
				io.WriteString(w, "data: [DONE]\n\n")
			default:
				io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"five tokens"},"finish_reason":"stop"}],"usage":`+usage+`}`)
			}
		})
		text := strings.Replace(settings("roundrobin", prefiller.URL, decoder.URL), "[[pools.workers]]",
			"[pools.disaggregation]\nconnector = \"nixl\"\nrule = \"threshold\"\nthreshold = 0\n[[pools.workers]]", 1)
		text = strings.Replace(text, "id = \"w1\"\n", "id = \"w1\"\nrole = \"prefill\"\n", 1)
		r := start(t, limited(t, "team", "tokens_per_minute = 100000000")+text, 2)
		for turn := range 3 {
			_, before, _ := r.taken("team")
			got := r.as("team", "POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"sim","stream":%v,"messages":[{"role":"user","content":%q}]}`, c.stream, strings.Repeat("word ", 1600)))
			if got.status != 200 || c.stream && strings.Contains(got.body, "usage") {
				t.Errorf("%s: %d %.300s", c.about, got.status, got.body)
			}
			eventually(t, "it has ended", func() bool { _, _, n := r.taken("team"); return n == 0 })
			if _, used, _ := r.taken("team"); c.want >= 0 && used-before != c.want {
				t.Errorf("%s, turn %d: %.0f tokens; want %.0f", c.about, turn, used-before, c.want)
			}
		}
		if prefills.Load() == 0 || c.refuses && (refused.Load() != 1 || prefills.Load() != 3) {
			t.Errorf("%s: %d prompts went to the prefiller, %d requests were refused", c.about, prefills.Load(), refused.Load())
		}
	}
}
