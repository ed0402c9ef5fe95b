package vllmsim

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// BenchmarkPrepare60KB is a chat of 60 KB from its bytes to a sequence: JSON, template, tokens, block hashes.
func BenchmarkPrepare60KB(b *testing.B) {
	cfg, _ := Config{}.withDefaults()
	ranks, err := newRanks(&cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer ranks.close()
	api := chatAPI{checker{cfg: &cfg, ranks: ranks, pins: newPins(&cfg)}}
	var turns []string
	for i := range 12 {
		turns = append(turns, engine.TextOfTokens(uint64(i), 1250))
	}
	raw := chatBody(true, 100, turns...)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", "application/json")
		if _, err := api.prepareChat(r, []byte(raw)); err != nil {
			b.Fatal(err.Message)
		}
	}
}

// BenchmarkRequest60KB is a whole request through the handler with next to no waiting: 60 KB in, 16 tokens out.
func BenchmarkRequest60KB(b *testing.B) {
	s, _ := New(Config{Speed: 1e6, KVTokens: 1 << 20})
	defer s.Close()
	raw := chatBody(false, 16, strings.Repeat("x", 60000))
	b.ReportAllocs()
	for b.Loop() {
		if w := do(s, "POST", "/v1/chat/completions", raw); w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}
