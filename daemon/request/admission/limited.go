package admission

import (
	"cmp"
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// allowance is what the limits of the caller's key mean for one request. Its zero value is that of a key without
// limits. The account returns what is spent when the request's work ends.
type allowance struct {
	key     *limit.Key
	spent   *limit.Spending // of the Inbound's account
	refused *limit.Refusal  // nil = it was let in
}

// enter takes the request's place in flight and its number of the key's limits. A fault that it returns refuses it.
func (a *allowance) enter(in *message.Inbound) *message.Fault {
	a.key = in.Epoch.Limits[in.Caller.Name]
	if a.key == nil || in.Account == nil {
		return nil
	}
	a.refused = in.Account.Enter(a.key, time.Now())
	a.spent = in.Account.Spent()
	return a.fault()
}

// behind refuses a request that has not been let in, since others of its key wait. It returns nil for one that needs
// not be let in.
func (a *allowance) behind(in *message.Inbound) *message.Fault {
	k := in.Epoch.Limits[in.Caller.Name]
	if k == nil || in.Account.Spent().Limited() {
		return nil
	}
	a.key, a.refused = k, k.Behind(time.Now())
	return a.fault()
}

// Reserve takes the tokens of the key's limit that the request is expected to need. One of which no engine computes the
// prompt, such as a question for its tokens, needs none.
func (a *allowance) Reserve(r *Reading, in *message.Inbound, p *epoch.Pool, c *route.Choice) *message.Fault {
	if !a.spent.Limited() {
		return nil
	}
	req, ask := r.Req, limit.Ask{Whole: !r.Req.Stream}
	if r.Computes {
		e := route.Expect(c)
		ask.Prompt, ask.Cached, ask.Exact, ask.Bytes, ask.Media = e.Tokens, e.Cached, e.Exact, e.Bytes, e.Media
	}
	if req.Kind.Generates() {
		ask.Answers = min(1<<16, max(1, req.N)*max(1, len(req.Chains)))
		ask.Most = int(req.MaxTokens) * ask.Answers
	}
	if r.Computes && req.Kind == prompt.Other && !in.Endpoint.IsMedia() {
		ask.Prompt, ask.Answers = route.TokensOf(p.Pool, len(in.Body)+int(max(0, in.Left))), 1
	}
	a.refused = a.spent.Reserve(ask, time.Now())
	return a.fault()
}

// Streamed returns the tokens of the answer that have come so far. vLLM sends one token an event, but several to a
// client that is slow.
func (a *allowance) Streamed(p *epoch.Pool, answer *prompt.Reply) int {
	if answer == nil || !a.spent.Limited() {
		return 0
	}
	pieces, bytes := answer.Streamed()
	if n := route.TokensOf(p.Pool, bytes); n > 2*pieces {
		return n
	}
	return pieces
}

// Grow takes more of the limit if the answer outgrows what was expected.
func (a *allowance) Grow(p *epoch.Pool, answer *prompt.Reply) {
	if a.spent.Limited() {
		a.spent.Grow(a.Streamed(p, answer), time.Now())
	}
}

// Answered is an answer that the client got, whole or in part.
type Answered struct {
	Usage    record.Usage // the engine's counts
	Streamed int          // tokens, by what was sent
	Whole    bool
}

// Use records how much of the limit an answer has used, by the engine's counts or by the bytes sent. Nothing of a
// prompt was cached that the engine does not count so, whatever the router believes.
func (a *allowance) Use(r *Reading, s Answered) {
	if !a.spent.Limited() || !r.Computes {
		return
	}
	t, u := a.spent.Expected(), &s.Usage
	if !s.Whole && !u.Known && s.Streamed == 0 {
		a.spent.Left(time.Now())
		return
	}
	promptUsed(&t, u)
	switch {
	case s.Whole && u.Output > 0:
		t.Output = u.Output
	case !r.Req.Kind.Generates() && r.Req.Kind != prompt.Other:
		t.Output = 0
	case !s.Whole || u.Known || s.Streamed > 0: // else nothing was read of it, as of one made in the background
		t.Output = max(u.Output, s.Streamed)
	}
	a.spent.Use(t)
	switch {
	case s.Whole && u.Known:
		a.spent.Learn(limit.Tokens{Prompt: u.Prompt, Output: u.Output}, time.Now())
	case s.Whole && s.Streamed > 0:
		a.spent.Learn(limit.Tokens{Output: s.Streamed}, time.Now())
	}
}

// promptUsed writes what the engine counts of a prompt over what was expected.
func promptUsed(t *limit.Tokens, u *record.Usage) {
	t.Prompt, t.Cached = cmp.Or(u.Prompt, t.Prompt), 0
	if u.CachedKnown {
		t.Cached = u.Cached
	}
}

// soon reports whether the request that was refused may be let in by then.
func (a *allowance) soon(due time.Time) bool {
	return a.refused.Asked == 0 && time.Now().Add(a.refused.After).Before(due)
}

// fault returns the answer to a request that was refused, nil if it was not.
func (a *allowance) fault() *message.Fault {
	by := a.refused
	if by == nil {
		return nil
	}
	f := &message.Fault{Status: 429, Kind: "rate_limit_error", Code: "rate_limit_exceeded", Retry: retryIn(by.After),
		Dropped: "limit"}
	switch {
	case by.Asked > 0:
		f.Retry = 0
		f.Message = fmt.Sprintf("the request needs at least %d tokens, and this API key may take %d a minute"+
			" (tokens_per_minute): retrying will not help: shorten the prompt or lower max_tokens", by.Asked, by.Limit)
	case by.By == limit.ByInFlight:
		f.Message = fmt.Sprintf("this API key has as many requests under way as it may have at a time (max_in_flight %d);"+
			" try again when one has ended", by.Limit)
	default:
		f.Message = fmt.Sprintf("this API key has reached its %s of %d; try again in %d s", by.By, by.Limit, f.Retry)
	}
	return f
}

// retryIn returns a wait as the seconds of a Retry-After. That of a debt may be above mostRetry: see tell.
func retryIn(wait time.Duration) int { return max(1, int((wait+time.Second-1)/time.Second)) }

// Tell writes what is left of the key's limits into an answer, and that it was refused for them.
func (a *allowance) Tell(out *message.Outbound, s message.Shape) {
	if a.key == nil {
		return
	}
	now := time.Now()
	requests, tokens := a.key.Balances(now)
	tellLimits(out, s, now, [2]limit.Balance{requests, tokens})
	if a.refused == nil {
		return
	}
	a.key.Turned(a.refused)
	if a.refused.Asked > 0 || retryIn(a.refused.After) > message.MostRetry {
		out.Set("X-Should-Retry", "false") // the SDKs of OpenAI and Anthropic repeat every other 429, and too soon
	}
}
