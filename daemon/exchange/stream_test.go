package exchange

import (
	"strings"
	"testing"
)

// TestBrokenStreamInCapitals: a media type has no case.
func TestBrokenStreamInCapitals(t *testing.T) {
	f := func(what, from string) {
		t.Helper()
		got := newScene(t, []string{from}).chat()
		if !got.broken || !strings.Contains(got.body, word) || !strings.Contains(got.body, `"code":"worker_broke_off"`) {
			t.Errorf("%s: broken %v, the client gets\n%s", what, got.broken, got.body)
		}
	}
	plain := streamed(role, word, pause, "cut")
	f("as vLLM writes", plain)
	f("in capitals", strings.Replace(plain, "text/event-stream", "Text/Event-Stream; Charset=UTF-8", 1))
}
