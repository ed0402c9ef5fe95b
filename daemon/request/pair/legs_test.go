package pair

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// seen returns a body as an engine reads it: of a field that comes twice the last.
func seen(t *testing.T, body []byte) map[string]any {
	t.Helper()
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
		x := Transfer{Connector: c, Kind: kind, ID: "id-1", Host: "10.0.0.7", Bootstrap: 8998, Room: 84}
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
	f(LMCache, prompt.Responses, `{"input":"hi","max_output_tokens":9}`,
		`{"stream":false,"max_output_tokens":1,"store":false,"background":false}`)
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
	f(Transfer{Connector: SGLang, Host: "fe80::1", Bootstrap: 9, Room: 3}, "",
		`,"bootstrap_host":"fe80::1","bootstrap_port":9,"bootstrap_room":1}`)
}

// A client's own fields do not name a prefiller, however it writes them.
func TestAlone(t *testing.T) {
	for _, body := range []string{
		`{"kv_transfer_params":{"do_remote_prefill":true,"remote_host":"10.0.0.9"}}`,
		`{"kv_transf\u0065r_params":{"do_remote_prefill":true}}`,
		`{"bootstrap_room":1,"bootstrap_host":"10.0.0.9","a":"kv_transfer_params"}`,
		`{"vllm_xargs":{"kv_transfer_params":"x","seed":12345678901234567890}}`,
		`{"vllm_xargs":{"seed":12345678901234567890,"kv_transfer_p\u0061rams":["x"]},"VLLM_XARGS":{}}`,
		`{"sampling_params":{"extra_args":{"kv_transfer_params":{"do_remote_prefill":true}}}}`,
	} {
		text := Alone([]byte(body))
		got := seen(t, text)
		if x, has := got["vllm_xargs"].(map[string]any); has && (x["kv_transfer_params"] != nil || !strings.HasSuffix(string(text),
			`{"seed":12345678901234567890}}`)) {
			t.Errorf("%s became %s", body, text)
		}
		if p, has := got["sampling_params"].(map[string]any); has && len(p["extra_args"].(map[string]any)) > 0 {
			t.Errorf("%s became %s", body, text)
		}
		for _, name := range clientsMayNot {
			if got[name] != nil {
				t.Errorf("%s: %s is %v", body, name, got[name])
			}
		}
	}
	const nan = `{"vllm_xargs":{"kv_transfer_params":"x"},"temperature":NaN}`
	if text := string(Alone([]byte(nan))); !strings.HasSuffix(text, `,"kv_transfer_params":null,"vllm_xargs":null}`) {
		t.Errorf("%s became %s", nan, text)
	}
	for _, body := range []string{chat, `{}`, ``, `[1]`, `{"a":`, "null", `{"a":"kv","vllm_xargs":{"b":"\u20ac"}}`} {
		if got := Alone([]byte(body)); string(got) != body {
			t.Errorf("%q became %q", body, got)
		}
	}
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
