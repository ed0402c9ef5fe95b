package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// tally is what came of the good requests.
type tally struct {
	Sent    int64   `json:"sent"`
	Refused int64   `json:"refused"` // a status other than 200
	Failed  int64   `json:"failed"`  // no answer
	Cut     int64   `json:"cut"`     // an answer that is not whole
	Rate    float64 `json:"answers_a_second"`
	Most    float64 `json:"longest_seconds"`
	First   string  `json:"first,omitempty"` // bad answer
}

// bad is how many requests were not answered as they should be.
func (t tally) bad() int64 { return t.Refused + t.Failed + t.Cut }

// press sends rate requests a second for d, half of them streams, and waits for all answers.
func press(ctx context.Context, addr string, rate float64, d time.Duration) tally {
	var mu sync.Mutex // guards t and good
	var t tally
	good := 0
	began := time.Now()
	wire.Open(ctx, addr, rate, int(rate)*15, d, func(c *wire.Client, i int, due time.Time) {
		stream := i/3%2 == 0 // in no step with a round robin of 8
		body := fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":"%d question"}],"stream":%v}`, i, stream)
		a := c.Do(wire.Post("/v1/chat/completions", body), true)
		mu.Lock()
		defer mu.Unlock()
		t.Sent++
		t.Most = max(t.Most, time.Since(due).Seconds())
		switch {
		case a.Status == 0:
			t.Failed++
		case a.Status != 200:
			t.Refused++
		case a.Err != nil || !whole(string(a.Body), stream):
			t.Cut++
		default:
			good++
			return
		}
		if t.First == "" {
			t.First = fmt.Sprintf("after %.1f s: %d %v %.160s", time.Since(began).Seconds(), a.Status, a.Err, a.Body)
		}
	})
	t.Rate = float64(good) / d.Seconds()
	return t
}

// whole tells whether an answer has all that the engines say.
func whole(body string, stream bool) bool {
	return strings.Contains(body, `"finish_reason":"stop"`) && (!stream || strings.HasSuffix(body, "[DONE]\n\n"))
}
