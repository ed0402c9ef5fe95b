package message

import (
	"strings"
	"testing"
)

func TestPlainPath(t *testing.T) {
	f := func(path, want string, ok bool) {
		t.Helper()
		if got, plain := plainPath(path); plain != ok || ok && got != want {
			t.Errorf("%q: %q %v; want %q %v", path, got, plain, want, ok)
		}
	}
	same := func(path string) { t.Helper(); f(path, path, true) }
	bad := func(path string) { t.Helper(); f(path, "", false) }
	same("/v1/chat/completions")
	same("/v1/files/")
	same("/v1/a..b/...")
	same("/v1/a%20b%3Fc%25d%C3%A9")
	same("/v1/naïve")
	same("*")
	f("/v1/%6c%6F%61d_lora_adapte%72", "/v1/load_lora_adapter", true)
	f("/v1/%72%65sponses/resp%5fx%2D1", "/v1/responses/resp_x-1", true)
	f("/v1/a%252fb", "/v1/a%252fb", true) // decoded once only
	for _, path := range []string{
		"/v1/..%2fsleep", "/v1/%2e%2e%2fsleep", "/v1/x/..%2f..%2fsleep", "/v1/responses/..%2F..%2Fmetrics", "/v1/%2e%2e/sleep", "/v1/%2E./sleep",
		"/v1/../sleep", "/v1/./x", "/v1/..", "/v1/.", "/v1/%2e", "..", "/v1/..%5csleep", `/v1/..\sleep`, `/v1/a\b`, "/v1/x%5Cy", "/v1/models%00", "/v1/a%0d%0ab",
		"/v1/a%7f", "/v1//sleep", "//v1/x", "/v1/x//", "/v1/a b", "/v1/a\x7f", "/v1/a%", "/v1/a%2", "/v1/a%zz", "/v1/%", "/v1/a%2/x", "/v1/%2",
	} {
		bad(path)
	}
}

// TestWhatIsWrongWithAPath: an error names the one fault, and the mistake in the client's settings that makes it.
func TestWhatIsWrongWithAPath(t *testing.T) {
	f := func(method, path string, role Role, want string) {
		t.Helper()
		if got := Classify(method, path).Role; got != role {
			t.Errorf("%s is for role %d; want %d", path, got, role)
		}
		fault := FaultNothing(path)
		if role == Malformed {
			fault = FaultPath(path)
		}
		if !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %q; want %q", path, fault.Message, want)
		}
	}
	f("POST", "/v1/v1/messages", Nobody, `"/v1" is there twice`)
	f("POST", "/v1/%76%31/messages", Nobody, "nothing at this URL")
	f("POST", "//v1/chat/completions", Nobody, "empty segment")
	f("POST", "/v1//chat/completions", Malformed, "empty segment")
	f("POST", `/v1/chat\\completions`, Malformed, "backslash")
	f("POST", "/v1/../health", Malformed, `".."`)
	f("POST", "/v1/..%2fhealth", Malformed, "encoded slashes")
	f("POST", "/openai/v1/chat/completions", Nobody, "the API is under /v1")
}
