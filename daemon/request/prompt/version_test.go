package prompt

import (
	"strings"
	"testing"
)

// TestTextVersion holds the hashes of TextVersion 1: routers share history by them. Where it fails because the canonical
// text has changed, raise TextVersion and write the new hashes here.
func TestTextVersion(t *testing.T) {
	long := strings.Repeat("All work and no play. ", 20)
	for _, c := range []struct {
		name string
		kind Kind
		body string
		want uint64 // of the last whole block
	}{
		{"text", Completion, `{"model":"m","prompt":"` + long + `"}`, 0x173e7ebe88a4da52},
		{"ids", Completion, `{"model":"m","prompt":[` + strings.Repeat("17,", 99) + `4]}`, 0x8871bda615add92},
		{"chat", Chat, `{"model":"m","messages":[{"role":"system","content":"` + long + `"},{"role":"user","content":"hi"}]}`, 0x4be73f1bdc3511c},
		{"tools", Chat, `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":[` +
			`{"type":"text","text":"` + long + `"},{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}]}`, 0xbd2251f7b01499a},
		{"messages", Messages, `{"model":"m","system":"` + long + `","messages":[{"role":"user","content":"hi"}]}`, 0x4be73f1bdc3511c},
	} {
		chains := parse(t, c.kind, c.body).Chains
		if len(chains) != 1 || len(chains[0].Hashes) == 0 {
			t.Fatalf("%s: %d chains", c.name, len(chains))
		}
		h := chains[0].Hashes
		if got := h[len(h)-1]; TextVersion != 1 || got != c.want {
			t.Errorf("%s: version %d, %#x; want 1, %#x", c.name, TextVersion, got, c.want)
		}
	}
}
