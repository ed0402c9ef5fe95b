package pair

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// seen returns a body as an engine reads it. vLLM's Rust front end refuses a field that comes twice.
func seen(t *testing.T, body []byte) map[string]any {
	t.Helper()
	d, had := json.NewDecoder(bytes.NewReader(body)), map[any]bool{}
	for _, err := d.Token(); err == nil && d.More(); {
		key, _ := d.Token()
		if had[key] {
			t.Errorf("%v comes twice: %s", key, body)
		}
		had[key] = true
		var value any
		err = d.Decode(&value)
	}
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

const chat = `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},` +
	`"max_tokens":256,"min_tokens":9}`

// The first leg as vLLM's toy_proxy_server.py sends it (tests/v1/kv_connector/nixl_integration, 2026): an answer of one
// token that is no stream, without stream_options and min_tokens.
func TestPrefillLeg(t *testing.T) {
	f := func(c Connector, kind prompt.Kind, body, want string) {
		t.Helper()
		x := Transfer{Connector: c, Kind: kind, ID: "id-1", Host: "10.0.0.7", Bootstrap: 8998, Room: 42}
		got, was := seen(t, x.Prefill([]byte(body))), seen(t, []byte(body))
		for name, value := range seen(t, []byte(want)) {
			if !reflect.DeepEqual(got[name], value) {
				t.Errorf("%s, %s: %s is %v; want %v", c, body, name, got[name], value)
			}
			delete(got, name)
			delete(was, name)
		}
		if !reflect.DeepEqual(got, was) {
			t.Errorf("%s, %s: beside that %v; want %v", c, body, got, was)
		}
	}
	one := `"stream":false,"stream_options":null,"max_tokens":1,"max_completion_tokens":1,"min_tokens":0,"n":1`
	f(NIXL, prompt.Chat, chat, `{`+one+`,"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,
		"remote_engine_id":null,"remote_block_ids":null,"remote_host":null,"remote_port":null}}`)
	f(LMCache, prompt.Chat, chat, `{`+one+`}`)
	// SGLang's router gives both bodies the same three fields; the room has 63 bits.
	f(SGLang, prompt.Chat, chat, `{`+one+`,"bootstrap_host":"10.0.0.7","bootstrap_port":8998,"bootstrap_room":42}`)
	// vLLM's mooncake_connector_proxy.py, with the transfer_id that it has since 2026.
	f(Mooncake, prompt.Chat, chat, `{`+one+`,"ignore_eos":true,"stop_token_ids":null,"kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,
		"transfer_id":"xfer-id-1"}}`)
	f(LMCache, prompt.Completion, `{"prompt":"hi","best_of":2}`,
		`{"stream":false,"stream_options":null,"max_tokens":1,"min_tokens":0,"n":1}`)
	f(LMCache, prompt.Responses, `{"input":"hi","max_output_tokens":9,"min_tokens":5}`,
		`{"stream":false,"max_output_tokens":1,"min_tokens":0,"store":false,"background":false}`)
	f(LMCache, prompt.Messages, `{"messages":[],"max_tokens":9}`, `{"stream":false,"max_tokens":1}`)
	f(LMCache, prompt.Messages, "{ }\n", `{"stream":false,"max_tokens":1}`)
	// vLLM 0.32 refuses a budget that is not less than max_tokens, but for a prefill with do_remote_decode.
	f(LMCache, prompt.Messages, `{"max_tokens":1100,"thinking":{"type":"enabled","budget_tokens":1024}}`,
		`{"stream":false,"max_tokens":1,"thinking":null}`)
	f(LMCache, prompt.Messages, `{"thinking":{"type":"disabled"}}`, `{"stream":false,"max_tokens":1}`)
	f(LMCache, prompt.Messages, `{"messages":[{"thinking":{"type":"enabled"}}]}`, `{"stream":false,"max_tokens":1}`)
}

// The second leg: the client's body, and where the KV is.
func TestDecodeLeg(t *testing.T) {
	handed := `{"do_remote_prefill": true, "do_remote_decode": false, "remote_block_ids": [[3,4]], "remote_engine_id": "e",` +
		` "remote_host": "10.0.0.7", "remote_port": 5600, "remote_request_id": "x", "tp_size": 1}`
	f := func(x Transfer, handed, want string) {
		t.Helper()
		var h []byte
		if handed != "" {
			h = []byte(handed)
		}
		got := string(x.Decode([]byte(chat), h))
		if start := strings.TrimSuffix(chat, "}"); got != start+want {
			t.Errorf("%s:\n got %s\nwant %s", x.Connector, got, start+want)
		}
	}
	f(Transfer{Connector: NIXL}, handed, `,"kv_transfer_params":`+handed+`}`) // byte for byte
	f(Transfer{Connector: NIXL}, "", `}`)
	f(Transfer{Connector: LMCache}, handed, `}`)
	f(Transfer{Connector: Sidecar}, "", `}`)
	f(Transfer{Connector: Mooncake, ID: "i", Host: "10.0.0.7", Bootstrap: 8998, Engine: "e"}, "",
		`,"kv_transfer_params":{"do_remote_decode":false,"do_remote_prefill":true,`+
			`"remote_bootstrap_addr":"http://10.0.0.7:8998","remote_engine_id":"e","transfer_id":"xfer-i"}}`)
	f(Transfer{Connector: SGLang, Host: "fe80::1", Bootstrap: 9, Room: 1}, "",
		`,"bootstrap_host":"fe80::1","bootstrap_port":9,"bootstrap_room":1}`)
}

// TestLegsReplaceFields: fields that the router writes take the place of the client's, which come in any form.
func TestLegsReplaceFields(t *testing.T) {
	own := `{"kv_transfer_params":{"do_remote_prefill":true},"max_tok\u0065ns":5,"n":1,"stream":true,"prompt":"x \"n\":2",` +
		`"cache_salt":"mine","bootstrap_room":7,"min_tokens":null}`
	for _, c := range []Connector{NIXL, LMCache, Mooncake, SGLang, Sidecar} {
		x := Transfer{Connector: c, Kind: prompt.Completion, ID: "i", Host: "h", Bootstrap: 1, Engine: "e", Room: 4}
		first, second := seen(t, x.Prefill([]byte(own))), seen(t, x.Decode([]byte(own), []byte(`{"a":1}`)))
		if first["max_tokens"] != 1.0 || first["stream"] != false || second["max_tokens"] != 5.0 || second["stream"] != true ||
			first["prompt"] != second["prompt"] || second["cache_salt"] != "mine" || (c != SGLang) == (second["bootstrap_room"] != nil) {
			t.Errorf("%s: %v, then %v", c, first, second)
		}
		if free := seen(t, x.Free([]byte(own), []byte(`{"a":1}`))); free["cache_salt"] == "mine" || free["max_tokens"] != 1.0 {
			t.Errorf("%s: freed by %v", c, free)
		}
	}
}

// TestLegsOfTokenIDs: what decides the answer to token ids stands in sampling_params, and kv_transfer_params in both
// places in which releases of vLLM look for them. A client's own do not pass in either.
func TestLegsOfTokenIDs(t *testing.T) {
	own := `{"token_ids":[1,2],"sampling_params":{"max_tokens":50,"min_tokens":5,"n":1,"temperature":0.5,"seed":12345678901234567890,` +
		`"extra_args":{"a":1,"kv_transfer_params":{"remote_host":"evil"}}},"kv_transfer_params":{"remote_host":"evil"},"stream":true}`
	inside := func(body map[string]any) (sampling, extra map[string]any) {
		sampling, _ = body["sampling_params"].(map[string]any)
		extra, _ = sampling["extra_args"].(map[string]any)
		return sampling, extra
	}
	for _, c := range []Connector{NIXL, LMCache, Mooncake} {
		x := Transfer{Connector: c, Kind: prompt.Tokens, ID: "i", Host: "h", Bootstrap: 1, Engine: "e"}
		first := seen(t, x.Prefill([]byte(own)))
		s, extra := inside(first)
		if s["max_tokens"] != 1.0 || s["min_tokens"] != 0.0 || s["n"] != 1.0 || s["temperature"] != .5 || first["stream"] != false ||
			first["max_tokens"] != nil || (c == Mooncake) != (s["ignore_eos"] == true) || extra["a"] != 1.0 ||
			!reflect.DeepEqual(extra["kv_transfer_params"], first["kv_transfer_params"]) || (c == LMCache) != (first["kv_transfer_params"] == nil) {
			t.Errorf("%s: the first leg is %v", c, first)
		}
		body := x.Decode([]byte(own), []byte(`{"remote_host":"h"}`))
		second := seen(t, body)
		s, extra = inside(second)
		if s["max_tokens"] != 50.0 || s["min_tokens"] != 5.0 || second["stream"] != true || bytes.Contains(body, []byte("evil")) ||
			!bytes.Contains(body, []byte("12345678901234567890")) || !reflect.DeepEqual(extra["kv_transfer_params"], second["kv_transfer_params"]) {
			t.Errorf("%s: the second leg is %v", c, second)
		}
	}
	x := Transfer{Connector: NIXL, Kind: prompt.Tokens}
	for _, wrong := range []string{`{"token_ids":[1]}`, `{"token_ids":[1],"sampling_params":[]}`, `{"token_ids":[1],"sampling_params":null}`} {
		if got := seen(t, x.Decode([]byte(wrong), []byte(`{}`))); !reflect.DeepEqual(got["sampling_params"], seen(t, []byte(wrong))["sampling_params"]) {
			t.Errorf("%s: %v: no engine could refuse it", wrong, got)
		}
	}
}

// TestCutByAnswer: bodies whose prompt an older engine cuts by the length of the answer are not split.
func TestCutByAnswer(t *testing.T) {
	for body, want := range map[string]bool{`{"truncate_prompt_tokens":-1}`: true, `{"truncation":"auto"}`: true,
		`{"trunc\u0061te_prompt_tokens":-1}`: true, `{"truncate_prompt_tokens":500}`: false, `{"truncation":"disabled"}`: false,
		`{"prompt":"truncation auto"}`: false, `{"truncate_prompt_tokens":null}`: false, chat: false} {
		if got := CutByAnswer([]byte(body)); got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

// A client's own fields do not name a prefiller, however it writes them, and wherever a long body is cut. Nothing else
// changes.
func TestAlone(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := string(Alone([]byte(body))); got != want {
			t.Errorf("%s became %s; want %s", body, got, want)
		}
		for _, from := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body))} {
			if got, err := io.ReadAll(AloneAll(from)); err != nil || string(got) != want {
				t.Errorf("%s, read, became %s, %v; want %s", body, got, err, want)
			}
		}
	}
	same := func(body string) { t.Helper(); f(body, body) }
	f(`{"kv_transfer_params":{"do_remote_prefill":true,"remote_host":"10.0.0.9"}}`, `{}`)
	f(`{"kv_transf\u0065r_params":{"do_remote_prefill":true}}`, `{}`)
	f(`{"kv\u005Ftransfer_params":1,"a":1}`, `{"a":1}`)
	f(`{"bootstrap_room":1,"bootstrap_host":"10.0.0.9","a":"kv_transfer_params"}`, `{"a":"kv_transfer_params"}`)
	f(`{"a":1,"bootstrap_port":[{"x":"}]\"\\"},[]],"b":2,"kv_transfer_params":null}`, `{"a":1,"b":2}`)
	f(` {"kv_transfer_params":{"a":[{"b":"}\"}\\"},[]]},"kv_transfer_params":1}`+"\n ", ` {}`+"\n ")
	f(`{"vllm_xargs":{"kv_transfer_params":"x","seed":12345678901234567890}}`, `{"vllm_xargs":{"seed":12345678901234567890}}`)
	f(`{"vllm_xargs":{"seed":1,"kv_transfer_p\u0061rams":["x"]},"VLLM_XARGS":{}}`, `{"vllm_xargs":{"seed":1},"VLLM_XARGS":{}}`)
	f(`{"vllm_xargs":{"kv_transfer_params":"x"},"temperature":NaN}`, `{"vllm_xargs":{},"temperature":NaN}`)
	f(`{"sampling_params":{"extra_args":{"kv_transfer_params":{"do_remote_prefill":true}}}}`, `{"sampling_params":{"extra_args":{}}}`)
	f(`{"sampling_params":[{"a":[[{"kv_transfer_params":0,"b":1}],2],"kv_transfer_params":0}],"messages":[{"kv_transfer_params":1}]}`,
		`{"sampling_params":[{"a":[[{"b":1}],2]}],"messages":[{"kv_transfer_params":1}]}`)
	f(`{"vllm_xargs":1,"vllm_xargs":{"kv_transfer_params":1},"messages":{"kv_transfer_params":1}}`,
		`{"vllm_xargs":1,"vllm_xargs":{},"messages":{"kv_transfer_params":1}}`)
	f("\xef\xbb\xbf{\"kv_transfer_params\":1}", "\xef\xbb\xbf{}")
	space := strings.Repeat(" \n", 1<<14)
	f(`{"a":1,`+space+`"kv_transfer_params"`+space+`:`+space+`{}`+space+`}`, `{"a":1}`)
	for _, body := range []string{chat, `{}`, ``, `[1]`, `{"a":`, "null", `{"a":"kv","vllm_xargs":{"b":"\u20ac"}}`, `"}"}`,
		`{"a`, `{"a":1,"kv_transfer_param`, `[{"kv_transfer_params":1}]`, `{"kv_transfer_params_of":1,"x_kv_transfer_params":2}`,
		`{"` + strings.Repeat(`\u0061`, 99) + `":1,"b":["kv_transfer_params",{"bootstrap_room":1}]}`} {
		same(body)
	}
}

