package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// trip is a daemon in place of a network, so that time can be virtual.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const answer = `data: {"choices":[{"text":"a"}]}

data: {"choices":[],"usage":{"prompt_tokens":1000,"prompt_tokens_details":{"cached_tokens":512}}}

data: [DONE]

`

func ok(r *http.Request) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"X-Warmpath-Worker": {"w"}},
		Body: io.NopCloser(strings.NewReader(answer)), Request: r}
}

// sleep waits in the request's stead: false if the request was dropped.
func sleep(r *http.Request, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

func requests(at ...time.Duration) []Request {
	var out []Request
	for _, d := range at {
		out = append(out, Request{At: d, InputTokens: 1000, OutputTokens: 1, Blocks: []uint64{1, 2}})
	}
	return out
}

const sec = time.Second

func TestArrivalsAreAnOpenLoopInTraceTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		res, err := play(t.Context(), testConfig(t, Config{Speed: 10}), trip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			sent = append(sent, time.Since(start))
			mu.Unlock()
			sleep(r, 3*sec) // longer than the whole trace
			return ok(r), nil
		}), "A", requests(0, 0, 5*sec, 20*sec))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(sent), "[0s 0s 500ms 2s]"; got != want {
			t.Errorf("sent at %s, want %s", got, want)
		}
		if res.Answered != 4 || !near(res.TTFT.Mean, 30) || !near(res.WallSeconds, 5) || res.PeakInFlight != 4 ||
			res.Held != 0 || res.LateSecondsMax != 0 {
			t.Errorf("got %+v", res)
		}
		if res.BlockHitRate != 32/62. || res.Workers != 1 || res.WorkBusiestOverMean != 1 {
			t.Errorf("got %+v", res)
		}
	})
}

func TestBoundInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n, open, most atomic.Int64
		cfg := testConfig(t, Config{Speed: 2, MaxInFlight: 2})
		progress := &strings.Builder{}
		cfg.Progress = progress
		res, err := play(t.Context(), cfg, trip(func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), open.Add(1)))
			defer open.Add(-1)
			if n.Add(1) == 1 { // so that no two places come free in one instant
				sleep(r, sec/2)
			}
			sleep(r, sec)
			return ok(r), nil
		}), "A", requests(0, 0, 0, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if most.Load() != 2 || res.PeakInFlight != 2 || res.Held != 3 || res.Answered != 5 {
			t.Errorf("most open %d, got %+v", most.Load(), res)
		}
		if !near(res.LateSecondsMax, 4) || !near(res.TTFT.Max, 3) { // two seconds of wall time late
			t.Errorf("late by %v, ttft %v", res.LateSecondsMax, res.TTFT)
		}
		if !strings.Contains(progress.String(), "the bound of 2 in flight is reached") {
			t.Errorf("progress is silent about the bound:\n%s", progress)
		}
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n := atomic.Int64{}
		res, err := play(t.Context(), testConfig(t, Config{Speed: 1, Grace: 7 * sec, MaxInFlight: 2}),
			trip(func(r *http.Request) (*http.Response, error) {
				if n.Add(1) > 1 && !sleep(r, time.Hour) {
					return nil, r.Context().Err()
				}
				return ok(r), nil
			}), "A", requests(0, 1*sec, 2*sec, 3*sec))
		if err != nil || time.Since(start) != 10*sec {
			t.Fatalf("ended after %v with %v; want 3 s of trace and 7 of grace", time.Since(start), err)
		}
		if res.Answered != 1 || res.Sent != 3 || res.Errors["deadline"] != 2 || res.Errors["not sent"] != 1 ||
			len(res.Errors) != 2 {
			t.Errorf("got %+v", res)
		}
	})
}

func TestCancelStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		res, err := play(ctx, testConfig(t, Config{Speed: 1}), trip(func(r *http.Request) (*http.Response, error) {
			if !sleep(r, time.Minute) {
				return nil, r.Context().Err()
			}
			return ok(r), nil
		}), "A", requests(0, sec, 2*sec, 3*sec))
		if !errors.Is(err, context.Canceled) || time.Since(start) != 1500*time.Millisecond {
			t.Fatalf("ended after %v with %v", time.Since(start), err)
		}
		if res.Sent != 2 || res.Errors["canceled"] != 2 || res.Errors["not sent"] != 2 {
			t.Errorf("got %+v", res)
		}
	})
}

func TestGivesUpWhenNothingSucceeds(t *testing.T) {
	every := make([]time.Duration, 100)
	for i := range every {
		every[i] = time.Duration(i) * sec
	}
	f := func(fail func(i int64) bool, wantSent int, wantErr string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			res, err := play(t.Context(), testConfig(t, Config{Speed: 1}), trip(func(r *http.Request) (*http.Response, error) {
				if fail(n.Add(1)) {
					return &http.Response{StatusCode: 404,
						Body: io.NopCloser(strings.NewReader(`{"error":{"message":"no model A","code":"model_not_found"}}`))}, nil
				}
				return ok(r), nil
			}), "A", requests(every...))
			if res.Sent != wantSent || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
				t.Errorf("sent %d, error %v; want %d, %q", res.Sent, err, wantSent, wantErr)
			}
			if err != nil && (!errors.Is(err, errGaveUp) || res.Errors["status 404"] != giveUpAfter) {
				t.Errorf("%v: %v", err, res.Errors)
			}
		})
	}
	f(func(int64) bool { return true }, giveUpAfter, "status 404: no model A; is the daemon at")
	f(func(i int64) bool { return i < giveUpAfter }, 100, "")
	f(func(i int64) bool { return i != 1 }, 100, "")
}

func TestShortTraceOfFailuresIsAnError(t *testing.T) {
	_, err := play(t.Context(), testConfig(t, Config{}), trip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("refused")
	}), "A", requests(0, 0))
	if !errors.Is(err, errGaveUp) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}
