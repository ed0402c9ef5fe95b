package vllmsim

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAdapters loads, uses, shows and unloads an adapter, as vLLM does.
func TestAdapters(t *testing.T) {
	s, err := New(Config{MaxLoras: 2, LoraLoad: .01, Loras: []string{"old"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	f := func(path, body string, status int, words ...string) {
		t.Helper()
		var resp *http.Response
		var err error
		if body == "" {
			resp, err = http.Get(s.URL() + path)
		} else {
			resp, err = http.Post(s.URL()+path, "application/json", strings.NewReader(body))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		for _, w := range words {
			if resp.StatusCode != status || !strings.Contains(string(text), w) {
				t.Errorf("%s %s: %d %s; want %d with %q", path, body, resp.StatusCode, text, status, w)
			}
		}
	}
	const call, chat = `{"lora_name":"new","lora_path":"/a/new"}`, `{"model":"new","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`
	f("/v1/chat/completions", chat, 404, "does not exist")
	f("/v1/load_lora_adapter", call, 200, "Success")
	f("/v1/load_lora_adapter", call, 400, "already been loaded")
	f("/v1/load_lora_adapter", `{"lora_name":"m","lora_path":"/a/missing-m"}`, 404, "No adapter found")
	f("/v1/load_lora_adapter", `{"lora_name":"m"}`, 400, "must be provided")
	f("/v1/models", "", 200, `"parent":"sim"`, `"id":"old"`, `"root":"/a/new"`)
	f("/v1/chat/completions", chat, 200, `"model":"new"`)
	f("/metrics", "", 200, `vllm:lora_requests_info{max_lora="2",running_lora_adapters="",waiting_lora_adapters=""} 1`)
	f("/v1/unload_lora_adapter", call, 200, "removed")
	f("/v1/unload_lora_adapter", call, 404, "cannot be found")
	f("/v1/chat/completions", chat, 404, "does not exist")
}
