package served

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Config is what the router of one run is made of.
type Config struct {
	Strategy  *host.Strategy // of this router alone; Close closes it
	Kept      *Kept          // its store; nil = it has none
	Workers   []Worker       // what the operator says of the first ones
	Block     int            // tokens of a block of the workers' KV caches
	KVTokens  int            // the kv_tokens of [[pools.workers]]; 0 = from the workers' metrics
	CPUTokens int            // of KV that each worker's CPU memory keeps
	Tiers     route.Tiers
	Scrape    time.Duration
	Seed      uint64       // of the chance that strategies get
	Number    int          // of several routers
	All       int          // workers of the fleet
	Subset    map[int]bool // the numbers of those that it uses; nil = all
	Shares    bool         // its history with the others
	Names     Names

	// Queue is that of [[pools.queue]]; nil = requests that find no room are refused.
	Queue *Queue
	Room  Bounds

	// PrefillTokensPerSecond is configured as in [[pools]]; 0 = the default.
	PrefillTokensPerSecond float64
	// Seen is called after each choice, and may be nil: the request, the strategy's result and the frame that it saw.
	Seen func(q *trial.Request, c *route.Choice)
	// HandOver moves conversations away from workers that leave.
	HandOver bool
	// Split is when another worker computes a prompt; nil = each worker does both.
	Split *Split
}

// retryBudget is the default of [[pools]] retry_budget (TestTheRetryBudgetIsTheDefault).
const retryBudget = 0.2

// Router implements [world.Router] by the code that serves. Not safe for concurrent use.
type Router struct {
	Config
	ctx      context.Context
	pool     *route.Pool
	specs    []worker.Spec
	fleet    workerNumbers
	clock    time.Duration
	chance   *rand.Rand
	idle     []*visit // to be used again
	body     []byte
	reply    *prompt.Reply
	notices  bool // the strategy wants some
	follows  bool // it wants what workers report
	said     trial.Remarks
	waiting  *waiting      // nil = no request waits
	plans    []plan        // of moves under way
	joins    []string      // workers that have come, and may get conversations
	wishes   bool          // the strategy has wished for something
	sender   *peers.Sender // this and the next: nil = it shares nothing
	receiver *peers.Receiver
}

// visit is one request on its way through the pool. It stays the same from Choose to the last End.
type visit struct {
	parser   prompt.Parser
	choice   route.Choice
	trip     route.Trip
	attempts route.Attempts
	refused  bool // no other worker gets the request

	request *world.Request
	ask     route.Ask
	body    []byte        // of one that may wait: it is read again then
	kept    []byte        // body of one that may be moved
	place   queue.Request // in the queue
	entered uint64        // numbers the times that requests entered
	until   time.Time     // a strategy holds it
	arrived time.Time
	prefill *visit // its prompt is computed elsewhere; nil = where it is answered
	to      route.Target
}

// New makes a router of a fleet that has no workers yet.
func New(ctx context.Context, c Config) *Router {
	r := &Router{Config: c, ctx: ctx, chance: rand.New(rand.NewPCG(c.Seed, 0x70071)), fleet: newFleet(c.Block)}
	for _, s := range c.Strategy.Chain() {
		r.notices = r.notices || s.Wants(abi.WantNotices)
	}
	r.follows = c.Strategy.Wants(abi.WantHeld)
	r.reply = prompt.NewReply(prompt.Completion, true, 0)
	workers := worker.Config{ScrapeInterval: c.Scrape, RetryBudget: retryBudget, Watcher: &r.fleet,
		PrefillTokensPerSecond: c.PrefillTokensPerSecond, MaxInFlight: c.Room.MaxInFlight, MaxWait: c.Room.MaxWait,
		MaxKVUse: c.Room.MaxKVUse}
	if c.Queue != nil {
		r.waiting = newWaiting(c.Queue)
		workers.Room = r.waiting
	}
	r.pool = route.New(route.Config{
		Name: model, Reason: plugins.ReasonText, Began: epoch, Tiers: c.Tiers, Clock: r.time,
		Sessions: session.On(newStore(r.time), session.Config{Pool: model}),
		Workers:  workers,
		Secret:   route.Secret{1}, // not zero: that is one of the process
	})
	r.pool.Strategy.Replace(c.Strategy)
	r.pool.Book.Configure(bookBytes)
	if c.Shares {
		r.share(c.Number)
	}
	return r
}

