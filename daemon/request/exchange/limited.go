package exchange

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// This file has what the limits of the caller's key mean for a request. A key without limits is nil here, and costs a
// look-up in an empty map. The front ends the spending with the request: see Inbound.

// usualOutput is how many tokens an answer is expected to have while nobody knows.
const usualOutput = 256

// enter takes the request's place in flight and its number of the key's limits. An answer that it returns refuses it.
func (r *request) enter() *Outbound {
	r.limits = r.epoch.Limits[r.in.Caller.Name]
	if r.limits == nil || r.in.Spent.Limited() { // a call that opens a session sends a request of its own
		return nil
	}
	var refused *limit.Refusal
	r.in.Spent, refused = r.limits.Enter(time.Now())
	if refused != nil {
		return r.overLimit(refused)
	}
	return nil
}

// reserve takes the tokens of the key's limit that the request is expected to need.
func (r *request) reserve() *Outbound {
	if !r.in.Spent.Limited() {
		return nil
	}
	t, exact := r.expects()
	if refused := r.in.Spent.Reserve(t, exact, time.Now()); refused != nil {
		return r.overLimit(refused)
	}
	return nil
}

// expects returns the tokens that the request is expected to need. One of which no engine computes the prompt, such as
// a question for its tokens, needs none.
func (r *request) expects() (t limit.Tokens, exact bool) {
	req := r.read.req
	if !takesSalt(req.Kind) {
		return t, true
	}
	e := r.choice.Expects()
	t = limit.Tokens{Prompt: e.Prompt, Cached: e.Cached}
	if req.Kind.Generates() {
		t.Output = e.Output
		if t.Output == 0 {
			t.Output = usualOutput
			if req.MaxTokens > 0 {
				t.Output = min(t.Output, int(req.MaxTokens))
			}
			t.Output *= max(1, req.N) * max(1, len(req.Chains))
		}
	}
	return t, e.Exact
}

// grow takes more of the limit if the answer outgrows what was expected.
func (b *body) grow() {
	if spent := b.r.in.Spent; spent.Limited() && b.r.generates() {
		spent.Grow(b.streamed(), time.Now())
	}
}

// streamed returns the tokens of the answer so far. vLLM sends one token an event, but several to a client that is
// slow.
func (b *body) streamed() int {
	if b.reply == nil || !b.r.in.Spent.Limited() {
		return 0
	}
	pieces, bytes := b.reply.Streamed()
	if n := b.r.pool.TokensOf(bytes); n > 2*pieces {
		return n
	}
	return pieces
}

// use records what the answer has used of the limit: by the engine's counts, or by what was sent.
func (b *body) use(u route.Usage, streamed int, whole bool) {
	spent := b.r.in.Spent
	if !spent.Limited() || !b.ok || !takesSalt(b.r.read.req.Kind) { // an engine that refuses has computed nothing
		return
	}
	t := spent.Expected()
	t.Cached = b.r.in.Seen.Believed
	switch {
	case u.Known:
		t.Prompt, t.Output = u.Prompt, u.Output
		if u.CachedKnown {
			t.Cached = u.Cached
		}
		if !whole {
			t.Output = max(u.Output, streamed)
		}
	case !whole || streamed > 0: // else nothing was read of the answer, as of one that is made in the background
		t.Output = streamed
	}
	spent.Use(t)
}

// overLimit refuses a request of a key that is at its limit.
func (r *request) overLimit(by *limit.Refusal) *Outbound {
	f := Fault{Status: 429, Kind: "rate_limit_error", Code: "rate_limit_exceeded", Retry: retryIn(by.After)}
	switch {
	case by.Asked > 0:
		f.Retry = 0
		f.Message = fmt.Sprintf("the request needs some %d tokens, and this API key may take %d a minute"+
			" (tokens_per_minute): to try again does not help; send less", by.Asked, by.Limit)
	case by.By == limit.ByInFlight:
		f.Message = fmt.Sprintf("this API key has as many requests under way as it may have at a time (max_in_flight %d);"+
			" try again when one has ended", by.Limit)
	default:
		f.Message = fmt.Sprintf("this API key has reached its %s of %d; try again in %d s", by.By, by.Limit, f.Retry)
	}
	out := r.refuse(f)
	out.Set("X-Warmpath-Dropped", "limit")
	if by.Asked > 0 {
		out.Set("X-Should-Retry", "false") // the SDKs of OpenAI and Anthropic repeat every other 429
	}
	return out
}

// retryIn returns a wait as the seconds of a Retry-After.
func retryIn(wait time.Duration) int {
	return min(mostRetry, max(1, int((wait+time.Second-1)/time.Second)))
}
