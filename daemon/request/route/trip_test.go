package route

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// answer is a worker's answer to a completion, as one piece.
func answer(text string, prompted, cached int) *prompt.Reply {
	r := prompt.NewReply(prompt.Completion, false, 0)
	r.Body(fmt.Appendf(nil, `{"choices":[{"index":0,"text":%q,"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,`+
		`"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":%d}}}`, text, prompted, cached))
	return r
}

// trip chooses for a request and sends it to the first worker.
func (s *scene) trip(r *prompt.Request) (*Choice, *Trip) {
	s.t.Helper()
	c := s.chosen(s.asking(r, Claim{}))
	to, _ := c.Next(s.now)
	return c, s.send(c, to)
}

// matched is how many blocks of a text worker a is believed to hold.
func (s *scene) matched(text string) int {
	return int(s.chosen(s.asking(completion(decline, text), Claim{})).fleet.frame.Header.BestMatch)
}

// A prompt enters the index as it is sent; the answer's text follows when it came to its end.
func TestWhatATripLeavesInTheIndex(t *testing.T) {
	const blocks = 4
	asked, answered := text("q", blocks), text("a", 3)
	f := func(what string, o judge.Outcome, begun bool, reply *prompt.Reply, ended bool, want int) {
		t.Helper()
		s := newScene(t, "a")
		_, trip := s.trip(completion(first, asked))
		if begun {
			trip.FirstByte(s.now)
		}
		if got := s.matched(asked + answered); got != blocks {
			t.Errorf("%s: %d blocks after it was sent", what, got)
		}
		trip.End(&o, End{Reply: reply, Whole: ended, At: s.now})
		if got := s.matched(asked + answered); got != want {
			t.Errorf("%s: %d blocks; want %d", what, got, want)
		}
	}
	cut := prompt.NewReply(prompt.Completion, true, 0)
	cut.Feed([]byte(`data: {"choices":[{"index":0,"text":"aaa"}]}` + "\n\n"))
	of := func(k judge.Kind) judge.Outcome { return judge.Outcome{Kind: k} }
	const begun, nothing = true, false
	f("a whole answer", of(judge.Answered), begun, answer(answered, 1, 0), true, blocks+3)
	f("an answer that broke off", of(judge.Broken), begun, answer(answered, 1, 0), false, blocks)
	f("an answer whose client left", of(judge.Canceled), begun, answer(answered, 1, 0), true, blocks)
	f("a client that left before", of(judge.Canceled), nothing, nil, false, blocks)
	f("an answer without its end", of(judge.Answered), begun, cut, true, blocks)
	f("nothing read", of(judge.Answered), nothing, nil, true, blocks)
	f("its own 400", judge.Outcome{Kind: judge.Answered, Rejected: true}, nothing, nil, true, 0)
	for _, k := range []judge.Kind{judge.Failed, judge.Broken, judge.Leaving, judge.Busy, judge.Denied,
		judge.Late, judge.Dying} {
		f("a request that was not served", of(k), nothing, nil, false, 0)
	}
}

// TestATripThatOutlivesItsCache: a trip whose worker was emptied meanwhile leaves nothing in the index.
func TestATripThatOutlivesItsCache(t *testing.T) {
	f := func(recomputed bool, want int) {
		t.Helper()
		s := newScene(t, "a")
		asked, answered := text("q", 4), text("a", 3)
		_, trip := s.trip(completion(first, asked))
		trip.FirstByte(s.now)
		s.now = s.now.Add(time.Second)
		gone := s.now
		if recomputed {
			gone = time.Time{}
		}
		s.Workers.Emptied("a", gone, s.now)
		if got := s.matched(asked); got != 0 {
			t.Errorf("%d blocks after it was emptied", got)
		}
		trip.End(&judge.Outcome{Kind: judge.Answered}, End{Reply: answer(answered, 1, 0), Whole: true, At: s.now})
		if got := s.matched(asked + answered); got != want {
			t.Errorf("recomputed %v: %d blocks; want %d", recomputed, got, want)
		}
	}
	f(false, 0)
	f(true, 7)
}

