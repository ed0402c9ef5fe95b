package route

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Choice is the decision for one request, and keeps track of the attempts that follow. Its zero value is ready for
// Choose. The caller's request embeds it by value. It allocates nothing of its own, and borrows its memory until
// Release.
type Choice struct {
	pool      *Pool
	prompt    *prompt.Request
	*decision // nil after Release
	stay      stay
	talk      talk
	space     *prefix.Namespace // nil: there is no prompt
	below     spaces            // the same in the tiers below the GPUs
	spaceID   uint64
	secret    *Secret // that its hashes are made with

	arrived  time.Time     // the first time that Choose was called
	at       time.Time     // of the last look at the fleet
	serving  *host.Current // the pool's own strategy or a canary
	strategy *host.Strategy
	size     size
	holds    int   // tokens of KV that it takes, by the last look at the fleet
	outgrew  int   // the request has been refused by a worker of so many tokens; 0 = by none
	held     int32 // tokens believed in the cache of the worker that the last trip went to
	sent     int32 // trips
}

// decision is what a Choice needs until a worker has answered. A stream would hold it for minutes, and the rows of 256
// workers are 32 KB.
type decision struct {
	ask    Ask
	fleet  fleet
	order  order
	result host.Result
	pair   *worker.Worker // that the strategy has named to compute the prompt; nil = none

	filtered
	leaving string       // id of the worker that leaves, and still has the conversation; "" = none
	fence   worker.Fence // of the request itself
	wide    bool         // the strategy is asked once more, with all workers that are up
	leads   uint64       // the group of which it is the first: the others wait until it is sent; 0 = none
	unasked bool         // the session's worker came first without the strategy, which may keep it from the others
}

var decisions = sync.Pool{New: func() any { return new(decision) }}

// reset makes d that of a request, and keeps the memory.
func (d *decision) reset(a *Ask) {
	d.ask = *a
	d.fence = a.Fence
	d.fleet.reset()
	d.order = order{}
	d.result = host.Result{}
	d.filtered = filtered{}
	d.pair, d.wide, d.unasked, d.leaving, d.leads = nil, false, false, "", 0
}

// Choose decides where the request goes. It writes to c and to nothing that another decision reads, except that the
// index makes room for a model's name that is new to it, and that the first request of a group has the others wait
// until it is sent.
func (p *Pool) Choose(c *Choice, a *Ask) Verdict {
	c.reset(p, a)
	if v := c.stay.find(p, &c.ask); v != Chosen {
		return v
	}
	c.talk.find(p, &c.ask)
	c.keepWeights()
	c.hashPrompt()
	c.findStrategy()
	if by, r := c.filter(c.strategy); by != nil {
		if r.Fallback == "closed" && c.serving.Strategy() != c.strategy { // it was replaced meanwhile
			return p.Choose(c, a)
		}
		c.turnAway(by, r)
		return Rejected
	}
	if v := c.findWorkers(); v != Chosen {
		return v
	}
	if !c.fillFrame() {
		return Unheard
	}
	if c.ask.Held && !c.heldBy(c.ask.To) {
		return NoWorker
	}
	if !c.askStrategy() || c.misses() && !c.askWide() {
		return p.Choose(c, a)
	}
	v := verdictOf(&c.result)
	if v != Chosen {
		p.groups.pass(c)
	}
	return v
}

// reset drops the previous choice, except the time when it began.
func (c *Choice) reset(p *Pool, a *Ask) {
	d, arrived := c.decision, c.arrived
	if d == nil {
		d = decisions.Get().(*decision)
	} else {
		c.pool.groups.pass(c)
	}
	d.reset(a)
	if arrived.IsZero() {
		arrived = a.At
	}
	*c = Choice{} // a literal with the fields in it would be made on the stack and copied
	c.pool = p
	c.prompt = a.Prompt
	c.decision = d
	c.arrived = arrived
	c.at = a.At
}

// Release gives the decision's memory back. Afterwards only Answered, Unbind and the Trips may be used.
func (c *Choice) Release() {
	if c.decision != nil {
		c.pool.groups.pass(c)
		c.decision.ask = Ask{} // else the pool keeps the request's texts
		decisions.Put(c.decision)
		c.decision = nil
	}
}

