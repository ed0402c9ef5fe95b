package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseFields(t *testing.T) {
	f := func(body string, check func(r *Request) bool) {
		t.Helper()
		var p Parser
		r, err := p.Parse(Chat, []byte(body))
		if err != nil || !check(r) {
			t.Errorf("%s: %v, %+v", body, err, r)
		}
	}
	f(`{}`, func(r *Request) bool { return r.Model == "" && !r.Stream && r.N == 1 && !r.HasPrompt })
	f(`{"model":"a","model":"b"}`, func(r *Request) bool { return r.Model == "b" })
	f(`{"model":"a","model":null}`, func(r *Request) bool { return r.Model == "" })
	f(`{"mod\u0065l":"\u00e9\ud83d\ude00\/"}`, func(r *Request) bool { return r.Model == "é😀/" })
	f(`{"model":17,"stream":"x"}`, func(r *Request) bool { return r.Model == "" && !r.Stream })
	f(` { "stream" : true , "stream_options" : { "include_usage" : true } } `, func(r *Request) bool { return r.Stream && r.IncludeUsage })
	f(`{"stream_options":{"include_usage":true},"stream_options":null}`, func(r *Request) bool { return !r.IncludeUsage })
	f(`{"max_tokens":7}`, func(r *Request) bool { return r.MaxTokens == 7 })
	f(`{"max_tokens":7,"max_completion_tokens":9}`, func(r *Request) bool { return r.MaxTokens == 9 })
	f(`{"max_completion_tokens":null,"max_tokens":16.0}`, func(r *Request) bool { return r.MaxTokens == 16 })
	f(`{"n":"3"}`, func(r *Request) bool { return r.N == 3 })
	f(`{"n":" +2"}`, func(r *Request) bool { return r.N == 2 }) // engines may read a number from it
	f(`{"max_tokens":-3,"priority":-5,"n":3}`, func(r *Request) bool { return r.MaxTokens == 0 && r.Priority == -5 && r.N == 3 })
	f(`{"max_tokens":1e300,"priority":-1e300}`, func(r *Request) bool { return r.MaxTokens == 1<<32-1 && r.Priority == -1<<31 })
	f(`{"max_tokens":1e999,"temperature":NaN,"top_p":-Infinity}`, func(r *Request) bool { return r.MaxTokens == 1<<32-1 })
	f(`{"user":"u","session_id":"s","prompt_cache_key":"k"}`, func(r *Request) bool { return r.Name("prompt_cache_key") == "k" })
	f(`{"user":"u","session_id":"s","prompt_cache_key":null}`, func(r *Request) bool { return r.Name("prompt_cache_key") == "" && r.Name("session_id") == "s" })
	f(`{"user":"u","session_id":""}`, func(r *Request) bool { return r.Name("session_id") == "" && r.Name("user") == "u" })
	f(`{"user":"u","metadata":{"user_id":"m"},"safety_identifier":"h"}`, func(r *Request) bool {
		return r.Named() && r.Name("user") == "u" && r.Name("metadata.user_id") == "" && r.Name("safety_identifier") == "h" && r.Name("model") == ""
	})
	f(`{"nvext":{"agent_hints":{"osl":700,"priority":5,"x":[1]},"y":{}}}`, func(r *Request) bool { return r.Expected == 700 && r.Priority == -5 && !r.Named() })
	f(`{"nvext":{"agent_hints":{"priority":5}},"priority":3}`, func(r *Request) bool { return r.Expected == 0 && r.Priority == 3 })
	f(`{"nvext":{"agent_hints":{"priority":-1e300}}}`, func(r *Request) bool { return r.Priority == 1<<31-1 })
	f(`{"nvext":{"agent_hints":{"osl":7}},"nvext":null}`, func(r *Request) bool { return r.Expected == 0 })
	f(`{"agent_hints":{"osl":7},"nvext":[{"agent_hints":{"osl":7}}]}`, func(r *Request) bool { return r.Expected == 0 })
	f(`{"vllm_xargs":{"k":1,"agentic_context":{"program_id":"p","parent_program_id":"q","z":0}}}`, func(r *Request) bool {
		return r.Named() && r.Name("vllm_xargs.agentic_context.program_id") == "p" && r.Name("vllm_xargs.agentic_context.parent_program_id") == "q"
	})
	f(`{"vllm_xargs":{"agentic_context":{"program_id":"p"}},"vllm_xargs":{}}`, func(r *Request) bool { return !r.Named() })
	f(`{"cache_salt":"x"}`, func(r *Request) bool { return r.CacheSalt == "x" })
	f("\xef\xbb\xbf{\"model\":\"bom\"}", func(r *Request) bool { return r.Model == "bom" })
	f(`[{"model":"inner"}]`, func(r *Request) bool { return r.Model == "" })
	f(`{"metadata":{"model":"inner"}}`, func(r *Request) bool { return r.Model == "" })
	f(`{"messages":[{"role":"user"}],"messages":[]}`, func(r *Request) bool { return !r.HasPrompt })
}

