package exchange

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// retryAfter serves a chat and returns the seconds after which the client is to come back, 0 if it is told none.
func (s *scene) retryAfter() int {
	s.t.Helper()
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	in.Epoch, in.ID = s.epoch, "id-1"
	var all message.Lives
	life := new(message.Life)
	all.Begin(life)
	defer life.Leave()
	seconds, _ := strconv.Atoi(s.Serve(life, in).Get("Retry-After"))
	return seconds
}

// TestRetryAfter is the table of what a client is told that gets no answer: never less than agents need to outlast an
// answer that holds a place, and what a worker asked for if that is more.
func TestRetryAfter(t *testing.T) {
	f := func(what string, low, high int, scripts ...string) {
		t.Helper()
		var lists [][]string
		for _, script := range scripts {
			lists = append(lists, []string{script})
		}
		if got := newScene(t, lists...).retryAfter(); got < low || got > high {
			t.Errorf("%s: told %d s; want %d to %d", what, got, low, high)
		}
	}
	field := func(status int, value string) string {
		return strings.Replace(whole(status, `{}`), "\r\n", "\r\nRetry-After: "+value+"\r\n", 1)
	}
	f("answered", 0, 0, whole(200, good))
	f("the worker's own 400", 0, 0, whole(400, `{}`))
	f("the worker's own 503", 3, 4, whole(503, `{}`))
	f("the worker's own 429", 3, 4, whole(429, `{}`))
	f("the same with a field that is less than the pool measures", 3, 4, field(429, "1"))
	f("two workers with 503", 3, 4, whole(503, `{}`), whole(503, `{}`))
	f("the last one asks for 17 s", 17, 17, whole(503, `{}`), field(503, "17"))
	f("it asks for an hour", 60, 60, whole(503, `{}`), field(503, "3600"))
	f("it asks for less than the pool measures", 3, 4, whole(503, `{}`), field(503, "1"))
	f("every worker failed", 3, 4, "refuse", "refuse")
}

// TestRetryAfterOfFullWorkers: the pool's places are held, and its answers last 8 s.
func TestRetryAfterOfFullWorkers(t *testing.T) {
	s := newScene(t, []string{whole(200, good)})
	s.pool.Limited = true
	s.pool.Workers.Configure(worker.Config{MaxInFlight: 1})
	_, all, _ := s.pool.Workers.Snapshot(worker.Query{At: time.Now()}, nil, nil)
	now := time.Now()
	var ended, held worker.Ticket
	s.pool.Workers.Begin(&ended, all[0], worker.Dispatch{Talks: true}, now)
	now = now.Add(8 * time.Second)
	ended.End(now, judge.Outcome{Kind: judge.Answered})
	s.pool.Workers.Begin(&held, all[0], worker.Dispatch{Talks: true}, now)
	defer held.End(now, judge.Outcome{})
	if got := s.retryAfter(); got < 3 {
		t.Errorf("told %d s; want 3 at least", got)
	}
	if got := message.FaultFull.Measured(s.pool, now).Retry; got < 7 || got > 11 {
		t.Errorf("told %d s; want some 8", got)
	}
	if got := message.FaultRejected.Measured(s.pool, now).Retry; got != message.FaultRejected.Retry {
		t.Errorf("for the strategy's own reason, told %d s", got)
	}
	if got := s.epoch.RetryAfter(now); got < 7 || got > 11 {
		t.Errorf("before the pool is known, told %d s; want some 8", got)
	}
	if got := (&epoch.Epoch{}).RetryAfter(now); got != 0 {
		t.Errorf("without pools, told %d s", got)
	}
}