func (r *Router) time() time.Time { return epoch.Add(r.clock) }

// at moves the router's clock.
func (r *Router) at(now time.Duration) time.Time {
	r.clock = now
	r.Kept.at(r.time())
	return r.time()
}

// settle runs the module's pending work.
func (r *Router) settle() {
	if r.notices {
		r.settleAll()
	}
}

// Choose implements [world.Router].
func (r *Router) Choose(now time.Duration, q *world.Request, text []byte) (number int, p world.Placement) {
	at := r.at(now)
	if v, again := q.Own.(*visit); again {
		number, p = r.choose(v, at)
		return number, r.orWait(v, p, at)
	}
	v := r.visit()
	v.request, v.arrived = q, at
	body := &r.body
	if r.waiting != nil || r.Split != nil {
		body = &v.body
	}
	*body = appendBody((*body)[:0], q, text)
	parsed, err := v.parser.Parse(prompt.Completion, *body)
	if err != nil {
		panic("BUG: served: a body that cannot be read: " + err.Error())
	}
	v.ask = route.Ask{Prompt: parsed, Turn: r.pool.Arrive(model, nil, at), Random: r.chance.Uint64() | 1}
	if r.Split != nil {
		v.ask.Leg, v.ask.Fence, v.ask.Prefillers = route.Answer, r.Split.answers(), r.Split.Fence
		v.ask.Shared = r.Split.Shared
	}
	v.ask.Claim = r.Names.claim(&q.Request)
	v.ask.Caller, v.ask.Headers = q.Chat.Key, headers(q.Chat.Headers)
	if r.follows && r.pool.WantsIDs() {
		v.ask.IDs = q.IDs
	}
	verdict := r.verdict(v, at)
	if verdict == route.Chosen && r.Waiting() { // it would take the place that another one waits for
		verdict = route.Full
	}
	number, p = r.follow(v, verdict, at)
	return number, r.orWait(v, p, at)
}

// verdict chooses a worker for a request.
func (r *Router) verdict(v *visit, at time.Time) route.Verdict {
	r.settleAll()
	v.ask.At, v.ask.Queue = at, r.waiting.seen(v, at)
	return r.pool.Choose(&v.choice, &v.ask)
}

// follow sends a request to the worker that was chosen for it. It waits if none has room, and there is a queue.
func (r *Router) follow(v *visit, verdict route.Verdict, at time.Time) (number int, p world.Placement) {
	if (verdict == route.Full || verdict == route.Held) && r.waiting != nil {
		return 0, world.Waits
	}
	if verdict == route.Rejected {
		status, text, _ := v.choice.Rejection()
		r.said.Rejected++
		r.said.Rejection = strings.TrimSpace(fmt.Sprintf("%d %s", status, text))
	}
	if verdict != route.Chosen {
		r.pool.GiveBack(model, nil)
		r.leave(v)
		return 0, world.Refused
	}
	if v.choice.FellBack() {
		r.said.Fallbacks++
	}
	if r.Seen != nil {
		r.Seen(&v.request.Request, &v.choice)
	}
	r.copy(v)
	v.choice.Bind()
	v.request.Own = v
	return r.choose(v, at)
}

// choose sends a request to the next worker of the order that takes it.
func (r *Router) choose(v *visit, at time.Time) (number int, p world.Placement) {
	for !v.refused {
		to, left := v.choice.Next(at)
		if !left {
			break
		}
		to.Handed = r.Split != nil && r.Split.Splits(&v.choice, to)
		if v.choice.Send(&v.trip, to, nil, at) {
			if to.Handed {
				v.to = to
				sendPrefill(r, v, at)
			}
			return r.fleet.numbers[to.Worker.ID()], world.Sent
		}
		r.retry(v, route.Failure{Grade: route.GradeUnseen}, at) // it is full
	}
	v.choice.Unbind()
	if r.waiting != nil && !v.refused {
		return 0, world.Waits
	}
	r.leave(v)
	return 0, world.Refused
}

// orWait enters a request that is to wait. It is refused if there is no room for it.
func (r *Router) orWait(v *visit, p world.Placement, at time.Time) world.Placement {
	if p != world.Waits || r.waiting.enter(v, route.Weigh(&v.choice), at) {
		return p
	}
	r.pool.GiveBack(model, nil)
	r.leave(v)
	return world.Refused
}

