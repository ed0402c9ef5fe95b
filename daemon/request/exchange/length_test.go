package exchange

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestTooLongIsTriedAtALongerOne: a refusal for the length goes to the client only if no worker is longer, and nobody
// is asked a third time.
func TestTooLongIsTriedAtALongerOne(t *testing.T) {
	refusal := whole(400, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 4100"}}`)
	other := whole(400, `{"error":{"message":"temperature must be positive"}}`)
	good := whole(200, `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	f := func(status, retries int, lengths []int, answers ...string) {
		t.Helper()
		var scripts [][]string
		for _, a := range answers {
			scripts = append(scripts, []string{a})
		}
		s := newScene(t, scripts...)
		for i, n := range lengths {
			s.list(i, n)
		}
		a := s.ask(inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		if a.status != status || int(a.in.Seen.Retries) != retries {
			t.Errorf("%v: %d after %d repeats; want %d after %d: %s", lengths, a.status, a.in.Seen.Retries, status, retries, a.body)
		}
	}
	f(200, 1, []int{4096, 32768}, refusal, good)
	f(200, 1, []int{4096, 4096, 32768}, refusal, refusal, good)
	f(400, 1, []int{4096, 32768, 65536}, refusal, refusal, good) // once
	f(400, 0, []int{4096, 4096}, refusal, good)
	f(200, 1, []int{4096, 0}, refusal, good)  // one that lists no length may be longer
	f(200, 1, []int{0, 32768}, refusal, good) // the refusal names its length
	f(400, 0, []int{4096, 32768}, other, good)
}

// list has a worker list the model m of a length; 0 = it states none.
func (s *scene) list(i, length int) {
	entry := json.RawMessage(fmt.Sprintf(`{"id":"m","max_model_len":%d}`, length))
	s.pool.Workers.Listed(s.numbers[i], []string{"m"}, []json.RawMessage{entry})
}