// hashPrompt hashes the prompt and measures it, before the workers are looked at: a short one may not take it.
func (c *Choice) hashPrompt() {
	if !c.prompt.HasPrompt {
		return
	}
	c.secret = c.pool.secret.Load()
	seed, id := c.secret.space(spaceName(c.pool.cacheName(c.prompt.Model), c.ask.Salt))
	c.spaceID = id
	if !c.talk.none() {
		c.prompt.Watch = c.pool.breaks.Watch(c.ask.Caller)
	}
	c.prompt.Hash(seed)
	c.talk.follow(c.pool, &c.ask)
	if c.ask.Away {
		c.leaving = c.ask.To
	} else if c.ask.Leg == Whole && len(c.prompt.Chains) == 1 {
		c.leaving = c.pool.Book.Home(c.prompt.Chains[0].Hashes, c.at)
	}
	longest, z := measure(&c.pool.scale, c.prompt)
	c.size = z
	if longest != nil {
		c.fleet.begin(longest, int(partBlocks*z.block))
	}
}

// heldBy reports whether a worker is believed to hold half of the prompt.
func (c *Choice) heldBy(id string) bool {
	row := c.fleet.row(id)
	return row >= 0 && 2*c.fleet.frame.Rows[row].Matched() >= c.fleet.frame.Header.PromptBlocks
}

// need returns how many tokens of its model's length the request surely takes.
func (c *Choice) need() int { return max(needOf(c.prompt, &c.size, len(c.ask.IDs)), c.outgrew) }

// keepWeights keeps the request of a conversation to the workers with the weights of its turn before, while one of them
// may get it and the pool asks for that. A session that is bound to its worker stays there.
func (c *Choice) keepWeights() {
	if c.stay.worker() != "" {
		return
	}
	if v := Keeps(c); v != 0 && c.pool.Workers.HasWeights(v, c.fence, c.prompt.Model, c.at) {
		c.ask.Fence = append(slices.Clip(c.fence), v.Only())
	}
}

// Keeps returns the version of the weights that the conversation named by a request keeps to, 0 = any.
func Keeps(c *Choice) worker.Weights {
	if !c.pool.one.Load() || c.talk.none() || c.talk.unnamed() {
		return 0
	}
	known, _ := c.pool.book.Look(c.talk.key, c.talk.of)
	return worker.Weights(known.Weights)
}

// query describes the request to the fleet.
func (c *Choice) query() worker.Query {
	q := worker.Query{Model: c.prompt.Model, Fence: c.ask.Fence, At: c.at, Rank: c.ask.Rank, Need: c.need(), Wide: c.wide,
		Waits: c.ask.Patient, Only: c.only, Class: c.ask.Class, Tied: c.stay.tied(&c.ask),
		Half: c.ask.Leg == Prefill, Count: &c.fleet.count}
	q.Spare, q.From = q.Half && !c.ask.Needed, c.ask.From
	c.narrow(&q)
	if c.pool.Workers.BoundsKV() {
		model, caller := hashOf(c.prompt.Model), hashOf(c.ask.Caller)
		c.holds = c.size.all + int(c.pool.answers.expected(model, caller, c.prompt.MaxTokens))
		q.Holds, q.Beginning = c.holds, c.fleet.beginning
	}
	return q
}

// narrow limits a query to candidates, if the strategy is content with them: those that hold the prompt, and those that
// the request names, are of them. The answers of all workers are compared where prefillers answer too, and a session
// whose store is silent goes by the names of all.
func (c *Choice) narrow(q *worker.Query) {
	p, f := c.pool, &c.fleet
	q.Few = c.strategy != nil && c.strategy.Wants(abi.WantCandidates) && !p.wide.Load() && !c.stay.silent &&
		!c.ask.Shared && !c.wide && c.only == nil && p.Workers.IsLarge() && !c.hasMoreHolders() &&
		!(c.stay.free() && c.strategy.Wants(abi.WantSessions))
	if !q.Few {
		return
	}
	if !c.strategy.Wants(abi.WantCost) {
		q.Turn = 1 + c.ask.Turn
	}
	q.Near = c.talk.near(c.pool, &c.ask)
	if first := c.ask.first(); first != "" {
		q.Near[2] = worker.KeyOf(first)
	}
	if c.prompt.HasPrompt && !c.prompt.BypassesCache && len(c.prompt.Chains) > 0 {
		if len(f.holders) == 0 {
			chain, z := measure(&p.scale, c.prompt)
			f.holders = p.Index.Space(c.spaceID).Holders(chain.Hashes, mostHolders, f.holders)
			f.holders = p.lower.holders(c.spaceID, chain.Hashes, f.holders)
			f.holders = f.held.holders(p, &c.ask, z.block, f.holders)
			if f.held.known || p.lower.cpu.on.Load() {
				slices.SortStableFunc(f.holders, func(a, b prefix.Holder) int { return cmp.Compare(b.Blocks, a.Blocks) })
			}
		}
		q.Holders = f.holders
	}
}