// Waiting implements [world.Queuer].
func (r *Router) Waiting() bool { return r.waiting != nil && r.waiting.some() }

// Release implements [world.Queuer].
func (r *Router) Release(now time.Duration) (q *world.Request, number int, p world.Placement) {
	at := r.at(now)
	if v := r.waiting.over(at); v != nil {
		r.pool.GiveBack(model, nil)
		r.leave(v)
		return v.request, 0, world.Refused
	}
	r.waiting.wake(at)
	r.waiting.overHold(at)
	for turn := r.waiting.queue.Next(at); turn != nil; turn = r.waiting.queue.Next(at) {
		v := turn.Owner.(*visit)
		verdict := r.verdict(v, at)
		number, p = r.follow(v, verdict, at)
		if p != world.Waits {
			r.waiting.left(v, p == world.Sent, at)
			return v.request, number, p
		}
		r.waiting.rest(v, verdict)
	}
	return nil, 0, world.Refused
}

// retry prepares what follows an attempt without an answer.
func (r *Router) retry(v *visit, f route.Failure, at time.Time) {
	switch v.attempts.After(f, false, v.choice.Left(), func() bool { return r.pool.Workers.MayRetry(at) }) {
	case route.GiveUp:
		v.refused = true
	case route.TryAgain:
		v.choice.Again(at)
	}
}

// First implements [world.Router].
func (r *Router) First(now time.Duration, q *world.Request) {
	v := q.Own.(*visit)
	v.trip.FirstByte(r.at(now))
	r.keep(v, r.time())
	v.choice.Release()
	r.settle()
}

// End implements [world.Router].
func (r *Router) End(now time.Duration, q *world.Request, e trial.End) {
	v, at := q.Own.(*visit), r.at(now)
	o, end := judge.Outcome{Kind: judge.Answered}, route.End{Whole: true, Status: 200, At: at}
	switch e.Status {
	case trial.Answered:
		r.reply.Reset(prompt.Completion, true, 0)
		r.body = appendAnswer(r.body[:0], q.Prompt, e.Output, e.Cached, q.Reply(e.Output))
		r.reply.Feed(r.body)
		end.Reply = r.reply
		v.choice.Answered(v.trip.Worker(), true)
	default: // the connection broke
		o = judge.Outcome{Kind: judge.Broken, Err: "closed or reset the connection before the end of its answer"}
		end.Whole = false
		if e.Status == trial.Repeated {
			end.Status = 0
			v.choice.Unreached(v.trip.Worker())
		}
	}
	v.trip.End(&o, end)
	r.settle()
	if e.Status == trial.Repeated { // vLLM sends the head of a stream before the prefill
		r.retry(v, route.Failure{Grade: route.GradeSeen, Broke: true, By: v.trip.Worker()}, at)
		return
	}
	r.leave(v)
}

// visit returns memory for a request.
func (r *Router) visit() *visit {
	if n := len(r.idle); n > 0 {
		v := r.idle[n-1]
		r.idle = r.idle[:n-1]
		v.choice, v.trip, v.attempts, v.refused = route.Choice{}, route.Trip{}, route.Attempts{}, false
		v.prefill, v.kept, v.body = nil, nil, v.body[:0]
		v.place = queue.Request{}
		return v
	}
	return new(visit)
}

// leave takes the memory of a request back.
func (r *Router) leave(v *visit) {
	v.choice.Release()
	r.idle = append(r.idle, v)
}

// Tick implements [world.Router].
func (r *Router) Tick(now time.Duration) {
	r.pool.Tick(r.at(now))
	r.settle()
}

