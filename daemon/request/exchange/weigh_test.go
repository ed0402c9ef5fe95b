package exchange

import (
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// TestWeigh: which of the workers' own errors reach the client, and after how many workers. Each script is one answer.
func TestWeigh(t *testing.T) {
	var before func(s *scene)
	var scriptsOfOne []string // answers of one worker, one after the other
	f := func(what string, scripts []string, status int, by, attempts string) {
		t.Helper()
		var lists [][]string
		for _, script := range scripts {
			lists = append(lists, []string{script})
		}
		if scriptsOfOne != nil {
			lists = [][]string{scriptsOfOne}
		}
		s := newScene(t, lists...)
		if before != nil {
			before(s)
		}
		got := s.chat()
		var tried []string
		for _, a := range got.in.Seen.Attempts {
			tried = append(tried, a.Worker+" "+a.Reason)
		}
		if got.status != status || got.by != by || strings.Join(tried, ", ") != attempts {
			t.Errorf("%s: %d by %q, tried %q; want %d by %q, %q", what, got.status, got.by, tried, status, by, attempts)
		}
	}
	good, fails, aborts := whole(200, good), whole(500, `{}`), streamed(role, abort, done)
	full, denies := whole(429, `{"error":"full"}`), whole(401, `{"error":"key"}`)
	hidden := streamed(role, failed, done)
	f("500", []string{fails, good}, 200, "w1", "w0 worker_500")
	f("500 twice", []string{fails, fails, good}, 500, "w1", "w0 worker_500")
	f("401", []string{denies, good}, 200, "w1", "w0 worker_refused")
	f("401 twice", []string{denies, denies, good}, 401, "w1", "w0 worker_refused")
	f("401, then 500", []string{denies, fails, good}, 200, "w2", "w0 worker_refused, w1 worker_500")
	f("the words of an error twice", []string{hidden, hidden, good}, 200, "w1", "w0 hidden_failure")
	f("aborts twice", []string{aborts, aborts, good}, 200, "w1", "w0 hidden_failure")
	f("an abort, then 500", []string{aborts, fails, good}, 200, "w2", "w0 hidden_failure, w1 worker_500")
	f("the only one reports an error", []string{hidden}, 200, "w0", "w0 hidden_failure")
	f("the only one aborts", []string{aborts}, 503, "", "w0 hidden_failure")
	f("busy, then it breaks", []string{full, "", ""}, 429, "w0", "w0 worker_busy, w1 no_answer, w2 no_answer")

	nothing := whole(200, `{}`)
	f("{}", []string{nothing, good}, 200, "w1", "w0 worker_refused")
	f("{} twice", []string{nothing, whole(200, "null"), good}, 200, "w1", "w0 worker_refused")
	f("{} and then 500", []string{nothing, fails, fails}, 500, "w2", "w0 worker_refused, w1 worker_500")
	f("{} at the only one", []string{nothing}, 200, "w0", "")
	f("{} in chunks", []string{chunks("application/json", "{}"), good}, 200, "w1", "w0 worker_refused")
	f("nothing in chunks", []string{chunks("application/json"), good}, 200, "w1", "w0 worker_refused")
	f("text in chunks", []string{chunks("text/plain", "welcome"), good}, 200, "w1", "w0 worker_refused")

	dying := whole(500, `{"error":"EngineCore encountered an issue"}`)
	f("two are busy", []string{full, full, good}, 200, "w2", "w0 worker_busy, w1 worker_busy")
	f("500, then it dies", []string{fails, dying, good}, 200, "w2", "w0 worker_500, w1 worker_dying")

	before = func(s *scene) { s.pool.HeaderTimeout = time.Minute }
	words := `{"error":{"message":"Generation is paused. Please retry after it resumes.","code":503}}`
	refuses, tells := whole(503, words), streamed("data: "+words+"\n\n", done)
	f("paused, and another is not", []string{refuses, good}, 200, "w1", "w0 worker_busy")
	f("paused, in a stream", []string{tells, good}, 200, "w1", "w0 worker_busy")
	scriptsOfOne = []string{refuses, tells, refuses, good}
	f("all are paused, then it goes on", nil, 200, "w0", "w0 worker_busy, w0 worker_busy, w0 worker_busy")
	scriptsOfOne = nil

	before = func(s *scene) { s.pool.Key = "secret" } // which the workers refuse
	f("the router's key", []string{denies, good}, 200, "w1", "w0 worker_key_refused")
	f("the router's key everywhere", []string{denies, denies}, 502, "", "w0 worker_key_refused, w1 worker_key_refused")

	before = func(s *scene) { s.spend() }
	f("no repeats are left, 401", []string{denies, good}, 401, "w0", "")
	f("no repeats are left, 429", []string{full, good}, 429, "w0", "")

	f("no repeats are left, an error in words", []string{hidden, good}, 200, "w0", "")

	before = func(s *scene) { s.trust(true) }
	f("401 of a worker that is trusted", []string{denies, good}, 401, "w0", "")
	before = func(s *scene) { s.trust(false) }
	f("the one of this second that is compared", []string{denies, good}, 200, "w1", "w0 worker_refused")

	before = func(s *scene) { s.listing("m"); s.trust(true) }
	f("it lacks what it lists", []string{whole(404, noModel), good}, 200, "w1", "w0 worker_refused")
}

// spend leaves no repeat in the budget.
func (s *scene) spend() {
	for s.pool.Workers.MayRetry(time.Now()) {
	}
}

// trust has each worker accept two chats, and uses up the comparison of this second.
func (s *scene) trust(compared bool) {
	var k *worker.Ticket
	for i := range 2 * len(s.numbers) { // as many at each: w0 stays the first
		k = new(worker.Ticket)
		w := s.pool.Workers.At(uint32(i % len(s.numbers)))
		s.pool.Workers.Begin(k, w, worker.Dispatch{Class: classOf(prompt.Chat, "POST", chats, "m")}, time.Now())
		k.End(time.Now(), judge.Outcome{Kind: judge.Answered})
	}
	if compared {
		k.Doubtful(time.Now())
	}
}

const chats = "/v1/chat/completions"

// TestBlamedOnce: a 500 is sent on once, also where the next rank belongs to the same process.
func TestBlamedOnce(t *testing.T) {
	s := newScene(t, []string{whole(500, `{}`)})
	s.pool.Workers.Counted(s.numbers[0], 3, time.Now())
	if a := s.chat(); a.status != 500 || s.sent() != 2 {
		t.Errorf("%d after %d ranks; want 500 after two", a.status, s.sent())
	}
}

// TestWhatIsConsumedIsTriedOnce: no other worker can get a request whose body is gone.
func TestWhatIsConsumedIsTriedOnce(t *testing.T) {
	s := newScene(t, []string{whole(401, `{"error":"key"}`)}, []string{whole(200, good)})
	const body = `{"model":"m","messages":[]}`
	in := inbound("POST", chats, body[:9])
	in.Tail, in.Left = &rest{Reader: *strings.NewReader(body[9:]), passed: true}, int64(len(body)-9)
	if got := s.ask(in); got.status != 401 || len(in.Seen.Attempts) > 0 {
		t.Errorf("%d, tried %v; want the worker's 401", got.status, in.Seen.Attempts)
	}
}

// TestWhoConfirmsARefusal: an answer that the worker computed does, and an error of its own does not.
func TestWhoConfirmsARefusal(t *testing.T) {
	answers := map[string]worker.Standing{whole(200, good): worker.Ejected, whole(400, `{}`): worker.Ready}
	for answer, want := range answers {
		s := newScene(t, []string{whole(401, `{}`)}, []string{answer})
		begin := func(slot uint32) *worker.Ticket {
			k := new(worker.Ticket)
			s.pool.Workers.Begin(k, s.pool.Workers.At(slot), worker.Dispatch{Class: classOf(prompt.Chat, "POST", chats, "other")}, time.Now())
			return k
		}
		held := begin(0)
		begin(0)
		begin(1)
		begin(1)
		for range 2 {
			k, o := begin(0), judge.Outcome{Kind: judge.Denied}
			k.End(time.Now(), o)
			k.Confirm(o, time.Now())
		}
		held.End(time.Now(), judge.Outcome{Kind: judge.Canceled}) // it is the least busy one
		s.chat()
		if got := s.pool.Workers.Stats(time.Now())[0]; got.State != want || got.Denied != 3 {
			t.Errorf("%.15s: %v after %d refusals; want %v after 3", answer, got.State, got.Denied, want)
		}
	}
}
