package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
)

// TestWhyOfAPair: why says who computed the prompt, and whether the strategy or the host decided it, of a decision that
// the daemon keeps and of a line of its log alike.
func TestWhyOfAPair(t *testing.T) {
	f := func(what, kept, logged string, want ...string) {
		t.Helper()
		const begin = `{"id":"r1","pool":"main","strategy":"mine","model":"m","worker":"d1","status":200,"seconds":1`
		d := new(decisions.Decision)
		if err := json.Unmarshal([]byte(begin+kept+"}"), d); err != nil {
			t.Fatal(err)
		}
		line, err := findInLog(strings.NewReader(begin+`,"time":"2026-11-27T10:00:01Z"`+logged+"}\n"), "r1")
		if err != nil {
			t.Fatal(err)
		}
		for of, d := range map[string]*decisions.Decision{"kept": d, "logged": line} {
			var b strings.Builder
			if err := explain(&b, d); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(b.String()) {
				if strings.HasPrefix(line, "pair") || strings.HasPrefix(line, "prefill") {
					got = append(got, strings.Join(strings.Fields(line), " "))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q; want %q", what, of, got, want)
			}
		}
	}
	f("one worker", "", "")
	f("a pair", `,"pair":"p1","split":{"prefiller":"p1","named":true,"result":"done","took_ns":120000000}`,
		`,"pair":"p1","prefiller":"p1","prefill":"done","prefill_seconds":0.12`,
		"prefill at p1, which the strategy named: done after 120ms")
	f("another prefiller", `,"pair":"p1","split":{"prefiller":"p0","result":"done","took_ns":120000000}`,
		`,"pair":"p1","prefiller":"p0","prefill":"done","prefill_seconds":0.12`,
		"pair the strategy named p1 for the prompt", "prefill at p0: done after 120ms")
	f("no prefiller", `,"pair":"p1","split":{"result":"failed","took_ns":2000000}`,
		`,"pair":"p1","prefiller":"","prefill":"failed","prefill_seconds":0.002`,
		"pair the strategy named p1 for the prompt", "prefill by no prefiller: failed after 2ms")
	f("nobody else", `,"pair":"d1"`, `,"pair":"d1"`, "pair the strategy named d1 for the prompt")
	f("a long body", `,"split":{"result":"long_body"}`, `,"prefiller":"","prefill":"long_body","prefill_seconds":0`,
		"prefill where it is answered: the body is above server.buffer_body_bytes, and such ones are not split")
	f("the host decided", `,"split":{"prefiller":"p0","result":"done","took_ns":120000000}`,
		`,"prefiller":"p0","prefill":"done","prefill_seconds":0.12`, "prefill at p0: done after 120ms")
}