// TestSecret: a decoder's parameters are null for clients, in whole answers and in events, and nothing else changes.
func TestSecret(t *testing.T) {
	f := func(answer, want string, events bool) {
		t.Helper()
		for _, from := range []io.Reader{strings.NewReader(answer), iotest.OneByteReader(strings.NewReader(answer))} {
			if got, err := io.ReadAll(Secret(from, events)); err != nil || string(got) != want {
				t.Errorf("%s became %s, %v; want %s", answer, got, err, want)
			}
		}
	}
	const own = `"kv_transfer_params":{"remote_host":"10.0.0.1","a":["}",{}]}`
	f(`{"id": "x", `+own+`, "choices": [{"a": 1}]}`, `{"id": "x", "kv_transfer_params":null, "choices": [{"a": 1}]}`, false)
	f(`{`+own+`}`, `{"kv_transfer_params":null}`, false)
	f(`{"a":[{`+own+`}],"b":{`+own+`}}`, `{"a":[{`+own+`}],"b":{`+own+`}}`, false)
	f("data: {"+own+",\"a\":1}\n\ndata: {\"response\":{"+own+"}}\n\ndata: [DONE]\n\n",
		"data: {\"kv_transfer_params\":null,\"a\":1}\n\ndata: {\"response\":{\"kv_transfer_params\":null}}\n\ndata: [DONE]\n\n", true)
	for _, same := range []string{``, `[]`, `{ "a" : "b" }`, `{"a`, "<html>", `{"kv_transfer_params":null}`} {
		f(same, same, false)
	}
}

