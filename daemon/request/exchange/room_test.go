//go:build linux && !race

package exchange

import (
	"strings"
	"testing"
)

// TestExchangeHoldsNothingWhileItWaits: the reads of a stream hold no memory while the worker says nothing, and lose
// nothing by that, at an event's end and within one. What an event began with is held until its end.
func TestExchangeHoldsNothingWhileItWaits(t *testing.T) {
	f := func(what string, least int, parts ...string) {
		t.Helper()
		got := newScene(t, []string{streamed(parts...)}).chat()
		if want := strings.ReplaceAll(strings.Join(parts, ""), pause, ""); got.body != want || got.broken {
			t.Errorf("%s: %q; want %q", what, got.body, want)
		}
		if got.waits < least {
			t.Errorf("%s: %d waits without memory; want at least %d", what, got.waits, least)
		}
	}
	f("between events", 3, role, word, pause, word, pause, word, pause, stop, done)
	f("within an event", 1, role, word, pause, word[:9], pause, word[9:], pause, stop[:20], pause, stop[20:], done)
}
