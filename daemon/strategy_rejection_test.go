package daemon

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// rejects turns every request away with the status that stands in max_tokens; without a status it says nothing.
const rejects = `(module
  (memory (export "memory") 1)
  (data (i32.const 8) "the share of team \"a\" is used up")
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    i32.const 1076 i32.load i32.eqz if i64.const 0xffff_fffe return end  ;; MaxTokens
    i32.const 1176 i32.const 1076 i32.load i32.store                     ;; RejectStatus
    i32.const 1180 i32.const 90 i32.store                                ;; RetryAfter
    i32.const 1184 i32.const 8 i32.store                                 ;; RejectText
    i32.const 1188 i32.const 32 i32.store                                ;; RejectLen
    i64.const 0xffff_fffe)
)`

// What a strategy says with its rejection is what the client gets, in the shape of the endpoint.
func TestRejectionSaysWhatTheStrategySays(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{})
	wasm, err := wasmtest.Assemble(rejects)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rejects.wasm")
	write(t, file, string(wasm))
	r := start(t, settings("mine", f.URLs()...)+fmt.Sprintf("[strategies.mine]\npath = %q\n", file), 1)
	check := func(path, body string, status int, retry, want string) {
		t.Helper()
		s := r.do("POST", path, body)
		if s.status != status || s.header.Get("Retry-After") != retry || string(s.body) != want {
			t.Errorf("%s %s: %d, Retry-After %q, %s; want %d, %q, %s",
				path, body, s.status, s.header.Get("Retry-After"), s.body, status, retry, want)
		}
	}
	const words = `the share of team \"a\" is used up`
	openai := func(message, kind string) string {
		return fmt.Sprintf(`{"error":{"message":"%s","type":"%s","param":null,"code":"rejected_by_strategy"}}`, message, kind)
	}
	asked := func(n int) string { return fmt.Sprintf(`{"model":"sim","prompt":"x","max_tokens":%d}`, n) }
	check("/v1/completions", asked(403), 403, "90", openai(words, "permission_error"))
	check("/v1/completions", asked(503), 503, "90", openai(words, "service_unavailable"))
	check("/v1/completions", asked(200), 429, "90", openai(words, "rate_limit_error"))
	check("/v1/completions", `{"model":"sim","prompt":"x"}`, 429, "1",
		openai("the routing strategy refused the request; try again shortly", "rate_limit_error"))
	check("/v1/messages", `{"model":"sim","max_tokens":400,"messages":[{"role":"user","content":"x"}]}`, 400, "90",
		`{"type":"error","error":{"type":"invalid_request_error","message":"`+words+`"}}`)
}
