package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// limitedInbound is a request of a key with these limits.
func limitedInbound(l limit.Limits) *message.Inbound {
	keys := (&limit.Book{}).Configure(map[string]limit.Limits{"team": l}, time.Now())
	return &message.Inbound{Epoch: &epoch.Epoch{Limits: keys}, Caller: &gate.Caller{Name: "team"},
		Account: new(account.Books).Open()}
}

// TestTellLimits: the fields are those of the client's API, the worker's own of the names are left out, and AWS and keys
// without a limit get none.
func TestTellLimits(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 1, time.UTC)
	left := [2]limit.Balance{{Limit: 60, Remaining: 59, Reset: time.Second},
		{Limit: 150_000, Remaining: 149_984, Reset: 6*time.Minute + 1500*time.Microsecond}}
	for _, c := range []struct {
		shape message.Shape
		want  string
	}{
		{shape: message.OpenAI, want: "x-ratelimit-limit-requests: 60, x-ratelimit-remaining-requests: 59, x-ratelimit-reset-requests: 1s, " +
			"x-ratelimit-limit-tokens: 150000, x-ratelimit-remaining-tokens: 149984, x-ratelimit-reset-tokens: 6m0.002s"},
		{shape: message.Anthropic, want: "anthropic-ratelimit-requests-limit: 60, anthropic-ratelimit-requests-remaining: 59, " +
			"anthropic-ratelimit-requests-reset: 2026-11-27T12:00:02Z, anthropic-ratelimit-tokens-limit: 150000, " +
			"anthropic-ratelimit-tokens-remaining: 149984, anthropic-ratelimit-tokens-reset: 2026-11-27T12:06:01Z"},
		{shape: message.AWS, want: "X-RateLimit-Limit-Requests: 7, anthropic-ratelimit-x: 8"},
	} {
		out := &message.Outbound{Header: []upstream.Field{{Name: "X-RateLimit-Limit-Requests", Value: "7"}, {Name: "anthropic-ratelimit-x", Value: "8"}}}
		tellLimits(out, c.shape, now, left)
		var got []string
		for _, f := range out.Header {
			got = append(got, f.Name+": "+f.Value)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("shape %d: got\n%s\nwant\n%s", c.shape, text, c.want)
		}
	}
	out := &message.Outbound{}
	if tellLimits(out, message.OpenAI, now, [2]limit.Balance{}); len(out.Header) > 0 {
		t.Errorf("without limits: %v", out.Header)
	}
}

// TestWhatAnAnswerUses: the engine's usage, else what was sent.
func TestWhatAnAnswerUses(t *testing.T) {
	known := record.Usage{Known: true, Prompt: 900, Output: 50, Cached: 600, CachedKnown: true}
	begun := record.Usage{Known: true, Prompt: 900} // Messages say the prompt's at the beginning
	silent := record.Usage{Known: true, Output: 50} // of the prompt
	for _, c := range []struct {
		about string
		kind  prompt.Kind
		of    Answered
		want  float64
	}{
		{about: "the engine's counts", kind: prompt.Chat, of: Answered{Usage: known, Streamed: 48, Whole: true}, want: 350},
		{about: "counts without the cached ones, or the answer", kind: prompt.Chat, of: Answered{Usage: begun, Streamed: 48, Whole: true}, want: 948},
		{about: "counts of an answer that broke off", kind: prompt.Chat, of: Answered{Usage: begun, Streamed: 48}, want: 948},
		{about: "counts without the prompt", kind: prompt.Chat, of: Answered{Usage: silent, Streamed: 48, Whole: true}, want: 1050},
		{about: "no counts", kind: prompt.Chat, of: Answered{Streamed: 48, Whole: true}, want: 1048},
		{about: "no counts, broken off", kind: prompt.Chat, of: Answered{}, want: 1000},
		{about: "nothing was read of it", kind: prompt.Chat, of: Answered{Whole: true}, want: 1100},
		{about: "an endpoint that is not known", kind: prompt.Other, of: Answered{Streamed: 48, Whole: true}, want: 1048},
		{about: "one without answers in text", kind: prompt.Embedding, of: Answered{Usage: begun, Streamed: 48, Whole: true}, want: 900},
	} {
		in := limitedInbound(limit.Limits{Tokens: 1 << 30})
		var a allowance
		a.enter(in)
		in.Account.Spent().Reserve(limit.Ask{Prompt: 1000, Cached: 640, Exact: true, Answers: 1, Most: 100}, time.Now())
		in.Account.Sent()
		a.Use(&Reading{Req: &prompt.Request{Kind: c.kind}, Computes: true}, c.of)
		in.Account.End(time.Now())
		_, tokens := a.key.Balances(time.Now())
		if got := float64(tokens.Limit - tokens.Remaining); got != c.want {
			t.Errorf("%s: %v tokens; want %v", c.about, got, c.want)
		}
	}
}

// TestFaultsOfLimits: each has words, and a Retry-After only if that helps.
func TestFaultsOfLimits(t *testing.T) {
	for _, c := range []struct {
		by    limit.Refusal
		retry int
		words string
	}{
		{by: limit.Refusal{By: limit.ByInFlight, Limit: 4}, retry: 1, words: "max_in_flight 4"},
		{by: limit.Refusal{By: limit.ByRequests, Limit: 60, After: 1200 * time.Millisecond}, retry: 2, words: "requests_per_minute of 60; try again in 2 s"},
		{by: limit.Refusal{By: limit.ByTokens, Limit: 100, After: time.Hour}, retry: 3600, words: "tokens_per_minute of 100; try again in 3600 s"},
		{by: limit.Refusal{By: limit.ByTokens, Limit: 100, Asked: 250}, words: "at least 250 tokens"},
	} {
		a := allowance{refused: &c.by}
		f := a.fault()
		if f.Status != 429 || f.Code != "rate_limit_exceeded" || f.Retry != c.retry || !strings.Contains(f.Message, c.words) {
			t.Errorf("%+v: %+v", c.by, f)
		}
	}
	if f := (&allowance{}).fault(); f != nil {
		t.Errorf("a fault without a refusal: %v", fmt.Sprint(f))
	}
}

// BenchmarkNoLimits is what limits cost a request of a key without any, where other keys have some: at most 1 us.
func BenchmarkNoLimits(b *testing.B) {
	in := limitedInbound(limit.Limits{Requests: 1})
	in.Caller = &gate.Caller{Name: "another"}
	out := &message.Outbound{}
	b.ReportAllocs()
	for b.Loop() {
		var a allowance
		if a.enter(in) != nil || a.Reserve(nil, nil, nil, nil) != nil {
			b.Fatal("refused")
		}
		in.Account.Sent()
		a.Grow(nil, nil)
		a.Use(nil, Answered{})
		a.Tell(out, message.OpenAI)
		in.Account.End(time.Time{})
	}
}
