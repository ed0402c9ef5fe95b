package limit

import (
	"math"
	"testing"
	"time"
)

// newKey returns a key with these limits.
func newKey(l Limits) *Key { return (&Book{}).Configure(map[string]Limits{"team": l}, began)["team"] }

// askOf is a request of so many tokens whose client says how long the answer may get.
func askOf(t Tokens, exact bool) Ask {
	return Ask{Prompt: t.Prompt, Cached: t.Cached, Exact: exact, Bytes: 4 * t.Prompt, Answers: max(0, min(1, t.Output)), Most: max(0, t.Output)}
}

// take lets a request of so many tokens in at a time, and returns it with why it was not let in.
func take(k *Key, at time.Duration, t Tokens) (*Spending, Refusal, bool) {
	s, r := k.Enter(began.Add(at))
	if r == nil {
		r = s.Reserve(askOf(t, true), began.Add(at))
	}
	if r != nil {
		return s, *r, false
	}
	return s, Refusal{}, true
}

// TestAKeyWithoutLimits lets every request in, and its spending is none.
func TestAKeyWithoutLimits(t *testing.T) {
	b := &Book{}
	if keys := b.Configure(map[string]Limits{"team": {Cached: true}}, began); keys != nil {
		t.Errorf("a key without a limit has one: %v", keys)
	}
	s, r, ok := take(nil, 0, Tokens{Prompt: 1 << 40})
	s.Grow(5, began)
	s.Sent()
	s.Use(Tokens{})
	s.Left(began)
	s.End(began)
	if !ok || s.Limited() || r != (Refusal{}) {
		t.Errorf("got %+v, %v", r, ok)
	}
	if requests, tokens := (*Key)(nil).Balances(began); requests != (Balance{}) || tokens != (Balance{}) {
		t.Errorf("got the balances %v, %v", requests, tokens)
	}
}

// TestPlacesInFlight: no more than the limit at a time, however a request ends, and an end counts once.
func TestPlacesInFlight(t *testing.T) {
	k := newKey(Limits{InFlight: 2})
	a, _, _ := take(k, 0, Tokens{})
	b, _, ok := take(k, 0, Tokens{})
	if !ok {
		t.Fatal("the second is refused")
	}
	if _, r, ok := take(k, 0, Tokens{}); ok || r.By != ByInFlight || r.Limit != 2 || r.After != 0 {
		t.Errorf("the third: %+v, %v", r, ok)
	}
	a.End(began)
	a.End(began)
	if _, _, ok := take(k, 0, Tokens{}); !ok {
		t.Error("refused although one has ended")
	}
	if _, _, ok := take(k, 0, Tokens{}); ok {
		t.Error("an end called twice gave two places")
	}
	b.Sent()
	b.End(began)
	if _, _, ok := take(k, 0, Tokens{}); !ok {
		t.Error("refused although one that was sent has ended")
	}
}

// TestRetryAfterIsEnough: a client that comes back when it was told is let in, and one that comes sooner is not.
func TestRetryAfterIsEnough(t *testing.T) {
	for _, l := range []Limits{{Requests: 1}, {Requests: 3}, {Requests: 90}, {Tokens: 600}, {Tokens: 1_000_000},
		{Requests: 7, Tokens: 500}} {
		k := newKey(l)
		at := time.Duration(0)
		for n := range 300 {
			s, r, ok := take(k, at, Tokens{Prompt: 40 + n%60})
			if ok {
				s.Sent()
				s.Use(Tokens{Prompt: 40 + n%60})
				s.End(began.Add(at))
				at += 7 * time.Millisecond
				continue
			}
			if r.After <= 0 || r.After > 2*time.Minute {
				t.Fatalf("%+v, request %d: come back in %v", l, n, r.After)
			}
			if sooner := r.After - slot - time.Millisecond; sooner > 0 {
				if _, again, ok := take(k, at+sooner, Tokens{}); ok || again.After > r.After-sooner+time.Millisecond {
					t.Errorf("%+v, request %d: told %v, and %v before that: let in %v, told %v", l, n, r.After, slot, ok, again.After)
				}
			}
			at += r.After
			if s, again, ok := take(k, at, Tokens{}); !ok {
				t.Fatalf("%+v, request %d: refused after the wait that it was told, by %v: %v", l, n, again.By, again.After)
			} else {
				s.Sent()
				s.End(began.Add(at))
			}
		}
	}
}