// TestRefusedPromptsAreTakenBack: of a prompt, or of each of a list, goes what was entered for a request that failed;
// what another request had entered stays.
func TestRefusedPromptsAreTakenBack(t *testing.T) {
	s := newScene(t, "a")
	head := text("q", 4)
	_, good := s.trip(completion(first, head))
	good.FirstByte(s.now)
	good.End(&judge.Outcome{Kind: judge.Answered}, End{Whole: true, At: s.now})
	_, refused := s.trip(completion(first, head+text("r", 4)))
	if got := s.matched(head + text("r", 4)); got != 8 {
		t.Errorf("while it is under way: %d blocks; want 8", got)
	}
	refused.End(&judge.Outcome{Kind: judge.Busy}, End{At: s.now})
	if got := s.matched(head + text("r", 4)); got != 4 {
		t.Errorf("after it was refused: %d blocks; want 4", got)
	}
}

// Each prompt of a list is continued by its own answer.
func TestAListsAnswers(t *testing.T) {
	s := newScene(t, "a")
	one, two, more := text("one", 4), text("two", 3), text("m", 2)
	_, trip := s.trip(completion(first, one, two))
	r := prompt.NewReply(prompt.Completion, false, 0)
	r.Body(fmt.Appendf(nil,
		`{"choices":[{"index":0,"text":"","finish_reason":"stop"},{"index":1,"text":%q,"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":300,"completion_tokens":1}}`, more))
	u := trip.End(&judge.Outcome{Kind: judge.Answered}, End{Reply: r, Whole: true, At: s.now})
	if got := s.matched(two + more); got != 5 {
		t.Errorf("%d blocks of the second prompt and its answer; want 5", got)
	}
	if got := s.matched(one + more); got != 4 {
		t.Errorf("%d blocks of the first prompt; want 4", got)
	}
	if !u.Known || u.CachedKnown || s.TokensPerByte() != startTokensPerByte {
		t.Errorf("%+v; one count for several prompts teaches nothing: %v", u, s.TokensPerByte())
	}
}

// The engine's own counts correct tokens a byte and the capacity of a cache whose size is not known.
func TestWhatATripLearns(t *testing.T) {
	s := newScene(t, "a b")
	asked := text("q", 20)
	slot := s.worker("a").Slot()
	_, trip := s.trip(completion(first, asked))
	var o judge.Outcome
	u := trip.End(&o, End{Reply: answer("", 512, 0), Whole: true, At: s.now})
	if u.Prompt != 512 || u.Output != 7 || u.Cached != 0 || !u.CachedKnown || o.Tokens != 7 {
		t.Errorf("%+v, %d tokens", u, o.Tokens)
	}
	if got := s.TokensPerByte(); got != 0.2 { // 512 tokens of 2,560 bytes
		t.Errorf("%v tokens a byte", got)
	}
	if n, known := s.caps.tokens(slot); n != unknownTokens || known {
		t.Errorf("%d, %v: what was believed and found is nothing to learn of", n, known)
	}
	_, trip = s.trip(completion(first, asked))
	trip.End(&o, End{Reply: answer("", 512, 0), Whole: true, At: s.now}) // it was believed to hold all of it
	if n, _ := s.caps.tokens(slot); n >= unknownTokens {
		t.Errorf("%d tokens; want less", n)
	}
	n, _ := s.caps.tokens(slot)
	trip.End(&o, End{Reply: answer("", 512, 0), Whole: true, At: s.now})
	if again, _ := s.caps.tokens(slot); again != n {
		t.Errorf("an end that is told twice is learnt twice: %d tokens, then %d", n, again)
	}
	s.Workers.Scraped(s.watched["a"], worker.Page{Metrics: worker.Metrics{Capacity: 9000, Block: 16}}, s.now)
	if n, known := s.caps.tokens(slot); n != 9000 || !known {
		t.Errorf("%d, %v; the worker knows best", n, known)
	}
}

// A trip's first byte and its end are the worker's to count.
func TestATripAtItsWorker(t *testing.T) {
	s := newScene(t, "a b")
	c, trip := s.trip(parsed("/v1/completions", `{"model":"m","stream":true,"max_tokens":1,"prompt":"x"}`))
	stats := func() worker.Stats { return s.Workers.Stats(s.now)[0] }
	if trip.Worker().ID() != "a" || stats().InFlight != 1 || trip.Matched() != 0 || c.Tried()[0] != trip.Worker() {
		t.Errorf("at %s: %+v", trip.Worker().ID(), stats())
	}
	s.now = s.now.Add(300 * time.Millisecond)
	trip.FirstByte(s.now)
	trip.Flow(s.now.Add(time.Millisecond))
	c.Release()
	c.Release()
	s.now = s.now.Add(time.Second)
	trip.End(&judge.Outcome{Kind: judge.Answered}, End{Whole: true, At: s.now})
	if x := stats(); x.InFlight != 0 || x.Answered != 1 || math.Abs(x.TTFT-0.3) > 0.001 {
		t.Errorf("%+v", x)
	}
	if c.Explain(new(record.Record)) {
		t.Error("the rows were given back")
	}
}

