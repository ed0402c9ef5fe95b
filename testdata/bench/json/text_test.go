package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// BenchmarkFromText goes from the text of a prompt, its JSON read already, to what each of 8 workers holds of it: hashing and
// one walk of the index. A token is 4 bytes of prose. It stands here, as prompt and prefix are strangers to each other.
func BenchmarkFromText(b *testing.B) {
	const workers = 8
	for _, size := range []struct {
		name   string
		tokens int
	}{{"8k", 8 << 10}, {"64k", 64 << 10}} {
		b.Run(size.name, func(b *testing.B) {
			prose := strings.Repeat("The quick brown fox jumps over the lazy dog, and it does so every day. ", 4*size.tokens/71)
			body, err := json.Marshal(map[string]any{"model": "sim", "prompt": prose})
			if err != nil {
				b.Fatal(err)
			}
			var p prompt.Parser
			r, err := p.Parse(prompt.Completion, body)
			if err != nil {
				b.Fatal(err)
			}
			x := prefix.New(prefix.Config{Workers: workers, Capacity: 1 << 20})
			n := x.Namespace("sim")
			slots, held := make([]uint32, workers), make([]uint32, workers)
			for i := range slots {
				slots[i] = uint32(i)
			}
			r.Hash(1)
			n.Touch(3, r.Chains[0].Hashes)
			b.ReportAllocs()
			for b.Loop() {
				r.Hash(1)
				n.Match(r.Chains[0].Hashes, slots, held)
				if blocks := len(r.Chains[0].Hashes); int(held[3]) != blocks || blocks < 4*size.tokens/prompt.BlockBytes*9/10 {
					b.Fatalf("worker 3 holds %d of %d blocks", held[3], blocks)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "prompts/s")
		})
	}
}
