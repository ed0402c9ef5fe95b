package probe

import (
	"strings"
	"testing"
)

func TestParseModels(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		ids, entries, err := parseModels([]byte(body))
		got := "error"
		if err == nil {
			got = strings.Join(ids, " ")
			if len(entries) != len(ids) {
				t.Errorf("%s: %d entries for %d ids", body, len(entries), len(ids))
			}
		}
		if got != want {
			t.Errorf("%s: %q; want %q", body, got, want)
		}
	}
	f(`{"object":"list","data":[{"id":"tiny","x":1},{"id":"lora-a","parent":"tiny"}]}`, "tiny lora-a")
	f(`{"data":[{"id":"a"},{"id":"a"},{"id":""},{"id":3},7]}`, "a")
	f(`{"data":[]}`, "")
	f(`{}`, "error")
	f(`{"data":{}}`, "error")
	f(`<html>`, "error")
}