// TestWhatNobodyGotCountsNothing: a request that no worker got gives back its place, its number and its tokens.
func TestWhatNobodyGotCountsNothing(t *testing.T) {
	k := newKey(Limits{InFlight: 1, Requests: 5, Tokens: 1000})
	for range 1000 {
		s, r, ok := take(k, 0, Tokens{Prompt: 900})
		if !ok {
			t.Fatalf("refused: %+v", r)
		}
		s.Use(Tokens{Prompt: 900})
		s.End(began)
	}
	if k.used.Requests != 0 || k.used.Tokens != 0 || k.tokens.minute.sum != 0 || k.requests.minute.sum != 0 {
		t.Errorf("got %+v, sums of %v and %v", k.used, k.requests.minute.sum, k.tokens.minute.sum)
	}
}

// TestTheEngineHasTheLastWord: what was reserved becomes what was used, with the cached tokens or without.
func TestTheEngineHasTheLastWord(t *testing.T) {
	for _, c := range []struct {
		all  bool
		want float64
	}{{all: false, want: 1700 - 1200}, {all: true, want: 1700}} {
		k := newKey(Limits{Tokens: 10_000, Cached: c.all})
		s, _, _ := take(k, 0, Tokens{Prompt: 1400, Cached: 1000, Output: 256})
		s.Sent()
		s.Use(Tokens{Prompt: 1600, Cached: 1200, Output: 100})
		s.End(began.Add(30 * time.Second))
		if k.used.Tokens != c.want || k.tokens.minute.sum != c.want {
			t.Errorf("count all %v: used %v, %v in the last minute; want %v", c.all, k.used.Tokens, k.tokens.minute.sum, c.want)
		}
		k.tokens.pass(began.Add(61 * time.Second))
		if k.tokens.minute.sum != 0 || k.tokens.minute.debt() != 0 {
			t.Errorf("after a minute %v are taken, with a debt of %v", k.tokens.minute.sum, k.tokens.minute.debt())
		}
	}
}

// TestNeverSatisfiable: a prompt is refused for good by a count, or for a text that is too long in any tokenizer. What
// is expected of it refuses nothing for good, and neither does what the client allows the answer.
func TestNeverSatisfiable(t *testing.T) {
	k := newKey(Limits{Tokens: 1000})
	for _, c := range []struct {
		about string
		ask   Ask
		never bool
	}{
		{about: "counted", ask: Ask{Prompt: 1200, Exact: true}, never: true},
		{about: "counted, and most of it is cached", ask: Ask{Prompt: 1500, Cached: 1000, Exact: true}},
		{about: "a long answer is allowed", ask: Ask{Prompt: 900, Exact: true, Answers: 1, Most: 32_000}},
		{about: "expected", ask: Ask{Prompt: 9000, Bytes: 12_000}},
		{about: "expected for its media", ask: Ask{Prompt: 9000, Bytes: 500, Media: true}},
		{about: "a text that is surely too long", ask: Ask{Prompt: 1500, Bytes: 25_000}, never: true},
	} {
		s, _ := k.Enter(began)
		r := s.Reserve(c.ask, began)
		if (r != nil) != c.never || c.never && (r.Asked <= 1000 || r.After != 0 || r.By != ByTokens || s.Limited()) {
			t.Errorf("%s: %+v", c.about, r)
		}
		s.End(began)
		if k.inFlight != 0 {
			t.Fatalf("%s: it keeps a place", c.about)
		}
	}
	k.habits.perByte.add(1. / 40)
	s, _ := k.Enter(began)
	if r := s.Reserve(Ask{Prompt: 6000, Bytes: 25_000}, began); r != nil {
		t.Errorf("of a key whose texts have few tokens: %+v", r)
	}
}

