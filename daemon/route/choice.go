package route

import (
	"cmp"
	"slices"
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Ask is what a request asks of the fleet.
type Ask struct {
	Prompt        *prompt.Request // parsed; Choose hashes it. It must not change until the Trip has ended
	Salt          string          // keeps tenants' prompts apart
	Caller        string          // the name of the key that was shown; "" = none
	Headers       host.HeaderSource
	Deadline      time.Time // nobody waits for the answer after it; zero = not known
	Claim         Claim
	EndWithWorker bool      // a session ends with its worker and does not move (sessions.on_worker_down = "error")
	Patient       bool      // Unheard is an answer
	Turn          uint64    // of Arrive
	At            time.Time // now
}

// Choice is the decision for one request, and what the following attempts make of it. Its zero value is ready for
// Choose. It is embedded by value in its caller's request, and allocates nothing of its own but what it borrows until
// Release.
type Choice struct {
	pool  *Pool
	ask   Ask
	fleet *fleet // nil after Release
	stay  stay
	space *prefix.Namespace // nil: there is no prompt

	arrived  time.Time // the first time that Choose was called
	strategy string
	module   *host.Strategy
	result   host.Result
	size     size
	held     int // tokens believed in the cache of the worker that was sent to last

	tried   []*worker.Worker
	some    [4]*worker.Worker // room for tried
	next    int               // place in result.Order
	sent    int
	widened bool // the second look has been taken
}

// Choose decides where the request goes. It changes nothing but c.
func (p *Pool) Choose(c *Choice, a Ask) Verdict {
	c.start(p, a)
	if v := c.stay.find(p.Sessions, &c.ask); v != Chosen {
		return v
	}
	if v := c.draw(); v != Chosen {
		return v
	}
	c.describe()
	c.pick()
	if c.result.Reject != nil {
		return Rejected
	}
	return Chosen
}

func (c *Choice) start(p *Pool, a Ask) {
	if c.fleet == nil {
		c.fleet = fleets.Get().(*fleet)
	}
	c.fleet.reset()
	arrived := c.arrived
	if arrived.IsZero() {
		arrived = a.At
	}
	*c = Choice{pool: p, ask: a, fleet: c.fleet, arrived: arrived}
	c.tried = c.some[:0]
}

// Release gives the picture of the fleet back. Afterwards only Bound, Answered and the Trips may be used.
func (c *Choice) Release() {
	if c.fleet != nil {
		fleets.Put(c.fleet)
		c.fleet = nil
	}
}

// snapshot gets the rows of the workers that take a request now, and that of the worker bound even if it begins
// slowly or drains.
func (c *Choice) snapshot(bound string) worker.Standing {
	if c.stay.silent {
		bound = c.home()
	}
	f := c.fleet
	return f.set(c.pool.Workers.Snapshot(worker.Query{Model: c.ask.Prompt.Model, Bound: bound, At: c.ask.At}, f.frame.Rows[:0], f.workers[:0]))
}

// drawAll gets the rows of all workers that are up, with those that begin slowly.
func (c *Choice) drawAll() worker.Standing {
	f := c.fleet
	return f.set(c.pool.Workers.Snapshot(worker.Query{Model: c.ask.Prompt.Model, Again: true, At: c.ask.At}, f.frame.Rows[:0], f.workers[:0]))
}

// draw gets the rows, and decides on a session whose worker is not among them.
func (c *Choice) draw() Verdict {
	id := c.stay.worker()
	status := c.snapshot(id)
	if status == worker.Starting && c.ask.Patient {
		return Unheard
	}
	if id != "" && c.fleet.row(id) < 0 {
		why := c.pool.Workers.Standing(id, c.ask.Prompt.Model, c.ask.At)
		if why == worker.Ready { // since the rows were filled
			status = c.snapshot(id)
		}
		if why == worker.Starting && c.ask.Patient {
			return Unheard
		}
		if v := c.stay.leave(why, &c.ask); v != Chosen {
			return v
		}
		if c.stay.state == moving && c.pool.Sessions.Alone() {
			c.stay.silent = true
			status = c.snapshot("")
		}
	}
	switch status {
	case worker.Down, worker.Starting:
		return NoWorker
	case worker.Lacking:
		return UnknownModel
	case worker.Full:
		return Full
	}
	if c.stay.free() {
		f := c.fleet
		c.pool.Sessions.FillLive(len(f.workers), func(i int) string { return f.workers[i].ID() },
			func(i int, live uint32) { f.frame.Rows[i].Sessions = live })
	}
	return Chosen
}

// describe fills the frame: what the request says of itself, who holds how much of its prompt, who its session is
// bound to.
func (c *Choice) describe() {
	p, r, f := c.pool, c.ask.Prompt, &c.fleet.frame
	id := ""
	if c.stay.state != apart { // what happens to this request is nothing to the session
		id = c.stay.name.ID
	}
	h := &f.Header
	h.Seq, h.Now = c.ask.Turn, c.ask.At.UnixNano()
	h.MaxTokens, h.Priority = r.MaxTokens, r.Priority
	if r.Stream {
		h.Flags |= abi.HeaderStream
	}
	h.Model, h.Session, h.Tenant = hashOf(r.Model), hashOf(id), hashOf(r.CacheSalt)
	h.Lambda = float32(p.Workers.Lambda(c.ask.At))
	h.C1, h.C2 = float32(p.Workers.C1()), float32(p.Workers.C2())
	f.Labels, h.LabelsEpoch = p.Workers.Labels()
	h.Labels = uint32(len(f.Labels))
	h.BestRow = -1
	h.Caller, h.Endpoint = hashOf(c.ask.Caller), endpoints[r.Kind]
	if !c.ask.Deadline.IsZero() {
		h.Deadline = c.ask.Deadline.UnixNano()
	}
	f.Session, f.Model, f.Tenant, f.Caller, f.Headers = id, r.Model, r.CacheSalt, c.ask.Caller, c.ask.Headers
	if r.HasPrompt {
		var seed uint64
		c.space, seed = p.namespace(r, c.ask.Salt)
		r.Hash(seed)
		c.size = c.fleet.match(p, c.space, r)
		c.fleet.known = known{fleet: c.fleet, pool: p.Workers, index: p.Index, space: c.space, reuse: p.reuse, at: c.ask.At,
			block: p.scale.textBlock()}
		f.Prefixes = &c.fleet.known
	}
	h.Bound = int32(c.fleet.row(c.stay.worker()))
}

// pick asks the strategy, or orders as every router does while the store is silent.
func (c *Choice) pick() {
	strategy := c.pool.Strategy.Strategy()
	c.strategy, c.module = strategy.Name(), strategy
	if strategy.Notices().Wants()&abi.WantCost != 0 {
		c.fleet.price()
	}
	c.result = c.pool.Strategy.Pick(&c.fleet.frame)
	switch s := &c.stay; {
	case s.state == bound && (c.ask.Claim.Closing || s.staysPut(&c.ask)):
		s.pinned, c.widened = true, true
		c.result.Order = c.result.Order[:1]
	case s.silent && c.binds():
		c.orderAlike()
	}
}

// binds tells whether the choice binds or moves the session.
func (c *Choice) binds() bool {
	switch c.stay.state {
	case moving:
		return true
	case open:
		return c.ask.Claim.Binds || c.result.Flags&abi.FlagBind != 0
	}
	return false
}

// Target is a worker that may be sent to.
type Target struct {
	Worker *worker.Worker
	row    int
}

// First returns the worker that comes first.
func (c *Choice) First() *worker.Worker { return c.fleet.workers[c.result.Row] }

// Next returns the next worker in the order of the choice. When that is at its end it looks at the fleet once more and
// goes on with those that were left out, in slow start or full then, the least busy first. False: nobody is left.
func (c *Choice) Next(at time.Time) (Target, bool) {
	if c.next == len(c.result.Order) && !c.widen(at) {
		return Target{}, false
	}
	row := int(c.result.Order[c.next])
	c.next++
	t := Target{Worker: c.fleet.workers[row], row: row}
	c.tried = append(c.tried, t.Worker)
	return t, true
}

// Again has Next return the last worker once more.
func (c *Choice) Again() { c.next-- }

// Left is how many workers of the order have not been tried.
func (c *Choice) Left() int { return len(c.result.Order) - c.next }

// MayWiden tells whether a second look at the fleet may still find somebody.
func (c *Choice) MayWiden() bool { return !c.widened }

// Tried are the workers that Next returned, in their order.
func (c *Choice) Tried() []*worker.Worker { return c.tried }

// widen takes the second look: its rows are those of the workers as they are now, their matches too.
func (c *Choice) widen(at time.Time) bool {
	if c.widened {
		return false
	}
	c.widened, c.next, c.ask.At = true, 0, at
	c.drawAll()
	order := c.result.Order[:0]
	for i, w := range c.fleet.workers {
		if !slices.Contains(c.tried, w) {
			order = append(order, int32(i))
		}
	}
	rows := c.fleet.frame.Rows
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(rows[a].InFlight, rows[b].InFlight) })
	c.result.Order, c.result.Row = order, -1
	if len(order) > 0 {
		c.result.Row = int(order[0])
	}
	if c.space != nil {
		c.size = c.fleet.match(c.pool, c.space, c.ask.Prompt)
	}
	c.fleet.frame.Header.Bound = int32(c.fleet.row(c.stay.worker()))
	return len(order) > 0
}

// Listed are models that the pool's workers list, at most so many, for one who looks for a name's spelling.
func (p *Pool) Listed(at time.Time, most int) (models []string) {
	for _, s := range p.Workers.Stats(at) {
		for _, m := range s.Models {
			if s.Up && len(models) < most && !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	return models
}
