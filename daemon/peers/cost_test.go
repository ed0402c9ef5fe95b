package peers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// talk makes chats of up to 8k tokens, 250 blocks, whose turns go to random routers.
type talk struct {
	r     *rand.Rand
	chats [][]uint64
}

// turn returns the next turn's prompt, and the prompt with its answer.
func (k *talk) turn() (asked, answered []uint64) {
	i := k.r.IntN(len(k.chats))
	c := k.chats[i]
	if len(c) > 250 {
		c = c[:60] // another chat with the same system prompt
	}
	asked = slices.Clone(c)
	for range 20 {
		asked = append(asked, k.r.Uint64()|1)
	}
	answered = slices.Clone(asked)
	for range 8 {
		answered = append(answered, k.r.Uint64()|1)
	}
	k.chats[i] = answered
	return asked, answered
}

func newTalk(chats int) *talk {
	k := &talk{r: rand.New(rand.NewPCG(1, 1))}
	for range chats {
		var c []uint64
		for range 60 + k.r.IntN(190) {
			c = append(c, k.r.Uint64()|1)
		}
		k.chats = append(k.chats, c)
	}
	return k
}

// TestCost logs the messages, and the bytes a request, of all routers together at 1,000 requests a second in all.
func TestCost(t *testing.T) {
	for _, n := range []int{2, 4, 16} {
		k, now := newTalk(300), began
		c := make([]*Sender, n)
		hear := make([]*chains, n)
		for i := range c {
			hear[i], c[i], _ = newPair(nil, uint64(i+1), alone(1))
		}
		requests, frames, bytes := 3000, 0, 0
		for i := range requests {
			if i%10 == 0 { // every 10 ms
				now = now.Add(10 * time.Millisecond)
				for from := range c {
					all := c[from].Take(1<<20, now)
					c[from].Confirm(all)
					for _, frame := range all {
						frames++
						bytes += len(frame)
					}
				}
			}
			asked, answered := k.turn()
			from := k.r.IntN(n)
			id := c[from].Sent(&route.Sent{Worker: 1 + uint64(i%8), Space: 9, Est: .1, Tokens: 32 * len(asked), Block: 32},
				[]prompt.Chain{{Hashes: asked}}, now)
			c[from].FirstByte(id, now)
			c[from].Answer(id, 9, answered, now)
			c[from].Ended(id, now)
			for to := range hear { // all routers apply all frames
				if to != from {
					hear[to].enterSent(answered, position{})
				}
			}
		}
		t.Logf("%2d routers: %3.0f messages/s each, %4.0f bytes a request to Redis, %5.0f from it to all", n,
			float64(frames)/float64(n)/(float64(requests)/1000), float64(bytes)/float64(requests),
			float64(bytes)*float64(n-1)/float64(requests))
		if per := bytes / requests; per > 1000 {
			t.Errorf("%d routers: %d bytes a request; want at most 1,000", n, per)
		}
	}
}

// BenchmarkSend measures what the sender adds to a request, all four events.
func BenchmarkSend(b *testing.B) {
	_, sender, _ := newPair(nil, 1, alone(1))
	k := newTalk(300)
	s := &route.Sent{Worker: 1, Space: 9, Est: .1, Tokens: 5000, Block: 32}
	type pair struct{ asked, answered []uint64 }
	var all []pair
	for range 4096 {
		x, y := k.turn()
		all = append(all, pair{x, y})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := &all[i%len(all)]
		id := sender.Sent(s, []prompt.Chain{{Hashes: p.asked}}, began)
		sender.FirstByte(id, began)
		sender.Answer(id, 9, p.answered, began)
		sender.Ended(id, began)
		if i%10 == 9 {
			sender.Confirm(sender.Take(1<<20, began))
		}
	}
}

// BenchmarkReceive measures what a request of another router costs, all four events, in frames of ten requests every
// hundredth of a second: at that pace no record is refused as a flood.
func BenchmarkReceive(b *testing.B) {
	for _, workers := range []int{8, 256} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) { benchmarkReceive(b, workers) })
	}
}

func benchmarkReceive(b *testing.B, workers int) {
	c := &clock{began}
	p := newPool(b, c, workers, 1<<20)
	secret := p.Secret()
	_, sender, _ := newPair(nil, 2, alone(secret.Fingerprint()))
	_, h := NewPair(p, 1)
	k := newTalk(300)
	var frames [][]byte
	requests := 0
	for i := range 20_000 {
		x, y := k.turn()
		id := sender.Sent(&route.Sent{Worker: worker.KeyOf(fmt.Sprint("w", i%workers)), Space: 9, Est: .1, Tokens: 32 * len(x), Block: 32},
			[]prompt.Chain{{Hashes: x}}, began)
		sender.FirstByte(id, began)
		sender.Answer(id, 9, y, began)
		sender.Ended(id, began)
		if i%10 == 9 {
			all := sender.Take(1<<20, began)
			sender.Confirm(all)
			frames = append(frames, all...)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if requests%10 == 0 {
			if i == len(frames) {
				b.StopTimer()
				_, h = NewPair(p, 1)
				i = 0
				b.StartTimer()
			}
			c.now = c.now.Add(10 * time.Millisecond)
			if err := h.Apply(frames[i], c.now, c.now); err != nil {
				b.Fatal(err)
			}
			i++
		}
		requests++
	}
}
