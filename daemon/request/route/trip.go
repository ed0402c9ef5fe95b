package route

import (
	"cmp"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Trip is a request at one worker, from Send to End. Every trip must be ended.
type Trip struct {
	choice   *Choice
	ticket   worker.Ticket
	worker   *worker.Worker
	believed int32           // of the prompt's tokens, in the worker's cache when it was chosen
	alone    int32           // likewise, if no prefiller hands the prompt over
	matched  uint32          // blocks
	live     bool            // both come from the worker's own reports
	given    bool            // a prefiller computed the prompt: what was cached is no sign of the worker's own cache
	ended    bool            // End was called
	whole    bool            // as Choice.whole, which cannot be asked after Release
	forecast holdings.Ticket // that the worker will hold the prompt
	entered  entered         // what Send wrote into the index ahead of the answer
	teller   Teller          // published the trip; nil = none
	told     uint64          // the trip's number at teller
	notice   abi.Outcome
	sent     time.Duration // behind the arrival
	handed   *delivery     // nil = the worker computes the prompt itself

	Charge *queue.Charge // of the request's key, for its place at the worker
}

// Send takes a place at the worker and enters the prompt in the index, where it stays unless the worker fails or
// refuses the request. It returns false if the worker takes no request now: another request got its last place, or it
// went down meanwhile. If the worker goes down while the request is there, it calls holder.GiveUp.
func (c *Choice) Send(t *Trip, to Target, holder worker.Holder, at time.Time) bool {
	w := to.Worker
	alone := c.believed(to)
	held := alone
	if to.Handed {
		held = max(0, c.size.all-1)
	}
	est := c.estimate(to)
	hint, dear := c.hint(to, alone, at)
	if hint != nil {
		held, est = hint.own+hint.tokens, hint.seconds(c, c.fleet.frame.Rows[to.row].Slow, at)
	}
	*t = Trip{choice: c, worker: w, believed: int32(held), alone: int32(alone), given: to.Handed || hint != nil,
		whole: c.whole()}
	if !c.pool.Workers.Begin(&t.ticket, w, worker.Dispatch{PromptTokens: c.size.all, CachedTokens: held,
		Holds: c.holds, Backlogged: c.fleet.frame.Rows[to.row].Wait > c.pool.Workers.MaxWait(),
		Beginning: c.fleet.beginning, Output: int(c.fleet.frame.Header.ExpectedOutput),
		Sequences: max(1, c.prompt.N) * max(1, len(c.prompt.Chains)),
		Est:       est, Model: c.prompt.Model, Fence: c.ask.Fence, Only: c.only, Class: c.ask.Class,
		Whole: t.whole, Talks: c.prompt.Kind.Generates(), Bound: w.ID() == cmp.Or(c.stay.worker(), c.leaving),
		Tried: c.order.triedSlots(), Holder: holder, Paired: to.Handed || c.ask.Leg == Prefill, Coming: to.Coming}, at) {
		c.NotHad()
		return false
	}
	c.sent++
	begins := c.sent == 1 && c.ask.From == nil // the rest of an answer is no turn
	if begins {
		c.talk.turn(c.pool, &c.ask, &c.fleet, w.Key(), at)
	}
	if !c.talk.none() && (!begins || c.pool.one.Load()) { // turn has recorded the worker
		c.pool.book.Went(c.talk.key, w.Key(), uint64(w.Weights()))
	}
	c.held = int32(held)
	row := &c.fleet.frame.Rows[to.row]
	t.matched, t.live = row.Matched(), row.Live()
	t.describe(c, at)
	if !to.Handed {
		c.pool.groups.note(c, row, t.ticket.Est()*row.Slow, at)
	}
	switch {
	case hint != nil:
		t.deliver(row, hint.tokens, at)
		t.handed.hint = hint
	case dear:
		t.handed = &dearer
	}
	if c.fleet.held.known {
		t.forecast = c.pool.Held.Predict(w.Slot(), &c.fleet.held.query)
	}
	t.entered.enter(c, w)
	t.tellSent(c, t.ticket.Est(), at)
	return true
}

// WorksOn reports whether the worker has done something since that time.
func (t *Trip) WorksOn(since time.Time) bool { return t.ticket.WorksOn(since) }

// Prompt is what another worker does with the prompt of a request that arrives.
type Prompt uint8

// The values of Prompt.
const (
	Alone    Prompt = iota // nothing: the worker computes it
	Computed               // it has computed it
	Away                   // it computes it meanwhile: see Trip.Computed
)

// Arrive takes the place at the worker of a Target that was coming, as the worker gets the request now. It returns
// false if others have the last places; the trip is then to be ended.
func (t *Trip) Arrive(p Prompt, at time.Time) bool {
	if p == Alone {
		t.believed, t.given = t.alone, false
	}
	return t.ticket.Arrive(int(t.believed), p == Away, at)
}

// Computed records that the other worker has computed the prompt of a request that has arrived.
func (t *Trip) Computed(at time.Time) { t.ticket.Computed(at) }

// Overdue records that the worker, a prefiller, has not computed the prompt in time, of which limit is what it has.
func (t *Trip) Overdue(at time.Time, limit time.Duration) { t.ticket.Overdue(at, limit) }

// Ahead returns how many seconds at least the worker has to do for others before it begins with the request.
func (t *Trip) Ahead(at time.Time) float64 { return t.ticket.Ahead(at) }

// whole reports whether the first byte of the answer does not show when the prefill ended. That of a prefill alone
// does, as its answer has one token.
func (c *Choice) whole() bool { return !c.prompt.Stream && c.ask.Leg != Prefill }

// tellSent publishes a trip that has begun. It leaves out one whose prompt was hashed with an old secret.
func (t *Trip) tellSent(c *Choice, est float64, at time.Time) {
	to := c.pool.teller.Load()
	if to == nil || c.secret != nil && *c.secret != *c.pool.secret.Load() {
		return
	}
	t.teller = to.Teller
	s := Sent{Worker: t.worker.Key(), Space: c.spaceID, Est: est, Tokens: c.size.all, Cached: int(t.believed),
		Block: c.size.block, Whole: c.whole(), Again: c.sent > 1, Moves: c.ask.Away}
	t.told = t.teller.Sent(&s, c.prompt.Chains, at)
}

// describe fills what a module learns of the trip's end, while the frame is still there.
func (t *Trip) describe(c *Choice, at time.Time) {
	h := &c.fleet.frame.Header
	t.sent = at.Sub(c.arrived)
	t.notice = abi.Outcome{Seq: h.Seq, Model: h.Model, Session: h.Session, Tenant: h.Tenant, Caller: h.Caller,
		Key: t.worker.Key(), Worker: t.worker.Slot(), PromptTokens: uint32(c.size.all), CachedTokens: -1, OutputTokens: -1,
		TTFT: -1, Believed: uint32(max(0, t.believed)), Attempts: uint32(c.sent)}
	if c.order.by != byHost {
		t.notice.Reason = uint32(c.result.Reason)
	}
}

// estimate returns the seconds of prefill on a worker of slowness 1, with the time to bring KV from slower tiers, or a
// transfer would be learnt as slowness. 0 = no KV is to be brought.
func (c *Choice) estimate(to Target) float64 {
	row := &c.fleet.frame.Rows[to.row]
	if row.L1 == 0 && row.L2 == 0 || row.Slow <= 0 {
		return 0
	}
	scale := score.NewScale(&c.fleet.frame.Header, c.fleet.frame.Rows)
	return scale.Terms(row).Prefill / row.Slow
}

// believed returns how many of the prompt's tokens a worker is taken to hold; of a list, of all its prompts together.
// Call it before the prompt enters the index.
func (c *Choice) believed(to Target) int {
	w, r, row := to.Worker, c.prompt, &c.fleet.frame.Rows[to.row]
	if row.Live() { // in tokens, and as the engine itself counts them
		return min(int(row.Matched()), c.size.all-1)
	}
	if len(r.Chains) < 2 || r.BypassesCache {
		return inBlocks(float64(row.Matched())*c.size.block, c.size.all, w.BlockTokens())
	}
	sum, slot, out := 0, [1]uint32{w.Slot()}, [1]uint32{}
	for k := range r.Chains {
		chain := &r.Chains[k]
		length, block := c.pool.scale.tokens(chain)
		c.space.Match(chain.Hashes, slot[:], out[:])
		sum += inBlocks(float64(out[0])*block, length, w.BlockTokens())
	}
	return sum
}

// inBlocks returns what an engine finds of so many held tokens of a prompt: whole blocks, and never the last token,
// which it always computes. size is the tokens of a block, 0 if it is not known.
func inBlocks(held float64, length, size int) int {
	n := max(0, min(length-1, int(held)))
	if size > 0 {
		n -= n % size
	}
	return n
}

// Believed returns how many of the prompt's tokens the last trip's worker was taken to hold.
func (c *Choice) Believed() int { return int(c.held) }

// Live reports whether what the worker was taken to hold comes from its own reports.
func (t *Trip) Live() bool { return t.live }

// Sent returns when the worker got the request.
func (t *Trip) Sent() time.Time { return t.choice.arrived.Add(t.sent) }

// Worker returns where the request was sent.
func (t *Trip) Worker() *worker.Worker { return t.worker }

// Weights returns the versions of the weights that the worker had when it got the request, or at the first output of a
// stream, and has now, as 12 or 12-13; "" if they are not known.
func (t *Trip) Weights() string {
	now := t.worker.Weights()
	return now.Of(t.entered.weights).Span(now)
}

// Matched returns how many leading blocks of the prompt the worker was believed to hold.
func (t *Trip) Matched() int { return int(t.matched) }

// Rested reports whether the worker is paused or asleep, or has been since it got the request.
func (t *Trip) Rested() bool { return t.ticket.Rested() }

// Rests reports whether the worker is paused or asleep, or has been since the last byte of the answer.
func (t *Trip) Rests() bool { return t.ticket.Rests() }

// FirstByte records the first output of a good answer. In a stream, weights that the worker had before that, while the
// request waited there, have made none of it.
func (t *Trip) FirstByte(at time.Time) {
	if !t.whole {
		t.entered.weights = t.worker.Weights().Low()
	}
	t.ticket.FirstByte(at)
	t.learnTransfer(at)
	if t.teller != nil {
		t.teller.FirstByte(t.told, at)
	}
	t.notice.TTFT = float32((at.Sub(t.choice.arrived) - t.sent).Seconds())
	t.tell((*host.Notices).FirstToken, t.outcome(200, at))
}

// delivery is KV on its way from a prefiller, or from where a hint says, to the worker that answers.
type delivery struct {
	at     time.Time // when that worker was told
	own    float64   // seconds of prefill that it does itself, or has queued
	tokens int       // that it lacks
	hint   *Hint     // nil = a prefiller has the KV
	over   bool      // its time was taken
}

// dearer stands for a hint that was not given as the copy takes too long.
var dearer = delivery{over: true}

// Handed records that the worker has received the address of the prompt's KV at a prefiller.
func (t *Trip) Handed(to Target, at time.Time) {
	c := t.choice
	t.deliver(&c.fleet.frame.Rows[to.row], max(0, c.size.all-c.believed(to)), at)
}

// deliver begins to take the time of so many tokens of KV that come from another worker.
func (t *Trip) deliver(row *abi.Row, tokens int, at time.Time) {
	c := t.choice
	queued := max(0, row.Wait-at.Sub(c.at).Seconds()) // it went on while the prefiller was at work
	own := row.Slow * c.pool.Workers.Estimate(c.size.all, int(t.believed))
	t.handed = &delivery{at: at, own: queued + own, tokens: tokens}
}

// NoteUnhinted records that a worker refuses hints, until it restarts.
func (t *Trip) NoteUnhinted() { t.choice.pool.unhinted.Store(t.worker.Slot(), struct{}{}) }

// Hint returns what the worker is to be told of another one's KV; nil = nothing.
func (t *Trip) Hint() *Hint {
	if t.handed == nil {
		return nil
	}
	return t.handed.hint
}

// HintResult returns what became of the trip's hint, by the engine's counts; "" = there was none to give.
func (t *Trip) HintResult(u *record.Usage) HintResult {
	switch h := t.Hint(); {
	case t.handed == &dearer:
		return HintDear
	case h == nil:
		return ""
	case !u.CachedKnown:
		return HintUnknown
	case u.Cached >= h.own+h.tokens/2:
		return HintFetched
	}
	return HintMissed
}

// learnTransfer takes the time of the first byte of an answer whose prompt was handed over. An answer in one piece
// shows nothing.
func (t *Trip) learnTransfer(at time.Time) {
	h := t.handed
	if h == nil || h.over {
		return
	}
	h.over = true
	if !t.whole {
		t.choice.pool.transfer.learn(at.Sub(h.at).Seconds()-h.own, h.tokens, at)
	}
}

// tell hands a record to the strategy that serves now and to the filters before it. The reason is the strategy's own.
func (t *Trip) tell(call func(*host.Notices, *abi.Outcome), o *abi.Outcome) {
	s := t.choice.serving.Strategy()
	if s == nil { // the pool closes
		return
	}
	call(s.Notices(), o)
	reason := o.Reason
	o.Reason = 0
	for _, f := range s.Filters() {
		if f != s {
			call(f.Notices(), o)
		}
	}
	o.Reason = reason
}

// outcome returns what a module learns of the trip as of now.
func (t *Trip) outcome(status int, at time.Time) *abi.Outcome {
	t.notice.Status, t.notice.Now = uint32(status), at.UnixNano()
	t.notice.Seconds = float32(at.Sub(t.choice.arrived).Seconds())
	return &t.notice
}

// Silent reports whether the trip has ended and its holder was not called and never will be.
func (t *Trip) Silent() bool { return t.ended && t.ticket.Silent() }

// Flow records that bytes of the answer came.
func (t *Trip) Flow(at time.Time) { t.ticket.Flow(at) }

// End is how a trip ended.
type End struct {
	Reply  *prompt.Reply // nil: nothing was read of the answer
	Whole  bool          // the answer came to its end
	Status int           // the client's, of the trip whose answer it got; 0 = this trip gave the client no answer
	At     time.Time
}

// End counts the request down and learns from its answer: tokens a byte, what the worker's cache really held, and the
// text itself if the answer came to its end. It returns the engine's own counts. It writes the generated tokens into
// o, which is not a field of End because that would allocate. Only the first call does anything.
func (t *Trip) End(o *judge.Outcome, e End) (u record.Usage) {
	if t.ended {
		return u
	}
	t.ended = true
	defer t.leave(o, e.At) // also if what reads the answer panics
	if e.Reply != nil {
		u = t.readReply(o, e.Reply, e.Whole, e.At)
	}
	if e.Status == 0 {
		return u
	}
	if u.Known && o.Kind == judge.Answered {
		t.choice.pool.book.Answered(t.choice.talk.key, u.Output)
	}
	told := t.outcome(e.Status, e.At)
	if u.Known {
		told.PromptTokens, told.OutputTokens = uint32(u.Prompt), int32(u.Output)
	}
	if u.CachedKnown {
		told.CachedTokens = int32(u.Cached)
	}
	t.tell((*host.Notices).Complete, told)
	return u
}

// leave counts the request down, here and at the other routers.
func (t *Trip) leave(o *judge.Outcome, at time.Time) {
	t.ticket.End(at, *o)
	t.Charge.End(at)
	if t.teller != nil {
		t.teller.Ended(t.told, at)
	}
	if o.Kind <= judge.Answered && !o.Rejected { // a client that left shows nothing about the worker
		return
	}
	t.choice.pool.Held.Withdraw(t.forecast)
	if t.notice.TTFT < 0 { // the worker holds the prompt of what it has begun to answer
		t.entered.takeBack(t.choice, t.worker)
	}
}

// Excuse takes back what the trip's end has counted against its worker for an outcome of that kind: another worker has
// failed the request in the same way.
func (t *Trip) Excuse(k judge.Kind, at time.Time) { t.ticket.Excuse(k, at) }

// Confirm counts a refusal that ended the trip against its worker: another worker has accepted the request.
func (t *Trip) Confirm(o judge.Outcome, at time.Time) { t.ticket.Confirm(o, at) }

// Elsewhere reports whether another worker takes the request now, and has not said of late that it is full.
func (t *Trip) Elsewhere(at time.Time) bool { return t.ticket.Elsewhere(at) }

// Doubtful reports whether a refusal of the trip's worker is to be compared with another worker's answer.
func (t *Trip) Doubtful(at time.Time) bool { return t.ticket.Doubtful(at) }

// readReply corrects the estimates by the engine's counts, and enters the answer's text in the index if the answer is
// complete.
func (t *Trip) readReply(o *judge.Outcome, r *prompt.Reply, whole bool, at time.Time) record.Usage {
	ok, complete := r.Finish()
	u := record.Usage(r.Usage())
	o.Tokens = u.Output
	c, chains, slot := t.choice, t.choice.prompt.Chains, t.worker.Slot()
	if ok && u.Known && len(chains) == 1 {
		if chain := &chains[0]; chain.Tokens == 0 && !chain.Media {
			c.pool.scale.correct(u.Prompt, chain.Bytes)
		}
		if u.CachedKnown && !t.live && !t.given {
			c.pool.caps.correct(slot, u.Cached, int(t.believed), u.Prompt)
		}
	}
	if !whole || !complete || o.Kind != judge.Answered || !t.ticket.Stays() {
		return u
	}
	if u.Known {
		c.pool.answers.learn(t.notice.Model, t.notice.Caller, u.Output)
	}
	for i := range chains {
		if chain := &chains[i]; r.ExtendChoice(chain, c.prompt.FirstChoice(i)) {
			c.space.Touch(slot, chain.Hashes)
			c.below.touch(t.worker, chain.Hashes, 0)
			if t.teller != nil {
				t.teller.Answer(t.told, c.spaceID, chain.Hashes, at)
			}
			c.talk.answered(c.pool, chain.Hashes, at)
		}
	}
	return u
}
