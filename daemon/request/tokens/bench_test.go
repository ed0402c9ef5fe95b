package tokens

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// uncounted is a Meter.
type uncounted struct{}

func (uncounted) Tokens(string, string) {}

// chatOfTokens returns the body of a chat of messages of 2 KB each, and as many ids as such a text has.
func chatOfTokens(n int) (body []byte, ids []uint32) {
	var messages []map[string]string
	for size := 0; size < 4*n; size += 2000 {
		text := make([]byte, 2000)
		for i := range text {
			text[i] = "abcdefgh ijklmnop "[rand.IntN(18)]
		}
		messages = append(messages, map[string]string{"role": "user", "content": string(text)})
	}
	body, _ = json.Marshal(map[string]any{"model": "m", "messages": messages, "temperature": 0.7, "stream": true})
	return body, make([]uint32, n)
}

// BenchmarkHit is what a request costs whose text is known: its body is read once more and looked up.
func BenchmarkHit(b *testing.B) {
	for _, n := range []int{8 << 10, 64 << 10} {
		b.Run(fmt.Sprint(n>>10, "k"), func(b *testing.B) {
			s := New(Parts{Pool: "p", Log: slog.New(slog.DiscardHandler), Meter: uncounted{}})
			s.Configure(Config{Budget: time.Second, CacheBytes: 64 << 20})
			body, ids := chatOfTokens(n)
			q := new(Question)
			q.Read(prompt.Chat, "m", body)
			s.cache.put(ids, []digest{q.key}, []int{n})
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				q := new(Question)
				q.Read(prompt.Chat, "m", body)
				if got, o := s.IDs(context.Background(), Request{Question: q, Body: body, Arrived: time.Now()}); o != Cached || len(got) != n {
					b.Fatal(o)
				}
			}
		})
	}
}

// BenchmarkStrip is what a chunk of a stream that teaches costs.
func BenchmarkStrip(b *testing.B) {
	event := []byte(`data: {"id":"chatcmpl-9","object":"chat.completion.chunk","created":1795251122,"model":"tiny","choices":[{"index":0,` +
		`"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":[203]}]}` + "\n\n")
	s := NewStripper(endless{event}, true, nil)
	p := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if n, err := s.Read(p); n == 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}

// endless gives one event at each read.
type endless struct{ event []byte }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.event), nil }
