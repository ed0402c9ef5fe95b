package limit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/lendtest"
)

// began is when the virtual time of these tests begins.
var began = time.Unix(1_800_000_000, 0)

// grant is a request that was let in, and the tokens that its engine counted. It computes the prompt at once, and a
// token of the answer every 20 ms.
type grant struct {
	at     time.Duration
	prompt int
	output int
}

const (
	prefill = 300 * time.Millisecond
	step    = 20 * time.Millisecond
)

// event is tokens that were counted at a time.
type event struct {
	at     time.Duration
	tokens int
}

// client sends one request after the other, as the SDKs do: after a 429 it waits for Retry-After, in whole seconds.
type client struct {
	router  int
	at      time.Duration // of its next step
	s       *Spending
	granted int           // its request under way, in grants; -1 = none
	ends    time.Duration // of that
	used    Tokens
}

// crowd is clients with one key in virtual time, at one or several routers.
type crowd struct {
	books   []*Book
	keys    []*Key
	clients []client
	grants  []grant
	draw    *rand.Rand
	failing float64 // share of the requests that end without an answer
	redis   *redis  // nil = the routers do not share
	beat    time.Duration
}

func newCrowd(l Limits, routers, clients int, seed uint64) *crowd {
	c := &crowd{draw: rand.New(rand.NewPCG(seed, 7))}
	for range routers {
		b := &Book{}
		c.books = append(c.books, b)
		c.keys = append(c.keys, b.Configure(map[string]Limits{"team": l}, began)["team"])
	}
	for i := range clients {
		c.clients = append(c.clients, client{router: i % routers, granted: -1})
	}
	return c
}

// share has the routers share the limits from now on.
func (c *crowd) share() {
	c.redis = &redis{holds: map[int]held{}}
	for _, b := range c.books {
		b.Share(len(c.books))
	}
}

// run lets the clients act until a time.
func (c *crowd) run(until time.Duration) {
	for {
		i := 0
		for k := range c.clients {
			if c.clients[k].at < c.clients[i].at {
				i = k
			}
		}
		next := &c.clients[i]
		if next.at >= until {
			return
		}
		for c.redis != nil && c.beat <= next.at {
			for r, b := range c.books {
				c.redis.hear(r, b, began.Add(c.beat))
			}
			c.beat += 100 * time.Millisecond
		}
		c.step(next)
	}
}

// step lets one client act.
func (c *crowd) step(x *client) {
	at := began.Add(x.at)
	if x.granted >= 0 && x.ends > x.at {
		x.s.Grow(x.used.Output-int((x.ends-x.at)/step), at)
		x.at = min(x.at+500*time.Millisecond, x.ends)
		return
	}
	if x.granted >= 0 {
		if c.draw.Float64() >= c.failing {
			x.s.Use(x.used)
			x.s.Learn(x.used, at)
		} else {
			c.grants[x.granted] = grant{}
		}
		x.s.End(at)
		x.s.End(at)
		x.granted = -1
	}
	prompt := 60 + c.draw.IntN(80)
	s, refusal := c.keys[x.router].Enter(at)
	if refusal == nil {
		refusal = s.Reserve(Ask{Prompt: prompt, Bytes: 4 * prompt, Answers: 1, Most: 400}, at)
	}
	x.s = s
	if refusal != nil {
		seconds := max(1, (refusal.After+time.Second-1)/time.Second)
		x.at += seconds * time.Second
		x.at += time.Duration(c.draw.IntN(int(50 * time.Millisecond)))
		return
	}
	x.s.Sent()
	x.used = Tokens{Prompt: prompt * (90 + c.draw.IntN(21)) / 100, Output: 20 + c.draw.IntN(160)}
	x.granted = len(c.grants)
	c.grants = append(c.grants, grant{at: x.at, prompt: x.used.Prompt, output: x.used.Output})
	x.ends = x.at + prefill + time.Duration(x.used.Output)*step
	x.at += prefill
}

// admitted counts each request when it was let in.
func (c *crowd) admitted() (all []event) {
	for _, g := range c.grants {
		all = append(all, event{at: g.at, tokens: g.prompt + g.output})
	}
	return all
}

// computed counts each token when the engine computes it.
func (c *crowd) computed() (all []event) {
	for _, g := range c.grants {
		all = append(all, event{at: g.at + prefill, tokens: g.prompt})
		for i := range g.output {
			all = append(all, event{at: g.at + prefill + time.Duration(i+1)*step, tokens: 1})
		}
	}
	return all
}

// busiest returns the most tokens in 60 s, and all of them.
func busiest(events []event) (most, all int) {
	slices.SortFunc(events, func(a, b event) int { return int(a.at - b.at) })
	sum, first := 0, 0
	for _, e := range events {
		sum += e.tokens
		all += e.tokens
		for e.at-events[first].at >= time.Minute {
			sum -= events[first].tokens
			first++
		}
		most = max(most, sum)
	}
	return most, all
}