// hasMoreHolders reports whether workers may hold the prompt of which narrow does not know: by the reports of LMCache,
// which are looked up by worker, or by those that only a strategy wants which looks on.
func (c *Choice) hasMoreHolders() bool {
	p := c.pool
	return len(c.ask.IDs) > 0 &&
		(p.Offload != nil && p.Offload.Live() || p.watches(abi.WantHeld) && !c.strategy.Wants(abi.WantHeld))
}

// fillFleet gets the rows of the workers that take a request now. The bound worker gets a row even if it is in slow
// start or drains. While the store is silent, the bound worker is the one that every router chooses.
func (c *Choice) fillFleet(bound string) worker.Standing {
	q := c.query()
	if c.stay.silent {
		q.Again = true // a worker in slow start here may not be so at another router
		c.fleet.fill(c.pool.Workers, q)
		q.Again = false
		bound = home(&c.stay.name, &c.fleet)
	}
	q.Bound = bound
	return c.known(c.fleet.fill(c.pool.Workers, q))
}

// findWorkers gets the rows. It decides what becomes of a session whose worker has no row.
func (c *Choice) findWorkers() Verdict {
	id := c.stay.worker()
	standing := c.fillFleet(cmp.Or(id, c.leaving))
	if standing == worker.Fenced { // that says nothing of the session's worker
		return Fenced
	}
	if standing == worker.Starting && c.ask.Patient {
		return Unheard
	}
	if id != "" && c.fleet.row(id) < 0 {
		why := c.pool.Workers.Standing(id, c.prompt.Model, c.ask.Fence, c.at)
		if c.barred {
			why = worker.Fenced
		}
		if why == worker.Starting && c.ask.Patient {
			return Unheard
		}
		if why == worker.Ready { // it became ready after the rows were filled
			standing = c.fillFleet(id)
		}
		if c.fleet.row(id) < 0 {
			if v := c.stay.leave(why, &c.ask); v != Chosen {
				return v
			}
		}
		if c.stay.state == moving && c.pool.Sessions.Alone() {
			c.stay.silent = true
			standing = c.fillFleet("")
		}
	}
	if c.stay.free() {
		c.fleet.countSessions(c.pool.Sessions)
	}
	return nobody(standing)
}

// findStrategy finds which strategy is asked.
func (c *Choice) findStrategy() {
	c.serving = c.pool.canaries.serving(&c.pool.Strategy, &c.ask, c.stay.name.ID)
	c.strategy = c.ask.By
	if c.strategy == nil {
		c.strategy = c.serving.Strategy()
	}
	c.fleet.held.wanted = c.strategy != nil && c.strategy.Wants(abi.WantHeld) && c.pool.reported()
}

// sessionID returns the id of the session that the request concerns, "" if it concerns none.
func (c *Choice) sessionID() string {
	if c.stay.state == apart {
		return ""
	}
	return c.stay.name.ID
}