// Scraped implements [world.Router].
func (r *Router) Scraped(now time.Duration, number int, s *engine.Stats) {
	at := r.at(now)
	if !r.uses(number) {
		return
	}
	m := worker.Metrics{Running: s.Running, Waiting: s.Waiting + s.Loading, Usage: s.KVUsage(),
		Capacity: s.Blocks * r.fleet.blockTokens, Block: r.fleet.blockTokens, SaysComputed: true,
		Prompts: float64(s.PromptTokens)}
	if number < len(r.Workers) && r.Workers[number].SGLang {
		readSGLang(&m, s)
	} else {
		m.Process = r.fleet.began[number]
		m.Queries, m.Hits = float64(s.QueriedTokens), float64(s.CachedTokens-s.CPUTokens-s.SharedTokens)
		m.ExternalHits = float64(s.CPUTokens + s.SharedTokens)
		m.Prefill, m.Prefills, m.Computed = s.Prefill.Sum, float64(s.Prefill.Count), s.PrefillTokens.Sum
		m.TokenTime, m.TokenTimes = s.PerToken.Sum, float64(s.PerToken.Count)
	}
	r.pool.Workers.Scraped(r.fleet.watched[name(number)], worker.Page{Metrics: m}, at)
	if r.All <= large || number%32 == 0 {
		r.pool.Tick(at) // the tiers' sizes too
	}
}

// readSGLang fills in what SGLang's page shows where it differs: it counts a prompt when it has been computed, not at
// the request's end, and does not name the start of the process.
func readSGLang(m *worker.Metrics, s *engine.Stats) {
	m.Queries, m.Hits = float64(s.ComputedTokens+s.CachedTokens), float64(s.CachedTokens)
	m.Prefill, m.Prefills, m.Computed = s.Forward.Sum, float64(s.Forward.Count), float64(s.ComputedTokens)
	m.TokenTime, m.TokenTimes = s.InterToken.Sum, float64(s.InterToken.Count)
	m.Steps = float64(s.GeneratedTokens)
}

// Down implements [world.Router].
func (r *Router) Down(now time.Duration, number int) {
	if !r.uses(number) {
		return
	}
	r.pool.Workers.Dead(r.fleet.watched[name(number)], "nothing listens", r.at(now))
}

// Lost implements [world.Router].
func (r *Router) Lost(now time.Duration, number int) {
	if !r.follows || !r.uses(number) {
		return
	}
	if slot, ok := slotOf(r.pool, number, r.at(now)); ok {
		w := r.pool.Held.Writer(slot)
		w.SetLive(false)
		w.Clear()
	}
}

// Up implements [world.Router].
func (r *Router) Up(now time.Duration, number int) {
	at := r.at(now)
	if !r.uses(number) {
		return
	}
	id := name(number)
	r.fleet.numbers[id] = number
	r.fleet.began[number] = 1 + now.Seconds()
	if _, known := r.fleet.watched[id]; !known {
		first, end := number, number+1
		if r.All > large {
			first, end = 0, r.All
		}
		for i := first; i < end; i++ {
			s := worker.Spec{ID: name(i), URL: "http://" + name(i), CPUTokens: r.CPUTokens, KVTokens: r.KVTokens,
				DataParallel: 1}
			fill(&s, r.Workers, i, r.Split)
			if r.uses(i) {
				r.specs = append(r.specs, s)
			}
		}
		r.pool.Workers.Update(r.specs, at)
	}
	r.pool.Workers.Healthy(r.fleet.watched[id], at)
	if !r.follows {
		return
	}
	if slot, ok := slotOf(r.pool, number, at); ok {
		r.pool.Held.Writer(slot).SetLive(true)
	}
}

// large is the number of workers above which a router learns of all at the first, and its ticks come less often: it
// would look at all of them for each.
const large = 256

// uses reports whether the router uses a worker.
func (r *Router) uses(number int) bool { return r.Subset == nil || r.Subset[number] }

// Follows implements [world.Router].
func (r *Router) Follows() bool { return r.follows }

// Remarks implements [world.Router].
func (r *Router) Remarks() trial.Remarks {
	said := r.said
	c := r.pool.Book.Counts()
	said.Left = trial.Moves{Moved: c.Moved, Failed: c.Failed, Used: c.Used, TokensMoved: c.TokensMoved,
		TokensUsed: c.TokensUsed}
	if r.Strategy.SHA256() != "" { // a module
		said.Refused = r.Strategy.Stats().Refused
	}
	return said
}

// settleAll has the strategy and its filters do what they do beside their picks.
func (r *Router) settleAll() {
	for _, s := range r.Strategy.Chain() {
		s.Settle(r.ctx)
	}
}

// Close implements [world.Router].
func (r *Router) Close() {
	for _, s := range r.Strategy.Chain() {
		s.Close(r.ctx)
	}
}
