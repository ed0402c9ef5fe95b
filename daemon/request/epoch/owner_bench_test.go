package epoch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// BenchmarkOwner measures what the comparison of ids adds to reading an answer: 1 in 100 of a request's 40 us are 400 ns.
func BenchmarkOwner(b *testing.B) {
	id := strings.Repeat("0123456789abcdef", 2)
	whole := []byte(`{"id":"chatcmpl-` + id + `","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":` +
		`"assistant","content":"The capital of France is Paris."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":8}}`)
	var events []byte
	for i := range 100 {
		finish := "null"
		if i == 99 {
			finish = `"stop"`
		}
		events = fmt.Appendf(events, `data: {"id":"chatcmpl-%s","choices":[{"index":0,"delta":{"content":"word%d"},"finish_reason":%s}]}`+"\n\n", id, i, finish)
	}
	var c Clients
	c.Set(map[string]*upstream.Client{"http://127.0.0.1:9001": nil, "http://127.0.0.1:9002": nil})
	r := prompt.NewReply(prompt.Chat, false, 0)
	for _, stream := range []bool{false, true} {
		for _, checked := range []bool{false, true} {
			b.Run(fmt.Sprintf("stream=%v/checked=%v", stream, checked), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r.Reset(prompt.Chat, stream, 0)
					var h *Habit
					if checked {
						_ = MarkOf(id)
						h = c.Habit("http://127.0.0.1:9001", prompt.Chat, stream)
						r.Expect(h.Mark(id, false, false))
					}
					if stream {
						r.Feed(events)
					} else {
						r.Body(whole)
					}
					if !checked {
						continue
					}
					if r.Foreign() {
						b.Fatal("taken for another request's")
					}
					owner, frame := r.Owner()
					h.Learn(id, owner, frame)
				}
			})
		}
	}
}