// fillFrame fills the frame of the strategy: what the request asks for, which worker holds how much of its prompt, and
// which has its session. It returns false if another request of its group is being placed meanwhile.
func (c *Choice) fillFrame() (ok bool) {
	shares := false
	if len(c.ask.Prefillers) > 0 && c.strategy.Wants(abi.WantPair) {
		n, _ := c.fleet.add(c.pool.Workers, toPrefill(c.query(), c.ask.Prefillers))
		c.fleet.frame.Header.Prefillers = uint32(n)
	}
	frame := &c.fleet.frame
	describe(frame, c.pool, &c.ask, c.stay.name.Tenant, c.sessionID())
	frame.Header.Configured, frame.Header.Up = uint32(c.fleet.count.Configured), uint32(c.fleet.count.Up)
	if c.prompt.HasPrompt {
		p := c.pool
		c.space = p.Index.Space(c.spaceID)
		c.below = p.lower.spaces(c.spaceID)
		c.size = c.fleet.match(p, c.space, &c.below, &c.ask)
		shares, ok = p.groups.join(c)
		if !ok {
			return false
		}
		fillDelay(frame, &c.ask, c.ask.Leg)
		addFar(frame.Rows, p.Workers, c.ask.Near, c.ask.Far)
		c.fleet.known = known{candidates: c.fleet.workers, pool: p.Workers, index: p.Index, space: c.space, reuse: p.reuse,
			lower: p.lower, below: &c.below, at: c.at, block: p.scale.textBlock()}
		frame.Prefixes = &c.fleet.known
	}
	c.fleet.dropBacklogged(c.pool.Workers.MaxWait(), c.stay.worker())
	frame.Header.Next = 0
	if next := c.fleet.count.Next; next != nil {
		frame.Header.Next = uint32(1 + slices.Index(c.fleet.workers, next))
	}
	frame.Header.Bound = int32(c.fleet.row(cmp.Or(c.stay.worker(), c.ask.first(), c.leaving)))
	c.talk.describe(c.pool, &c.ask, &c.fleet)
	if shares { // what a session's further turns will wait there does not count: the group is to have one prefill
		frame.Header.ExpectedTurns = 0
	}
	return true
}

// askStrategy asks the strategy, for which the frame was filled, for the order of the workers. It returns false if
// another strategy replaced it before it decided. The other one wants other fields and has other reasons, and one
// decision is made by one version alone. While the store is silent, home.go's order, which is the same in every router,
// overrides the answer.
func (c *Choice) askStrategy() bool {
	if c.strategy.Wants(abi.WantCost) {
		score.Price(&c.fleet.frame.Header, c.fleet.frame.Rows)
	}
	if c.ask.By != nil {
		c.result = c.ask.By.Pick(&c.fleet.frame)
	} else {
		r, next := c.serving.Ask(c.strategy, &c.fleet.frame)
		if next != nil {
			return false
		}
		c.result = r
	}
	c.endHold()
	c.order.begin(&c.result, &c.fleet)
	c.pair = c.fleet.paired(&c.result, &c.ask)
	c.unasked = c.fleet.frame.Header.Bound >= 0 && c.strategy.MayExclude()
	switch s := &c.stay; {
	case s.state == bound && (c.ask.Claim.Closing || s.staysPut(&c.ask)):
		c.order.pin()
	case s.silent && c.binds():
		sortAlike(c.order.rows, &s.name, &c.fleet)
	}
	return true
}

// binds reports whether the choice binds or moves the session.
func (c *Choice) binds() bool {
	switch c.stay.state {
	case moving:
		return true
	case open:
		return c.ask.Claim.Binds || c.result.Flags&abi.FlagBind != 0
	}
	return false
}

// Reason returns why the worker that was tried last was chosen; before any was tried, why the first of the order was.
// It is "" if no strategy was asked.
func (c *Choice) Reason() string {
	if c.strategy == nil {
		return ""
	}
	switch bound := int(c.fleet.frame.Header.Bound); {
	case c.order.by == byHost:
		return "failover: chosen by the host"
	case c.order.by == byName:
		return "failover: the strategy's next choice"
	case c.stay.silent && c.binds():
		return "store silent: by the session's name"
	case bound >= 0 && c.order.first() == bound && c.ask.Away:
		return "the conversation moves there"
	case bound >= 0 && c.order.first() == bound && c.stay.worker() == "" && c.leaving != "":
		return "the conversation is there until it has moved, or has moved there"
	case bound >= 0 && c.order.first() == bound:
		return c.ask.Leg.boundReason()
	case c.result.Fallback != "":
		return "fallback: " + c.result.Fallback
	}
	if c.nobody {
		return "the filter leaves no worker"
	}
	return c.reasonOf(c.strategy, c.result.Reason)
}

// Module returns the digest of the strategy's module, "" if no strategy was asked.
func (c *Choice) Module() string {
	if c.strategy == nil {
		return ""
	}
	return c.strategy.SHA256()
}

// LastError returns the last error of the strategy that was asked, on this request or another, without the stack of a
// guest that panics: the host has logged that.
func (c *Choice) LastError() string { return host.Brief(c.strategy.Stats().LastError) }