// drop is Alone as an oracle: of what encoding/json reads.
func drop(v any, depth int, extra bool) any {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			if depth == 0 && slices.Contains(clientsMayNot, name) || extra && name == keyParams {
				delete(v, name)
				continue
			}
			v[name] = drop(x, depth+1, extra || depth == 0 && slices.Contains(extras, name))
		}
	case []any:
		for i := range v {
			v[i] = drop(v[i], depth+1, extra)
		}
	}
	return v
}

func FuzzAlone(f *testing.F) {
	f.Add(`{"vllm_xargs":{"kv_transfer_params":"x","seed":[1,{"kv_transfer_params":{}}]},"bootstrap_host":[],"a":"b"}`)
	f.Add(`{"sampling_params":[{"a":[[{"kv_transfer_params":0,"b":1}],2],"kv_transfer_params":0}],"a\u005f":{}}`)
	f.Fuzz(func(t *testing.T, body string) {
		var m, got any
		out := Alone([]byte(body))
		read, _ := io.ReadAll(AloneAll(iotest.OneByteReader(strings.NewReader(body))))
		if json.Unmarshal([]byte(body), &m) != nil {
			return
		}
		if _, is := m.(map[string]any); !is {
			return
		}
		for _, text := range [][]byte{out, read} {
			if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, drop(m, 0, false)) {
				t.Errorf("%s became %s, %v", body, text, err)
			}
		}
	})
}

