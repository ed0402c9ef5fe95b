package replay

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const sessions = `{"session_id": "a", "timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1]}
{"session_id": "b", "timestamp": 1000, "input_length": 2, "output_length": 1, "hash_ids": [2]}
{"session_id": "a", "delay": 4000, "input_length": 3, "output_length": 1, "hash_ids": [1]}
{"session_id": "b", "timestamp": 2000, "input_length": 4, "output_length": 1, "hash_ids": [2]}
{"session_id": "b", "timestamp": 90000, "input_length": 5, "output_length": 1, "hash_ids": [2]}
{"session_id": "a", "delay": 0, "input_length": 6, "output_length": 1, "hash_ids": [1]}
{"timestamp": 90000, "input_length": 7, "output_length": 1, "hash_ids": [9]}
`

// TestSessionsAreAClosedLoop: a request comes its delay after the end of the answer before it in its session, or at its
// own time if that is later. Answers take 2 s of wall time, which are 20 of the trace.
func TestSessionsAreAClosedLoop(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader(sessions), "sessions", 0)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var sent []string
		names := map[string][]int64{}
		res, err := play(t.Context(), testConfig(t, Config{Speed: 10}), trip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			sent = append(sent, fmt.Sprintf("%v %d", time.Since(start), r.ContentLength))
			names[r.Header.Get("X-Session-Id")] = append(names[r.Header.Get("X-Session-Id")], r.ContentLength)
			mu.Unlock()
			sleep(r, 2*sec)
			return ok(r), nil
		}), "A", trace)
		if err != nil {
			t.Fatal(err)
		}
		head := newPrompt(testConfig(t, Config{}), `"A"`, 0, &trace[0]).size() - 4 // a token has 4 bytes
		at := func(wall time.Duration, tokens int64) string { return fmt.Sprintf("%v %d", wall, head+4*tokens) }
		want := []string{at(0, 1), at(100*time.Millisecond, 2), at(2100*time.Millisecond, 4), at(2400*time.Millisecond, 3),
			at(4400*time.Millisecond, 6), at(9*sec, 5), at(9*sec, 7)}
		slices.Sort(sent)
		if slices.Sort(want); !slices.Equal(sent, want) {
			t.Errorf("sent at\n%s\nwant\n%s", strings.Join(sent, "\n"), strings.Join(want, "\n"))
		}
		if res.Answered != 7 || res.Sent != 7 || res.LateSecondsMax != 0 || len(names) != 3 || len(names[""]) != 1 {
			t.Errorf("got %+v; sessions %v", res, names)
		}
	})
}

// TestAClosedLoopEndsAfterItsGrace: a session whose answers go on is not cut, as long as its next request is due soon.
func TestAClosedLoopEndsAfterItsGrace(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader(sessions), "sessions", 3)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		res, err := play(t.Context(), testConfig(t, Config{Speed: 1, Grace: 10 * sec}),
			trip(func(r *http.Request) (*http.Response, error) {
				if time.Since(start) > 10*sec {
					sleep(r, time.Hour)
					return nil, r.Context().Err()
				}
				sleep(r, 9*sec)
				return ok(r), nil
			}), "A", trace)
		if err != nil || time.Since(start) != 23*sec {
			t.Errorf("ended after %v with %v; want 9 s of answer, 4 of delay and 10 of grace", time.Since(start), err)
		}
		if res.Answered != 2 || res.Errors["deadline"] != 1 {
			t.Errorf("got %+v", res)
		}
	})
}