// TestNonsenseShutsNobodyOut: whatever a worker counts, the key is let in again after a minute.
func TestNonsenseShutsNobodyOut(t *testing.T) {
	k := newKey(Limits{Tokens: 60})
	for _, n := range []int{-1 << 62, -1} {
		s, r, ok := take(k, 0, Tokens{Prompt: n / 2, Cached: n, Output: n / 2})
		if !ok {
			t.Fatalf("%d tokens: %+v", n, r)
		}
		s.Sent()
		s.Use(Tokens{Prompt: n / 2, Cached: -n, Output: n / 2})
		s.Learn(Tokens{Prompt: n / 2, Cached: -n, Output: n / 2}, began)
		s.End(began)
	}
	s, _, ok := take(k, 0, Tokens{Prompt: 1})
	if !ok {
		t.Fatal("refused")
	}
	s.Sent()
	s.Use(Tokens{Prompt: 1 << 50, Output: 1 << 50})
	s.Learn(Tokens{Prompt: 1 << 50, Output: 1 << 50}, began)
	s.End(began)
	s, r, ok := take(k, 0, Tokens{Prompt: 1})
	if !ok || k.used.Tokens > 100 {
		t.Fatalf("nonsense counts: %+v, %v", r, k.used)
	}
	s.Sent()
	s.Use(Tokens{Prompt: 1 << 23}) // more than any model takes
	s.End(began)
	if _, r, ok := take(k, 0, Tokens{}); ok || r.After > (mostDebt+1)*time.Minute+time.Second {
		t.Errorf("let in %v, else come back in %v", ok, r.After)
	}
	if _, r, ok := take(k, (mostDebt+2)*time.Minute, Tokens{}); !ok {
		t.Errorf("after the longest debt: %+v", r)
	}
}

// TestAnswersThatOutgrowTheirExpectation take more of the limit while they run.
func TestAnswersThatOutgrowTheirExpectation(t *testing.T) {
	k := newKey(Limits{Tokens: 10_000})
	s, _ := k.Enter(began)
	if refused := s.Reserve(Ask{Prompt: 100, Exact: true, Answers: 1}, began); refused != nil {
		t.Fatalf("refused: %+v", refused)
	}
	s.Sent()
	for n := range 3000 {
		s.Grow(n, began.Add(time.Duration(n)*10*time.Millisecond))
	}
	if sum := k.tokens.minute.sum; sum < 3000 || sum > 3*3000 {
		t.Errorf("3,000 tokens have come, and %v are taken", sum)
	}
	s.Use(Tokens{Prompt: 100, Output: 3000})
	s.End(began.Add(30 * time.Second))
	if sum := k.tokens.minute.sum; sum != 3100 || k.used.Tokens != 3100 {
		t.Errorf("at the end %v are taken and %v used; want 3,100", sum, k.used.Tokens)
	}
}

// TestAnswersBeyondWhatTheirClientsAllow take more of the limit while they run, also once such answers are expected.
func TestAnswersBeyondWhatTheirClientsAllow(t *testing.T) {
	k := newKey(Limits{Tokens: 100_000})
	for i := range 20 {
		at := began.Add(time.Duration(i) * time.Minute)
		s, _ := k.Enter(at)
		if refused := s.Reserve(Ask{Prompt: 10, Exact: true, Answers: 1, Most: 20}, at); refused != nil {
			t.Fatalf("refused: %+v", refused)
		}
		s.Sent()
		for n := range 500 {
			s.Grow(n, at)
		}
		if k.tokens.minute.sum < 500 {
			t.Errorf("answer %d: 500 tokens have come, and %v are taken", i, k.tokens.minute.sum)
		}
		s.Use(Tokens{Prompt: 10, Output: 500})
		s.Learn(Tokens{Prompt: 10, Output: 500}, at)
		s.End(at)
	}
}