// FellBack reports whether the host chose in the place of the strategy.
func (c *Choice) FellBack() bool { return c.result.Fallback != "" }

// Rejection returns the strategy's answer to the client, after the verdict Rejected: a status, a text and a time to
// wait. For "" and 0 the router fills in its own.
func (c *Choice) Rejection() (status int, text string, wait time.Duration) {
	if r := c.result.Reject; r != nil {
		return r.Status, r.Text, r.RetryAfter
	}
	return 0, "", 0
}

// Reported reports whether the workers' own reports were read for the choice, and whether the first worker's match
// comes at least in part from them.
func (c *Choice) Reported() (read, matched bool) {
	if !c.fleet.held.known {
		return false, false
	}
	first := c.order.first()
	row := &c.fleet.frame.Rows[first]
	return true, row.Matched() > 0 && c.fleet.held.told(first, row)
}

// First returns the worker that comes first; after a look that found none, the last one tried.
func (c *Choice) First() *worker.Worker {
	if c.order.first() < 0 {
		return c.order.last
	}
	return c.fleet.workers[c.order.first()]
}

// Next returns the next worker in the order of the choice. At its end Next takes a second look at the fleet and goes
// on with the workers that the order left out, in slow start or full then, the least busy first. It returns false
// when no worker is left.
//
// Next looks once more after those: they may have hidden suspects, which get only what nobody else takes. After a
// look that finds no worker, there is no other one for a while. An attempt may last for minutes, and the fleet is
// another one after it.
func (c *Choice) Next(at time.Time) (Target, bool) {
	if c.unasked && c.order.next > 0 {
		askForOthers(c)
	}
	if c.order.left() == 0 && c.MayWiden(at) {
		c.lookAgain(at)
	}
	if c.order.left() == 0 {
		return Target{}, false
	}
	return c.order.advance(&c.fleet), true
}

// lookAgain takes the second look: it fills rows and matches anew, from the workers as they are now.
func (c *Choice) lookAgain(at time.Time) {
	if c.unasked {
		askForOthers(c)
	}
	c.at = at
	c.ask.Fence = c.fence
	if by, _ := c.filter(cmp.Or(c.serving.Strategy(), c.strategy)); by != nil { // there is none while the pool closes
		c.only = new(worker.Allowed)
	}
	q := c.query()
	q.Again, q.Tried = true, c.order.tried
	c.fleet.fill(c.pool.Workers, q)
	if c.space != nil {
		c.size = c.fleet.match(c.pool, c.space, &c.below, &c.ask)
	}
	c.fleet.dropBacklogged(c.pool.Workers.MaxWait(), c.stay.worker())
	c.order.restart(&c.fleet)
	c.fleet.frame.Header.Bound = int32(c.fleet.row(c.stay.worker()))
	c.talk.place(c.pool, &c.ask, &c.fleet)
	if c.outgrew > 0 {
		c.dropShort()
	}
}

// Back has Next return the last worker once more.
func (c *Choice) Back() { c.order.next-- }

// Again is Back, unless a second look at the fleet finds another worker.
func (c *Choice) Again(at time.Time) {
	if c.order.left() > 0 || !c.MayWiden(at) {
		c.Back()
		return
	}
	c.lookAgain(at)
	if c.order.left() == 0 {
		if row := slices.Index(c.fleet.workers, c.order.last); row >= 0 {
			c.order.rows = append(c.order.rows, int32(row))
		}
	}
}

// NotHad records that the last worker which Next returned has not had the request, and may get it later: it takes
// nothing now, or no connection to it was made in time.
func (c *Choice) NotHad() { c.order.tried = c.order.tried[:max(0, len(c.order.tried)-1)] }

// Left returns how many workers of the order have not been tried.
func (c *Choice) Left() int { return c.order.left() }

// lookEvery is after how long a further look at the fleet may find somebody new: one health check.
const lookEvery = 2 * time.Second

// MayWiden reports whether another look at the fleet may find somebody at that time.
func (c *Choice) MayWiden(at time.Time) bool {
	return !c.order.pinned && (!c.order.spent || at.Sub(c.at) >= lookEvery)
}

// Pinned reports whether no worker but the first may ever get the request.
func (c *Choice) Pinned() bool { return c.order.pinned }

// Tried returns the workers that Next has returned, in their order, without those that Send found to take nothing.
func (c *Choice) Tried() []*worker.Worker { return c.order.tried }
