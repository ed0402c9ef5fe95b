package worker

import (
	"fmt"
	"os"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{16, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := upPool(b, n)
			for i, w := range p.workers {
				for range i % 4 {
					p.Begin(w, Dispatch{PromptTokens: 1000}, p.after(1))
				}
			}
			l, entries, _ := parseModels([]byte(`{"data":[{"id":"tiny"}]}`))
			for _, w := range p.workers {
				p.listed(w, l, entries)
			}
			rows, ws := make([]abi.Row, 0, n), make([]*Worker, 0, n)
			at := p.after(2)
			b.ReportAllocs()
			for b.Loop() {
				p.Snapshot("tiny", at, rows, ws)
			}
		})
	}
}

func BenchmarkBeginEnd(b *testing.B) {
	p := upPool(b, 16)
	at, i := p.after(1), 0
	b.ReportAllocs()
	for b.Loop() {
		k := p.Begin(p.workers[i%16], Dispatch{PromptTokens: 1000}, at)
		k.FirstByte(at)
		k.End(at, Outcome{Kind: Answered, Tokens: 10})
		i++
	}
}

func BenchmarkBeginEndParallel(b *testing.B) {
	p := upPool(b, 16)
	at := p.after(1)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			k := p.Begin(p.workers[i%16], Dispatch{PromptTokens: 1000}, at)
			k.FirstByte(at)
			k.End(at, Outcome{Kind: Answered, Tokens: 10})
		}
	})
}

func BenchmarkParseMetrics(b *testing.B) {
	page, err := os.ReadFile("testdata/metrics-0.32.0.txt")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		parseMetrics(page)
	}
}