// check fails unless the key got at most `most` of its limit in every 60 s, and at least .95 of it in all.
func (c *crowd) check(t *testing.T, limit, minutes int, most float64) {
	t.Helper()
	for name, events := range map[string][]event{"admitted": c.admitted(), "computed": c.computed()} {
		n, all := busiest(events)
		worst, used := float64(n)/float64(limit), float64(all)/float64(limit*minutes)
		t.Logf("%s: at most %.3f of the limit in 60 s, %.3f used, %d requests", name, worst, used, len(c.grants))
		if worst > most || used < .95 || used > most {
			t.Errorf("%s: %.3f of the limit in 60 s, %.3f used; want at most %.2f and at least .95", name, worst, used, most)
		}
	}
	for i, k := range c.keys {
		for n := range c.clients {
			if x := &c.clients[n]; x.router == i {
				x.s.End(began.Add(x.at))
			}
		}
		if k.inFlight != 0 {
			t.Errorf("router %d has %d places taken when all is over", i, k.inFlight)
		}
	}
}

// TestTenThousandTokensAMinute: 50 clients at once on a key of 10,000 tokens a minute, for 10 minutes, get at most 1.05
// times the limit in every 60 s, and use at least .95 of it in all.
func TestTenThousandTokensAMinute(t *testing.T) {
	for seed := range uint64(20) {
		c := newCrowd(Limits{Tokens: 10_000}, 1, 50, seed)
		c.run(10 * time.Minute)
		c.check(t, 10_000, 10, 1.05)
	}
}

// TestFailuresUseNothing: the mark holds when every fifth request fails, and failed ones are not paid for.
func TestFailuresUseNothing(t *testing.T) {
	c := newCrowd(Limits{Tokens: 10_000}, 1, 50, 9)
	c.failing = .2
	c.run(10 * time.Minute)
	c.check(t, 10_000, 10, 1.05)
}

// TestARestedKey: after an hour of rest a key gets no more in a minute than before it.
func TestARestedKey(t *testing.T) {
	c := newCrowd(Limits{Tokens: 10_000}, 1, 50, 3)
	for i := range c.clients {
		c.clients[i].at = time.Hour
	}
	c.run(time.Hour + 10*time.Minute)
	c.check(t, 10_000, 10, 1.05)
}

// TestTwoRouters: two routers that share a Redis let a key have at most 1.10 times its limit in every 60 s.
func TestTwoRouters(t *testing.T) {
	for seed := range uint64(20) {
		c := newCrowd(Limits{Tokens: 10_000}, 2, 50, seed)
		c.share()
		c.run(10 * time.Minute)
		c.check(t, 10_000, 10, 1.10)
	}
}

// TestTwoRoutersOneBusy: a router whose neighbour has no requests gives out the whole limit.
func TestTwoRoutersOneBusy(t *testing.T) {
	c := newCrowd(Limits{Tokens: 10_000}, 2, 50, 4)
	for i := range c.clients {
		c.clients[i].router = 0
	}
	c.share()
	c.run(10 * time.Minute)
	c.check(t, 10_000, 10, 1.10)
}

// TestTwoRoutersAlone: without their Redis two routers give out half of the limit each.
func TestTwoRoutersAlone(t *testing.T) {
	c := newCrowd(Limits{Tokens: 10_000}, 2, 50, 5)
	for _, b := range c.books {
		b.Share(2)
	}
	c.run(10 * time.Minute)
	c.check(t, 10_000, 10, 1.10)
}

// TestSixtyRequestsAMinute: requests in number are never above 1.05 times the limit, whatever it is.
func TestSixtyRequestsAMinute(t *testing.T) {
	for _, limit := range []int{3, 20, 60, 1000} {
		c := newCrowd(Limits{Requests: limit}, 1, 50, 6)
		c.run(10 * time.Minute)
		for i := range c.grants {
			c.grants[i].prompt, c.grants[i].output = 1, 0
		}
		most, all := busiest(c.admitted())
		t.Logf("%d a minute: at most %d in 60 s, %d in 10 minutes", limit, most, all)
		if float64(most) > 1.05*float64(limit) || limit <= 60 && float64(all) < 9.5*float64(limit) {
			t.Errorf("%d a minute: %d in 60 s, %d in 10 minutes", limit, most, all)
		}
	}
}

// redis lends as package ledger has Redis do.
type redis struct{ holds map[int]held }

// held is what a router holds of each limit.
type held struct {
	amounts Amounts
	debts   Amounts
	wants   [Count]bool
}

// hear takes a router's messages and answers them.
func (r *redis) hear(router int, b *Book, at time.Time) {
	messages := b.Messages(nil, at)
	for i := range messages {
		m := &messages[i]
		var others held
		r.holds[router] = held{}
		for of, h := range r.holds {
			if of == router {
				continue
			}
			for by := range h.amounts {
				others.amounts[by] += h.amounts[by]
				others.debts[by] += h.debts[by]
				others.wants[by] = others.wants[by] || h.wants[by]
			}
		}
		var lent Amounts
		for by := range lent {
			lent[by] = lendtest.Lend(lendtest.Told{Limit: m.Limits[by], Taken: m.Taken[by], Others: others.amounts[by],
				Wants: m.Wants[by], Wanted: others.wants[by], Tokens: By(by) == ByTokens, Routers: len(r.holds)})
		}
		m.Lent(lent, others.debts, at)
		for by := range lent {
			lent[by] = max(lent[by], m.Taken[by])
		}
		r.holds[router] = held{amounts: lent, debts: m.Debts, wants: m.Wants}
	}
}