// What is believed cached is no work: the wait at the worker grows by the rest of the prompt alone.
func TestWhatIsCachedIsNoWork(t *testing.T) {
	s := newScene(t, "a b")
	asked := text("q", 100)
	s.served(s.asking(completion(first, asked), Claim{}))
	s.trip(completion(first, asked+text("more", 5)))
	s.trip(completion(first+1, asked+text("more", 5)))
	stats := s.Workers.Stats(s.now)
	if a, b := stats[0].Wait, stats[1].Wait; a <= 0 || b < 10*a {
		t.Errorf("%v s where it is cached, %v s elsewhere", a, b)
	}
}

// The worker calls a holder if it goes down with the holder's request.
func TestAHolderIsTold(t *testing.T) {
	var wait []func(time.Time)
	s := sceneOf(t, "a b", worker.Config{DownGrace: time.Second,
		After: func(_ time.Duration, f func(time.Time)) { wait = append(wait, f) }})
	c := s.chosen(s.ask(first, Claim{}))
	to, _ := c.Next(s.now)
	var held held
	if !c.Send(new(Trip), to, &held, s.now) {
		t.Fatal("not sent")
	}
	s.become("a", "down")
	for len(wait) > 0 && held == 0 {
		s.now = s.now.Add(2 * time.Second)
		f := wait[0]
		wait = wait[1:]
		f(s.now)
	}
	if held != 1 {
		t.Errorf("told %d times", held)
	}
}

type held int

func (h *held) GiveUp(worker.Loss) { *h++ }

// Tick brings the index up to the estimate of tokens a byte, and names those whose capacity is a guess, once each.
func TestTick(t *testing.T) {
	s := newScene(t, "a b:down c")
	slot := s.worker("a").Slot()
	f := func(what string, unknown ...string) {
		t.Helper()
		got, guess := s.Tick(s.now)
		if fmt.Sprint(got) != fmt.Sprint(unknown) || len(got) > 0 && guess != unknownTokens {
			t.Errorf("%s: %v, %d; want %v", what, got, guess, unknown)
		}
	}
	capacity := func(want int) {
		t.Helper()
		if got := s.Index.Worker(slot).Capacity; got != want {
			t.Errorf("%d blocks; want %d", got, want)
		}
	}
	f("no metrics were read")
	capacity(unknownTokens / 32)
	s.Workers.Scraped(s.watched["a"], worker.Page{Metrics: worker.Metrics{Running: 1}}, s.now)
	f("metrics without a size", "a")
	f("once")
	s.scale.correct(500, 1000)
	capacity(unknownTokens / 32)
	f("tokens a byte have changed")
	capacity(unknownTokens / 64)
	s.Workers.Scraped(s.watched["a"], worker.Page{Metrics: worker.Metrics{Capacity: 6400}}, s.now)
	capacity(100)
	s.Workers.Scraped(s.watched["c"], worker.Page{Metrics: worker.Metrics{Capacity: 6400}}, s.now)
	f("metrics with a size")
	s.Configure(worker.Config{MaxInFlight: 1}, Tiers{})
	s.become("c", "busy")
	if got := orderOf(s.chosen(s.ask(first+1, Claim{}))); got != "a" {
		t.Errorf("with one request at a time: %q", got)
	}
}

// Another worker that gets the slot of one that was removed is a stranger: it is named too.
func TestTickNamesTheNextOfASlot(t *testing.T) {
	s := newScene(t, "a")
	s.Workers.Scraped(s.watched["a"], worker.Page{Metrics: worker.Metrics{Running: 1}}, s.now)
	if got, _ := s.Tick(s.now); len(got) != 1 {
		t.Fatal(got)
	}
	s.Workers.Update([]worker.Spec{{ID: "b", URL: "http://b"}}, s.now)
	s.heal("b")
	s.Workers.Scraped(s.watched["b"], worker.Page{Metrics: worker.Metrics{Running: 1}}, s.now)
	if got, _ := s.Tick(s.now); len(got) != 1 || got[0] != "b" {
		t.Errorf("%v; want b", got)
	}
}