// TestWithoutUsageTheBytesOfAnswersShowWhatIsIgnored: an engine that reports no usage has answers whose tokens are known by
// their bytes alone. Far above max_tokens they show that it is ignored; a little above they show nothing.
func TestWithoutUsageTheBytesOfAnswersShowWhatIsIgnored(t *testing.T) {
	k := newKey(Limits{Tokens: 100_000})
	answer := func(i, tokens int) {
		at := began.Add(time.Duration(i) * time.Minute)
		s, _ := k.Enter(at)
		if refused := s.Reserve(Ask{Prompt: 10, Exact: true, Answers: 1, Most: 50}, at); refused != nil {
			t.Fatalf("refused: %+v", refused)
		}
		s.Sent()
		s.Learn(Tokens{Output: tokens}, at)
		s.End(at)
	}
	expect := func(about string, want int) {
		t.Helper()
		if got, _ := k.habits.expect(&Ask{Prompt: 10, Exact: true, Answers: 1, Most: 50}, 100_000); got.Output != want {
			t.Errorf("%s, %d tokens are expected; want %d", about, got.Output, want)
		}
	}
	answer(0, 80)
	expect("after an answer of some 80 tokens where 50 are allowed", 50)
	for i := range 10 {
		answer(1+i, 300)
	}
	expect("after answers of some 300", int(math.Ceil(k.habits.answers[0].is)))
	answer(11, 80)
	expect("after one of 80 again", int(math.Ceil(k.habits.answers[0].is)))
	answer(12, 30)
	expect("after one as short as is allowed", 50)
}

// TestAReloadKeepsWhatWasTaken: limits change under requests in flight, and no place and no token is lost or made.
func TestAReloadKeepsWhatWasTaken(t *testing.T) {
	b := &Book{}
	configure := func(l Limits) *Key { return b.Configure(map[string]Limits{"team": l}, began)["team"] }
	k := configure(Limits{InFlight: 3, Requests: 60, Tokens: 1000})
	s, _, _ := take(k, 0, Tokens{Prompt: 990})
	if k2 := configure(Limits{InFlight: 1, Requests: 30, Tokens: 500}); k2 != k {
		t.Fatal("the key is another one")
	}
	if _, r, ok := take(k, 0, Tokens{Prompt: 1}); ok || r.By != ByInFlight {
		t.Errorf("a lower limit in flight does not hold: %+v", r)
	}
	configure(Limits{InFlight: 2, Tokens: 500})
	if _, r, ok := take(k, 0, Tokens{Prompt: 1}); ok || r.By != ByTokens {
		t.Errorf("what was taken is forgotten: %+v", r)
	}
	configure(Limits{Requests: 60})
	s.Sent()
	s.Use(Tokens{Prompt: 990})
	s.End(began)
	configure(Limits{InFlight: 1, Tokens: 2000})
	if k.inFlight != 0 || k.used.Requests != 1 {
		t.Errorf("%d in flight, %d counted", k.inFlight, k.used.Requests)
	}
	if _, r, ok := take(k, 0, Tokens{Prompt: 1}); !ok {
		t.Errorf("refused by limits that are not reached: %+v", r)
	}
	if gone := b.Configure(nil, began); gone != nil {
		t.Errorf("keys are left: %v", gone)
	}
}

// TestBalances are what the fields of an answer say.
func TestBalances(t *testing.T) {
	k := newKey(Limits{Requests: 60, Tokens: 1000})
	check := func(at time.Duration, wantRequests, wantTokens Balance) {
		t.Helper()
		requests, tokens := k.Balances(began.Add(at))
		if requests != wantRequests || tokens != wantTokens {
			t.Errorf("got %+v and %+v; want %+v and %+v", requests, tokens, wantRequests, wantTokens)
		}
	}
	check(0, Balance{Limit: 60, Remaining: 60}, Balance{Limit: 1000, Remaining: 1000})
	s, _, _ := take(k, 0, Tokens{Prompt: 40})
	s.Sent()
	all := time.Minute
	check(0, Balance{Limit: 60, Remaining: 59, Reset: all}, Balance{Limit: 1000, Remaining: 960, Reset: all})
	half := all / 2
	check(30*time.Second, Balance{Limit: 60, Remaining: 59, Reset: half}, Balance{Limit: 1000, Remaining: 960, Reset: half})
	s.Use(Tokens{Prompt: 990})
	s.End(began)
	check(30*time.Second, Balance{Limit: 60, Remaining: 59, Reset: half}, Balance{Limit: 1000, Reset: half})
}