func TestHanded(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		if got := string(Handed([]byte(answer))); got != want {
			t.Errorf("%s: %s; want %s", answer, got, want)
		}
	}
	f(`{"id":"x","choices":[],"kv_transfer_params":{"a": 1}}`, `{"a": 1}`)
	f(`{"kv_transfer_params":null}`, "") // vLLM without a connector
	f(`{"kv_transfer_params":"x"}`, "")
	f(`{"id":"x"}`, "")
	f(`{`, "")
	if got := EngineOf([]byte(`{"0":{"engine_id":"a"},"1":{"engine_id":"b"}}`), 1); got != "b" {
		t.Errorf("the engine of rank 1 is %q", got)
	}
	if EngineOf([]byte(`{"0":{}}`), 0) != "" || EngineOf([]byte(`[`), 0) != "" {
		t.Error("an engine without a name")
	}
}

// What has the prefiller free its memory is a second leg with an answer of one token.
func TestFreeing(t *testing.T) {
	x := Transfer{Connector: NIXL, Kind: prompt.Chat}
	got := seen(t, x.Free([]byte(chat), []byte(`{"remote_block_ids":[1]}`)))
	again := seen(t, x.Free([]byte(chat), []byte(`{"remote_block_ids":[1]}`)))
	if salt, _ := got["cache_salt"].(string); len(salt) < 26 || salt == again["cache_salt"] {
		t.Errorf("salt %q, then %q: what it reads may be cached for others", salt, again["cache_salt"])
	}
	if got["max_tokens"] != 1.0 || got["stream"] != false || got["kv_transfer_params"].(map[string]any)["remote_block_ids"] == nil {
		t.Errorf("%v", got)
	}
}

func FuzzLegs(f *testing.F) {
	f.Add(chat)
	f.Add(`{"a":"}"} `)
	f.Fuzz(func(t *testing.T, body string) {
		var m map[string]any
		valid := json.Unmarshal([]byte(body), &m) == nil && m != nil
		x := Transfer{Connector: NIXL, Kind: prompt.Chat}
		for _, out := range [][]byte{x.Prefill([]byte(body)), x.Decode([]byte(body), []byte(`{}`)), Alone([]byte(body))} {
			if valid && !json.Valid(out) {
				t.Errorf("%q became %q", body, out)
			}
		}
		Handed([]byte(body))
		EngineOf([]byte(body), 0)
	})
}
