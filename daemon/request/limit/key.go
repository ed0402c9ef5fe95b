package limit

import (
	"sync"
	"time"
)

// Limits are what a key may take. Zero means no limit.
type Limits struct {
	InFlight int  // requests at a time
	Requests int  // a minute
	Tokens   int  // a minute: of prompts and answers
	Cached   bool // the tokens of prompts that a worker has in its cache count, too
}

// Tokens are those of one request.
type Tokens struct {
	Prompt int
	Cached int // of the prompt, in the worker's cache
	Output int
}

// Used counts what a key has taken since the start of the process.
type Used struct {
	Requests uint64        // that a worker got and that have ended
	Tokens   float64       // of these, as they count
	Over     [Count]uint64 // refused requests, by limit
	Long     uint64        // of these, requests that alone need more tokens than a minute has
}

// Key holds the limits of one key and what it has taken. It is safe for concurrent use. A nil Key has no limits.
type Key struct {
	name string

	mu       sync.Mutex // guards all below
	limits   Limits
	inFlight int
	places   share // in flight
	requests meter
	tokens   meter
	habits   habits
	whole    map[*Spending]struct{} // under way, whose answers come in one piece
	grown    time.Time              // when those were expected to have grown last
	gone     []part                 // of routers that are gone: what they had taken
	asked    time.Time              // last
	used     Used
}

// configure sets the limits.
func (k *Key) configure(l Limits, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limits = l
	k.requests.whole = true
	k.requests.set(l.Requests, at)
	k.tokens.set(l.Tokens, at)
}

// join sets how many routers share the limits.
func (k *Key) join(routers int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.shares() {
		s.routers = routers
	}
}

// shares returns those of the limits.
func (k *Key) shares() [Count]*share {
	return [Count]*share{ByInFlight: &k.places, ByRequests: &k.requests.share, ByTokens: &k.tokens.share}
}

// crowded reports whether one more request in flight would be one too many.
func (k *Key) crowded(at time.Time) bool {
	return k.limits.InFlight > 0 && float64(k.inFlight) >= k.places.places(k.limits.InFlight, at)
}

// Enter lets a request in, or returns why not. It takes a place in flight and one of the requests a minute. A nil Key
// lets it in, and there is no Spending.
func (k *Key) Enter(at time.Time) (*Spending, *Refusal) {
	if k == nil {
		return nil, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = at
	if r := k.over(at); r != nil {
		return nil, k.refuse(*r)
	}
	k.inFlight++
	k.requests.take(1, at)
	return &Spending{key: k, at: at}, nil
}

// over returns why a request is not let in now, nil if it is.
func (k *Key) over(at time.Time) *Refusal {
	k.grow(at)
	requests, tokens := k.requests.wait(at), k.tokens.wait(at)
	switch {
	case k.crowded(at):
		return &Refusal{By: ByInFlight, Limit: k.limits.InFlight}
	case requests > tokens:
		return &Refusal{By: ByRequests, Limit: k.limits.Requests, After: requests}
	case tokens > 0:
		return &Refusal{By: ByTokens, Limit: k.limits.Tokens, After: tokens}
	}
	return nil
}

// growEvery is how often answers in one piece are expected to have grown: it bounds what a key with many of them costs.
const growEvery = 250 * time.Millisecond

// grow takes more for answers in one piece that should have outgrown what was expected of them, by the time for which
// they have been under way.
func (k *Key) grow(at time.Time) {
	if len(k.whole) == 0 || at.Sub(k.grown) < growEvery {
		return
	}
	k.grown = at
	for s := range k.whole {
		s.outgrow(s.ask.bounded(s.unseen(at)), at)
	}
}

// Behind refuses a request that would overtake waiting requests of the same key. It names the limit that they wait for.
// If they no longer wait for one, it names the first limit that the key has.
func (k *Key) Behind(at time.Time) *Refusal {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = at
	r := k.over(at)
	switch {
	case r != nil:
	case k.limits.InFlight > 0:
		r = &Refusal{By: ByInFlight, Limit: k.limits.InFlight}
	case k.limits.Requests > 0:
		r = &Refusal{By: ByRequests, Limit: k.limits.Requests}
	default:
		r = &Refusal{By: ByTokens, Limit: k.limits.Tokens}
	}
	return k.refuse(*r)
}

// refuse returns a refusal. The key wants more than it is lent.
func (k *Key) refuse(r Refusal) *Refusal {
	k.shares()[r.By].wants = true
	return &r
}

// Turned counts a request that is refused because of the limit, and does not wait.
func (k *Key) Turned(r *Refusal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used.Over[r.By]++
	if r.Asked > 0 {
		k.used.Long++
	}
}

// counted returns how many of the tokens count.
func (k *Key) counted(t Tokens) float64 {
	n := max(0, t.Prompt) + max(0, t.Output)
	if !k.limits.Cached {
		n -= min(max(0, t.Cached), max(0, t.Prompt))
	}
	return float64(n)
}

// Balances returns what is left of the requests and of the tokens a minute.
func (k *Key) Balances(at time.Time) (requests, tokens Balance) {
	if k == nil {
		return Balance{}, Balance{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests.left(at), k.tokens.left(at)
}
