package daemon

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// bodyOf is a request to that path with a mark.
func bodyOf(path, mark string, stream bool) string {
	how := ""
	if stream {
		how = `"stream":true,`
	}
	switch path {
	case "/v1/chat/completions", "/v1/messages":
		return fmt.Sprintf(`{"model":"sim",%s"max_tokens":9,"messages":[{"role":"user","content":%q}]}`, how, mark)
	case "/v1/responses", "/v1/embeddings":
		return fmt.Sprintf(`{"model":"sim",%s"input":%q}`, how, mark)
	}
	return fmt.Sprintf(`{"model":"sim",%s"prompt":%q}`, how, mark)
}

// tellApart is what clients saw of requests with a mark each.
type tellApart struct{ right, foreign, failed atomic.Int64 }

func (a *tellApart) String() string {
	return fmt.Sprintf("%d right, %d foreign, %d failed", a.right.Load(), a.foreign.Load(), a.failed.Load())
}

// ask sends a request with a mark of its own, and counts whose answer came.
func (a *tellApart) ask(r *running, path string, stream bool, header ...string) seen {
	mark := fmt.Sprintf("mark-%x-", rand.Uint64())
	s := r.do("POST", path, bodyOf(path, mark, stream), header...)
	found := markIn.FindAllString(s.body, -1)
	for _, m := range found {
		if m != mark {
			a.foreign.Add(1)
			return s
		}
	}
	if s.err != nil || s.status != 200 || len(found) == 0 {
		a.failed.Add(1)
		return s
	}
	a.right.Add(1)
	return s
}

// crowd has n clients send so many requests each, all at once.
func (a *tellApart) crowd(n, each int, ask func(client, i int)) {
	var all sync.WaitGroup
	for c := range n {
		all.Go(func() {
			for i := range each {
				ask(c, i)
			}
		})
	}
	all.Wait()
}

var withIDs = []string{"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"}

// twoTwice are two workers that send an answer again now and then, behind a daemon that has seen what their ids hold.
func twoTwice(t *testing.T, when string) (*running, *[2]echoing) {
	t.Helper()
	w := &[2]echoing{{every: 17, when: when}, {every: 13, when: when}}
	r := start(t, settings("roundrobin", w[0].listen(t), w[1].listen(t)), 2)
	var a tellApart
	w[0].silent.Store(true)
	w[1].silent.Store(true)
	for _, path := range withIDs {
		for _, stream := range []bool{false, true} {
			a.crowd(1, 4, func(int, int) { a.ask(r, path, stream) })
		}
	}
	w[0].silent.Store(false)
	w[1].silent.Store(false)
	if a.right.Load() != 32 {
		t.Fatalf("answers sent once: %v", &a)
	}
	return r, w
}

// TestAnswersSentTwice: whenever a worker sends an answer once more, no client gets that of another, and none an error.
func TestAnswersSentTwice(t *testing.T) {
	t.Parallel()
	for _, when := range []string{withIt, idle, nextSent} {
		r, w := twoTwice(t, when)
		for _, path := range withIDs {
			for _, stream := range []bool{false, true} {
				var a tellApart
				before := w[0].twice.Load() + w[1].twice.Load()
				a.crowd(12, 15, func(int, int) { a.ask(r, path, stream) })
				twice := w[0].twice.Load() + w[1].twice.Load() - before
				if a.foreign.Load() != 0 || a.failed.Load() != 0 || twice < 5 {
					t.Errorf("%s, stream %v, %s: %v; %d sent twice", path, stream, when, &a, twice)
				}
			}
		}
		if n := r.metric("warmpath_foreign_answers_total"); when == nextSent && n < 20 || when == withIt && n != 0 {
			t.Errorf("%s: %v answers counted as another request's", when, n)
		}
	}
}

// TestEqualIDsAtOnce: clients that give requests one id, or ids that are part of one another, get their own answers.
func TestEqualIDsAtOnce(t *testing.T) {
	t.Parallel()
	r, w := twoTwice(t, nextSent)
	for _, path := range withIDs {
		var a tellApart
		before := w[0].twice.Load() + w[1].twice.Load()
		a.crowd(12, 20, func(client, i int) {
			id := "the-same"
			if client%2 == 0 {
				id = fmt.Sprint(client + i%3*10)
			}
			a.ask(r, path, i%2 == 0, "X-Request-Id", id)
		})
		if twice := w[0].twice.Load() + w[1].twice.Load() - before; a.foreign.Load() != 0 || a.failed.Load() != 0 || twice < 5 {
			t.Errorf("%s: %v; %d sent twice", path, &a, twice)
		}
	}
	if r.metric("warmpath_foreign_answers_total") == 0 {
		t.Error("no answer was found to be another request's")
	}
}