func TestParseFault(t *testing.T) {
	f := func(body string, offset int, model string, messages int) {
		t.Helper()
		var p Parser
		r, err := p.Parse(Chat, []byte(body))
		var fault *SyntaxError
		if !errors.As(err, &fault) || fault.Offset != offset {
			t.Errorf("%s: got %v, want a fault at %d", body, err, offset)
		}
		if r.Model != model || len(r.talk.messages) != messages {
			t.Errorf("%s: kept model %q, %d messages, want %q, %d", body, r.Model, len(r.talk.messages), model, messages)
		}
		r.Hash(1) // what is kept can be hashed
	}
	f(``, 0, "", 0)
	f(`{"model": "tiny", `, 18, "tiny", 0)
	f(`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b`, 82, "m", 1)
	f(`{"model":"m"}x`, 13, "m", 0)
	f(`{"model":"m","x":01}`, 18, "m", 0)
	f("{\"model\":\"a\nb\"}", 11, "", 0)
	f(`{"model":"\x"}`, 10, "", 0)
	f(`{"model":"\u12g4"}`, 10, "", 0)
	f(`{"model":"a\`, 11, "", 0)
	f(`{"model":"a\n\u00`, 13, "", 0)
	f(`{"model":"m",}`, 13, "m", 0)
	f(`{"model":"m","x":nul}`, 17, "m", 0)
	f(`{"x":`+strings.Repeat("[", maxDepth), 4+maxDepth, "", 0)
}

func TestParseDepth(t *testing.T) {
	var p Parser
	for depth, ok := range map[int]bool{maxDepth - 1: true, maxDepth: false} {
		body := `{"x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
		if _, err := p.Parse(Chat, []byte(body)); (err == nil) != ok {
			t.Errorf("%d arrays in an object: %v", depth, err)
		}
	}
}

// A pooled parser must not show anything of the request before.
func TestParserReuse(t *testing.T) {
	var p Parser
	full := []byte(`{"model":"m","stream":true,"n":4,"user":"u","cache_salt":"s","max_tokens":3,"priority":2,"echo":true,` +
		`"messages":[{"role":"user","content":"` + strings.Repeat("x", 500) + `"}],"tools":[{"type":"function","function":{"name":"f"}}]}`)
	for range 2 {
		r, err := p.Parse(Chat, full)
		if err != nil {
			t.Fatal(err)
		}
		r.Hash(1)
		r, err = p.Parse(Chat, []byte(`{}`))
		r.Hash(1)
		if err != nil || r.Model+r.CacheSalt != "" || r.Named() || r.Stream || r.N != 1 || r.MaxTokens != 0 || r.Priority != 0 ||
			r.HasPrompt || len(r.Chains) != 0 || r.fields.flag(fieldEcho) || r.fields.has(fieldTools) {
			t.Fatalf("left over: %+v", r)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	f := func(kind Kind, text string) {
		t.Helper()
		var p Parser
		body := []byte(text)
		if n := testing.AllocsPerRun(50, func() {
			r, err := p.Parse(kind, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Hash(3)
		}); n != 0 {
			t.Errorf("%d: %v allocations a request, want 0", kind, n)
		}
	}
	f(Chat, string(chatBody(32<<10)))
	c := &client{rnd: rand.New(rand.NewPCG(1, 2))}
	turns := []turn{{role: "system", text: "s"}, {role: "user", text: c.text(90)}, {role: "assistant", text: "a", calls: [][2]string{{"f", `{"x":"\n"}`}}},
		{role: "tool", text: c.text(90), id: "call-0"}, {role: "user", text: c.text(90)}}
	for _, d := range dialects {
		f(d.kind, d.request(c, turns))
	}
	f(Rerank, `{"query":"q","documents":["a","b"]}`)
}

// FuzzParse holds the scanner against encoding/json: the same verdict on every body, the same model, stream and
// prompt.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"model":"m","stream":true,"prompt":"p\n\u00e9"}`, `{"prompt":["a","b"]}`, `{"prompt":[1,2]}`, `{"prompt":[1, 2,]}`, `[1,  02,3]`, `[12,0,-0,3.5,7]`, `[1,-0.5e+7,null]`,
		`{"model":"\ud800\udc00\ud800","a":{"b":[{}]}}`, ` {"a" : "\\\"" } `, `{"messages":[{"role":"user","content":[{"type":"text","text":"t"}]}]}`,
		`{"tools":[{"type":"function","function":{"name":"f","parameters":{"a":[1,"\t"]}}}],"messages":[{"tool_calls":[{"function":{"name":"x","arguments":"{}"}}]}]}`,
		`{"input":[{"type":"message","role":"assistant","content":[{"text":"a"}]},{"type":"function_call","name":"f","arguments":"{}"},{"type":"function_call_output","output":[]}],"instructions":"s"}`,
		`{"system":[{"text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":"r"},{"type":"image","source":{"data":"x"}}]},{"role":"assistant","content":[{"type":"tool_use","input":{}}]}]}`,
		`{"query":"a","documents":["b",{"text":"c"}],"metadata":{"user_id":"u"}}`,
		`{"a":NaN}`, `{"a":01}`, `{"prompt":[[1],[2,3]]}`, string(chatBody(2000))} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for kind := Other; kind <= Invocations; kind++ {
			var p Parser
			r, err := p.Parse(kind, body)
			r.Hash(1)
			valid := json.Valid(body)
			if valid && err != nil && bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) <= maxDepth {
				t.Fatalf("valid JSON refused: %v", err)
			}
			lenient := bytes.Contains(body, []byte("NaN")) || bytes.Contains(body, []byte("Infinity")) || bytes.HasPrefix(body, []byte("\xef\xbb\xbf"))
			if !valid && err == nil && !lenient {
				t.Fatalf("invalid JSON accepted")
			}
			if valid && err == nil {
				compare(t, body, r)
			}
		}
	})
}

