package vllmsim

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkPrepare60KB is a chat of 60 KB from its bytes to a sequence: JSON, template, tokens, block hashes.
func BenchmarkPrepare60KB(b *testing.B) {
	s, _ := New(Config{})
	defer s.Close()
	var turns []string
	for i := range 12 {
		turns = append(turns, TextOfTokens(uint64(i), 1250))
	}
	raw := chatBody(true, 100, turns...)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", "application/json")
		if _, err := s.prepareChat(r, []byte(raw)); err != nil {
			b.Fatal(err.Message)
		}
	}
}

// BenchmarkStep32 is one decode step of 32 sequences, without the waiting: what a simulated 15 ms costs.
func BenchmarkStep32(b *testing.B) {
	cfg, _ := Config{}.withDefaults()
	var e *engine
	fill := func() {
		e = newEngine(cfg)
		e.close() // its goroutine; the steps are driven from here
		for i := range 32 {
			q := newSequence(appendTokens(nil, TextOfTokens(uint64(i), 100)), "", 0, BlockTokens)
			q.max, q.notify = 1<<30, make(chan struct{}, 1)
			e.waiting = append(e.waiting, q)
		}
		e.schedule(0)
	}
	fill()
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		if i%10000 == 0 { // before the cache is full
			b.StopTimer()
			fill()
			b.StartTimer()
		}
		e.complete()
		e.schedule(e.clock)
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
