package worker

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{16, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := upPool(b, n)
			for i, w := range p.fleet.workers {
				for range i % 4 {
					p.force(w, Dispatch{PromptTokens: 1000}, 1)
				}
			}
			for _, w := range p.fleet.workers {
				p.Listed(w.number, []string{"tiny"}, nil)
			}
			rows, ws := make([]abi.Row, 0, n), make([]*Worker, 0, n)
			at := p.after(2)
			b.ReportAllocs()
			for b.Loop() {
				p.Snapshot(Query{Model: "tiny", At: at}, rows, ws)
			}
		})
	}
}

func BenchmarkBeginEnd(b *testing.B) {
	p := upPool(b, 16)
	at, i := p.after(1), 0
	b.ReportAllocs()
	for b.Loop() {
		k := p.send(i%16, Dispatch{PromptTokens: 1000}, 1)
		k.FirstByte(at)
		k.End(at, judge.Outcome{Kind: judge.Answered, Tokens: 10})
		i++
	}
}

func BenchmarkBeginEndParallel(b *testing.B) {
	p := upPool(b, 16)
	at := p.after(1)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			k := p.send(i%16, Dispatch{PromptTokens: 1000}, 1)
			k.FirstByte(at)
			k.End(at, judge.Outcome{Kind: judge.Answered, Tokens: 10})
		}
	})
}

// BenchmarkPassForeign measures a request of another router that has begun and ended.
func BenchmarkPassForeign(b *testing.B) {
	for _, n := range []int{4, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := upPool(b, n)
			at, keys := p.after(1), []uint64{}
			for _, w := range p.fleet.workers {
				keys = append(keys, w.key)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				key := keys[i*7%n]
				p.ByKey(key)
				p.PassForeign(key, Dispatch{PromptTokens: 1000}, at, at)
				i++
			}
		})
	}
}