// compare reads the body with the standard library and checks what the scanner found.
func compare(t *testing.T, body []byte, r *Request) {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil {
		return
	}
	var model, text string
	json.Unmarshal(m["model"], &model)
	if got := string([]rune(r.Model)); got != model { // encoding/json repairs bad UTF-8, byte by byte
		t.Errorf("model %q, want %q", got, model)
	}
	if want := string(m["stream"]) == "true"; r.Stream != want {
		t.Errorf("stream %v, want %v", r.Stream, want)
	}
	if json.Unmarshal(m["prompt"], &text) == nil && r.Kind == Completion && bytes.HasPrefix(m["prompt"], []byte{'"'}) {
		var c Chain
		c.reset(1, domainText)
		c.Append(unescape(nil, Inside(m["prompt"])))
		if r.HasPrompt && !same(c, r.Chains[0]) {
			t.Errorf("prompt hashed differently")
		}
		if got := string([]rune(string(unescape(nil, Inside(m["prompt"]))))); got != text {
			t.Errorf("prompt %q, want %q", got, text)
		}
	}
	var messages []json.RawMessage
	if json.Unmarshal(m["messages"], &messages) == nil && r.Kind.hasMessages() {
		n := 0
		for _, raw := range messages {
			if raw[0] == '{' {
				n++
			}
		}
		if n != len(r.talk.messages) {
			t.Errorf("%d messages, want %d", len(r.talk.messages), n)
		}
	}
}

// TestModelThatReadersDifferOn: vLLM takes the last of two fields, others the first, and Go's readers take MODEL for
// model.
func TestModelThatReadersDifferOn(t *testing.T) {
	var p Parser
	f := func(body, model string, unsure bool) {
		t.Helper()
		if r, err := p.Parse(Chat, []byte(body)); err != nil || r.Model != model || r.AmbiguousModel != unsure {
			t.Errorf("%s: %q %v %v; want %q %v", body, r.Model, r.AmbiguousModel, err, model, unsure)
		}
	}
	f(`{"model":"sim","x":{"model":"secret"}}`, "sim", false)
	f(`{"model":"secret","model":"sim"}`, "sim", true)
	f(`{"model":"sim","mod\u0065l":"sim"}`, "sim", true)
	f(`{"model":"sim","MODEL":"secret"}`, "sim", true)
	f(`{"Model":"secret"}`, "", true)
	f("{\"model\":\"s\xff\"}", "s\xff", true)
	f(`{"model":"\u00e9"}`, "é", false)
}

// Who asks for the logprobs of the prompt makes the worker compute all of it.
func TestRecomputed(t *testing.T) {
	f := func(fields string, want bool) {
		t.Helper()
		var p Parser
		r, err := p.Parse(Completion, []byte(`{"model":"m","prompt":"x"`+fields+`}`))
		if err != nil || r.BypassesCache != want {
			t.Errorf("%s: %v, %v; want %v", fields, r.BypassesCache, err, want)
		}
	}
	f("", false)
	f(`,"echo":true`, false)
	f(`,"logprobs":2`, false)
	f(`,"echo":true,"logprobs":2`, true)
	f(`,"logprobs":0,"echo":true`, true)
	f(`,"echo":true,"logprobs":null`, false)
	f(`,"echo":true,"logprobs":false`, false)
	f(`,"echo":true,"logprobs":true,"top_logprobs":3`, true)
	f(`,"prompt_logprobs":0`, true)
	f(`,"prompt_logprobs":null`, false)
}

// TestTrim: what was read and hashed of a request outlives Trim, and its parser reads another body after it.
func TestTrim(t *testing.T) {
	var p Parser
	body := []byte(`{"model":"m","user":"u","messages":[{"role":"user","content":"` + strings.Repeat("hello ", 100) + `"}]}`)
	for range 3 {
		r, err := p.Parse(Chat, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Hash(7)
		want := r.Chains[0].Hashes
		r.Trim()
		r.Trim() // nothing is left to give back
		if r.work != nil || r.Model != "m" || len(want) == 0 || &r.Chains[0].Hashes[0] != &want[0] {
			t.Errorf("%+v", r)
		}
	}
}
