package tokens

import "testing"

func TestUnreported(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		text := append(make([]byte, 0, len(body)+7), body...) // with room behind it, as a buffer has
		if got := string(Unreported(text)); got != want || string(text) != body {
			t.Errorf("%s: got %s; want %s", body, got, want)
		}
	}
	same := func(body string) { t.Helper(); f(body, body) }
	f(`{"model":"m","vllm_xargs":{"kv_cache_report_mode":"full"},"prompt":"x"}`, `{"model":"m","vllm_xargs":{},"prompt":"x"}`)
	f(` { "vllm_xargs" : {"a":1, "kv_cache_report_mode" : "full", "é\"":[{}]} , "n":2} `,
		` { "vllm_xargs" : {"a":1,"é\"":[{}]} , "n":2} `)
	f(`{"vllm_xargs":{"kv_cache_report_mode":1,"kv_cache_report_mode":2}}`, `{"vllm_xargs":{}}`)
	same(`{"prompt":"\"kv_cache_report_mode\""}`)
	same(`{"prompt":"kv_cache_report_mode","vllm_xargs":{"a":1}}`)
	same(`{"kv_cache_report_mode":"full"}`) // there it is nothing
	same(`{"vllm_xargs":["kv_cache_report_mode"]}`)
	same(`{"vllm_xargs":{"kv_cache_report_mode":"full"`) // the worker refuses it
	same(`{}`)
}