// TestIDsOfOtherWorkers: a worker is left alone whose ids are its own, whose ids hold the request's in another way than
// vLLM's, or whose last event has another id than the others.
func TestIDsOfOtherWorkers(t *testing.T) {
	t.Parallel()
	own := func(prefix, _ string) string { return fmt.Sprintf("%s%016x", prefix, rand.Uint64()) }
	f := func(what string, e *echoing) {
		t.Helper()
		r := start(t, settings("roundrobin", e.listen(t)), 1)
		var a tellApart
		for _, path := range withIDs {
			a.crowd(4, 10, func(_, i int) { a.ask(r, path, i%2 == 0) })
			a.crowd(1, 2, func(_, i int) { a.ask(r, path, i%2 == 0, "X-Request-Id", "0") })
		}
		if n := r.metric("warmpath_foreign_answers_total"); a.right.Load() != 168 || n > 0 {
			t.Errorf("%s: %v, %v taken for another request's", what, &a, n)
		}
	}
	f("ids of its own", &echoing{id: own})
	f("no ids", &echoing{id: func(string, string) string { return "" }})
	f("more behind the request's", &echoing{id: func(prefix, id string) string { return prefix + id + "-0" }})
	f("another id in the last event", &echoing{then: own})
}

// TestAHabitMayChange: a worker whose ids no longer hold the request's, or hold it elsewhere, serves on. No client gets
// an error, and after a few repeats the router believes it. The reverse is learnt too.
func TestAHabitMayChange(t *testing.T) {
	t.Parallel()
	own := func(prefix, _ string) string { return fmt.Sprintf("%s%016x", prefix, rand.Uint64()) }
	f := func(what string, workers int, next func(prefix, id string) string) {
		t.Helper()
		w, urls := make([]echoing, workers), []string(nil)
		var changed atomic.Bool
		for i := range w {
			w[i].id = func(prefix, id string) string {
				if changed.Load() {
					return next(prefix, id)
				}
				return prefix + id
			}
			urls = append(urls, w[i].listen(t))
		}
		r := start(t, settings("roundrobin", urls...), workers)
		var a tellApart
		for _, now := range []bool{false, true, false} {
			changed.Store(now)
			for _, path := range withIDs {
				a.crowd(1, 8*workers, func(_, i int) { a.ask(r, path, i%2 == 0) }) // it learns both kinds of each
				a.crowd(4, 6, func(_, i int) { a.ask(r, path, i%2 == 0) })
			}
		}
		want := int64(3 * len(withIDs) * (8*workers + 4*6))
		// At each of two changes, each kind of answer of each worker: one on a used connection, one on a new one.
		if n := int(r.metric("warmpath_foreign_answers_total")); a.right.Load() != want || n > 2*2*2*len(withIDs)*workers {
			t.Errorf("%s, %d workers: %v, %d repeated", what, workers, &a, n)
		}
	}
	for _, workers := range []int{1, 3} {
		f("ids of its own", workers, own)
		f("more behind the request's", workers, func(prefix, id string) string { return prefix + id + "-0" })
		f("no ids", workers, func(string, string) string { return "" })
	}
}

// TestAnswersOfOtherEndpoints: an answer without an id, which nobody can place, does not reach a client of an endpoint
// whose answers have one.
func TestAnswersOfOtherEndpoints(t *testing.T) {
	t.Parallel()
	r, w := twoTwice(t, nextSent)
	var chats, counts tellApart
	chats.crowd(12, 40, func(client, i int) {
		if client%3 == 0 {
			counts.ask(r, "/tokenize", false)
			return
		}
		chats.ask(r, withIDs[i%len(withIDs)], i%2 == 0)
	})
	if twice := w[0].twice.Load() + w[1].twice.Load(); chats.foreign.Load() != 0 || chats.failed.Load() > 2 || twice < 10 { // 1 in 10 sent twice may use up retry_budget
		t.Errorf("%v; %d sent twice, and /tokenize: %v", &chats, twice, &counts)
	}
}
