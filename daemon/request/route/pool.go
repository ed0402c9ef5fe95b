package route

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/parts/recent"
	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/breaks"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/relocate"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Pool decides for the requests of one pool. Its strategy must be put in before the first Choose.
type Pool struct {
	Name     string
	Workers  *worker.Pool
	Index    *prefix.Index   // what was routed
	Held     *holdings.Index // what the workers report; the reader of their events writes and clears it
	Offload  *lmcache.Roster // what their LMCache reports; nil = no reports are taken
	Sessions *session.Bindings
	Strategy host.Current // of the requests that no canary takes
	Owns     Owns
	Book     relocate.Book // of conversations that are moved before their worker leaves

	canaries canaries
	watched  atomic.Uint32 // what strategies that look on ask for, as bits: abi.WantHeld, abi.WantPair
	wide     atomic.Bool   // one of them needs the rows of all workers
	reason   func(strategy string, code uint16) string
	reuse    *prefix.Reuse
	turns    turns
	book     *identity.Book
	one      atomic.Bool // a conversation keeps its weights
	groups   groups
	breaks   *breaks.Book
	answers  answers
	scale    scale
	transfer transfer
	patience patience
	caps     *capacities
	bare     sync.Map // of slots whose worker has answered that it keeps no sessions
	unhinted sync.Map // of slots whose worker refuses hints
	lends    atomic.Pointer[func(*worker.Worker) string]
	lower    *lower
	reloads  reloads
	seed     maphash.Seed // of the models' turns: new in each process, so that no tenant can prepare a collision
	secret   atomic.Pointer[Secret]
	teller   atomic.Pointer[telling] // nil = nothing is published

	clients Clients // nil = none

	mu     sync.Mutex // guards warned
	warned map[uint32]bool

	forgotten struct {
		sync.Mutex                 // guards keys
		keys       map[uint64]bool // of workers whose caches were lost since TakeForgotten; nil = nobody has called it
	}
}

// Config is the configuration of a pool.
type Config struct {
	Name     string
	Sessions *session.Bindings
	Reason   func(strategy string, code uint16) string // a strategy's reason code in words
	Began    time.Time                                 // from which the workers' clock counts
	Tiers    Tiers
	Offload  *lmcache.Roster
	Workers  worker.Config // its Caches are the pool's own
	Clients  Clients       // nil = none

	// Clock is the clock by which entries of the indexes age; nil = the process's. Secret makes the seeds of the
	// namespaces' hashes; zero = a random one of this process. A backtest sets both, so that two runs are the same.
	Clock  func() time.Time
	Secret Secret
}

// Clients are the connections to the workers.
type Clients interface {
	// Restarted means that the process of the worker at url has ended, as far as is known.
	Restarted(url string)
}

// New makes a pool whose prefix index is empty.
func New(c Config) *Pool {
	index := prefix.Config{}
	if c.Clock != nil {
		index.Now = func() int64 { return int64(c.Clock().Sub(c.Began)) }
	}
	p := &Pool{
		Name: c.Name, Sessions: c.Sessions, reason: c.Reason,
		Index: prefix.New(index), Held: holdings.New(holdings.Config{Now: c.Clock}), Offload: c.Offload,
		lower: newLower(c.Tiers, index), book: identity.NewBook(), breaks: breaks.New(),
		reuse: prefix.NewReuse(2*unknownTokens/32, c.Clock), caps: newCapacities(), seed: maphash.MakeSeed(),
		warned: map[uint32]bool{}, clients: c.Clients,
		groups: groups{of: recent.New[uint64, *sharers](maxGroups)},
	}
	if c.Secret == (Secret{}) {
		c.Secret = NewSecret()
	}
	p.secret.Store(&c.Secret)
	p.Book.Takers = func(now time.Time) []string { return p.Workers.Takers(now) }
	p.Book.Prefills = func(id string) bool { return p.Workers.Prefills(id) }
	p.Book.Fits = func(r *relocate.Request, id string, now time.Time) bool {
		return p.Workers.Keeps(id, worker.Weights(r.Weights), now)
	}
	p.Book.Rank = p.rank
	p.Book.Tier = func() bool { return p.SharedTokens() > 0 }
	c.Workers.Caches = caches{p}
	p.Workers = worker.New(c.Workers, c.Began)
	return p
}

// KeepWeights has each conversation keep to the version of the weights of its turn before, while a worker has that.
func (p *Pool) KeepWeights(on bool) { p.one.Store(on) }

// Configure makes c the workers' configuration, and t that of the tiers below their GPUs.
func (p *Pool) Configure(c worker.Config, t Tiers) {
	p.lower.configure(t)
	p.Workers.Configure(c)
}

// caches are those of a pool's workers, as the indexes have them.
type caches struct{ *Pool }

// Down implements worker.Caches.
func (c caches) Down(slot uint32) { c.forget(slot) }

// Restarted implements worker.Caches.
func (c caches) Restarted(slot uint32) { c.forget(slot) }

// Outdated implements worker.Caches. The worker's own reports go on: it still has those blocks.
func (c caches) Outdated(slot uint32) {
	c.Index.Remove(slot)
	c.lower.cpu.index.Remove(slot)
	if c.Held.Worker(slot).Live {
		c.Held.Writer(slot).Clear()
	}
	if w, to := c.Workers.At(slot), c.teller.Load(); w != nil && to != nil {
		to.Forgotten(w.Key())
	}
}

// Resized implements worker.Caches.
func (c caches) Resized(slot uint32, tokens int) { c.setCapacity(slot, tokens) }

// WantsIDs reports whether the prompt's token ids make a better decision. They do if a strategy, or one that looks on,
// asks for what the workers report, and some worker's reports are live. Whoever asks for ids asks any worker, and gives
// it the prompt: behind filters nobody does.
func (p *Pool) WantsIDs() bool { return p.reported() && p.wants(abi.WantHeld) && !p.filters() }

// filters reports whether some requests have filters.
func (p *Pool) filters() bool {
	return len(p.Strategy.Strategy().Filters()) > 0 ||
		slices.ContainsFunc(p.canaries.list(), func(c Canary) bool { return len(c.Strategy.Strategy().Filters()) > 0 })
}

// reported reports whether some worker's reports are live.
func (p *Pool) reported() bool { return p.Held.Live() || p.Offload != nil && p.Offload.Live() }

// WantsPairs reports whether a strategy wants to see who may compute a prompt, or one that looks on.
func (p *Pool) WantsPairs() bool { return p.wants(abi.WantPair) || p.filters() }

// wants reports whether a strategy asks for what a bit stands for, or one that looks on.
func (p *Pool) wants(bit uint32) bool {
	return p.Strategy.Strategy().Wants(bit) || p.watches(bit) ||
		slices.ContainsFunc(p.canaries.list(), func(c Canary) bool { return c.Strategy.Strategy().Wants(bit) })
}

// watches reports whether a strategy that looks on asks for what a bit stands for.
func (p *Pool) watches(bit uint32) bool { return p.watched.Load()&bit != 0 }

// Watch makes these the strategies that look on. They decide by snapshots.
func (p *Pool) Watch(all []*host.Strategy) {
	wants, wide := uint32(0), false
	for _, s := range all {
		wants |= s.Notices().Wants()
		wide = wide || !s.Wants(abi.WantCandidates) || !s.Wants(abi.WantCost)
	}
	p.watched.Store(wants)
	p.wide.Store(wide)
}

// SetCanaries makes these the pool's canaries. The first that takes a request serves it.
func (p *Pool) SetCanaries(all []Canary) { p.canaries.all.Store(&all) }

// Break is where the prompts of a key break from turn to turn, near their beginning.
type Break = breaks.Break

// Breaks returns those that are frequent.
func (p *Pool) Breaks() []Break { return p.breaks.Report() }

// CanaryNames names the strategies that serve a part of the requests, each with the part.
func (p *Pool) CanaryNames() (all []string) {
	for _, c := range p.canaries.list() {
		if s := c.Strategy.Strategy(); s != nil {
			all = append(all, s.Name()+" ("+c.part()+")")
		}
	}
	return all
}

// Strategies returns the pool's own strategy, those of its canaries that are loaded, and their filters.
func (p *Pool) Strategies() []*host.Strategy {
	var all []*host.Strategy
	add := func(s *host.Strategy) {
		for _, one := range s.Chain() {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	add(p.Strategy.Strategy())
	for _, c := range p.canaries.list() {
		add(c.Strategy.Strategy())
	}
	return all
}

// WantsKVEvents reports whether a strategy wants the events of the workers' KV caches. It is asked for each event, and
// allocates nothing.
func (p *Pool) WantsKVEvents() bool {
	return p.Strategy.Strategy().ChainWants(abi.WantKVEvents) ||
		slices.ContainsFunc(p.canaries.list(), func(c Canary) bool {
			return c.Strategy.Strategy().ChainWants(abi.WantKVEvents)
		})
}

// KVEvents passes events of the KV cache of the worker in a slot, which came at that time, to the strategies that want
// them.
func (p *Pool) KVEvents(slot uint32, events []abi.KVEvent, at time.Time) {
	key, ok := p.Workers.KeyAt(slot)
	if !ok { // it has been removed
		return
	}
	for i := range events {
		events[i].Key, events[i].Worker, events[i].Now = key, slot, at.UnixNano()
	}
	for _, s := range p.Strategies() {
		s.Notices().KVEvents(events)
	}
}

// rank has the pool's strategy, or a filter before it, set the values of conversations that may move.
func (p *Pool) rank(talks []abi.Talk) bool {
	for i := range talks {
		talks[i].Seconds = float32(p.Workers.Estimate(int(talks[i].Tokens), 0))
	}
	return slices.ContainsFunc(p.Strategy.Strategy().Chain(), func(s *host.Strategy) bool { return s.Plan(talks) })
}

// forget drops the state of a worker's process that has ended.
func (p *Pool) forget(slot uint32) {
	p.Index.Remove(slot)
	p.lower.cpu.index.Remove(slot)
	p.bare.Delete(slot)
	p.unhinted.Delete(slot)
	w := p.Workers.At(slot)
	if w == nil {
		return
	}
	if to := p.teller.Load(); to != nil {
		to.Forgotten(w.Key())
	}
	p.forgotten.Lock()
	if p.forgotten.keys != nil {
		p.forgotten.keys[w.Key()] = true
	}
	p.forgotten.Unlock()
	if p.clients != nil {
		p.clients.Restarted(w.URL())
	}
}

// TakeForgotten returns the keys of the workers whose caches were lost since the call before, none the first time.
func (p *Pool) TakeForgotten() []uint64 {
	p.forgotten.Lock()
	defer p.forgotten.Unlock()
	keys := slices.Collect(maps.Keys(p.forgotten.keys))
	p.forgotten.keys = map[uint64]bool{}
	return keys
}

// Secret returns the secret that makes the namespaces' seeds now.
func (p *Pool) Secret() Secret { return *p.secret.Load() }

// SetSecret makes the namespaces' seeds of s. If they were made with another secret, the pool forgets all history: its
// hashes mean nothing any more.
func (p *Pool) SetSecret(s Secret) {
	if *p.secret.Load() == s {
		return
	}
	p.secret.Store(&s)
	p.Index.Clear()
	p.lower.cpu.index.Clear()
	p.lower.shared.index.Clear()
}

// Tell makes the pool publish to t from now on; nil = it publishes nothing.
func (p *Pool) Tell(t Teller) {
	if t == nil {
		p.teller.Store(nil)
		return
	}
	p.teller.Store(&telling{t})
}

// NoteSessionless records that a worker answered that it keeps no sessions of its own.
func (p *Pool) NoteSessionless(w *worker.Worker) { p.bare.Store(w.Slot(), struct{}{}) }

// Sessionless reports whether the worker has answered so since it came up.
func (p *Pool) Sessionless(w *worker.Worker) bool {
	_, is := p.bare.Load(w.Slot())
	return is
}

// Arrive counts a request for the model that has come in at the time, and returns its turn: the number of requests for
// that model inside of the same fence before it.
func (p *Pool) Arrive(model string, fence worker.Fence, at time.Time) uint64 {
	p.Workers.Request(at)
	return p.turns.next(p.counter(model, fence))
}

// GiveBack gives back the turn of a request for which Choose asked no strategy, so that the next request gets it.
func (p *Pool) GiveBack(model string, fence worker.Fence) { p.turns.giveBack(p.counter(model, fence)) }

// Turn returns what Arrive would return next, and counts nothing.
func (p *Pool) Turn(model string, fence worker.Fence) uint64 {
	return p.turns.peek(p.counter(model, fence))
}

// counter returns the name of the count of the requests for a model inside of a fence.
func (p *Pool) counter(model string, fence worker.Fence) uint64 {
	name := maphash.String(p.seed, model)
	for _, label := range fence {
		name = name*31 + maphash.String(p.seed, label)
	}
	return name
}

func (p *Pool) setCapacity(slot uint32, tokens int) {
	if tokens == 0 { // another worker has got the slot
		p.mu.Lock()
		delete(p.warned, slot)
		p.mu.Unlock()
	}
	p.caps.set(slot, tokens)
	p.fitWorker(slot)
}

// fitWorker sets a worker's capacity in the index, in blocks of text by the current estimate.
func (p *Pool) fitWorker(slot uint32) {
	tokens, _ := p.caps.tokens(slot)
	p.Index.SetCapacity(slot, max(1, int(float64(tokens)/p.scale.textBlock())))
}

// Tick passes the time to the strategies that want it. It corrects the workers' capacities by the current estimate of
// tokens a byte, and the reuse curve by the fleet's size. Call it once a second. It returns each worker, once, whose
// metrics lack the size of its KV cache: the router then goes by a guess, of guess tokens.
func (p *Pool) Tick(now time.Time) (unknown []string, guess int) {
	for _, s := range p.Strategies() {
		s.Notices().Tick(now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	total, stats := 0, p.Workers.Stats(now)
	p.Owns.keep(stats)
	p.lower.fit(stats, p.scale.textBlock())
	for _, s := range stats {
		if !s.Up {
			continue
		}
		tokens, known := p.caps.tokens(s.Slot)
		total += tokens
		p.fitWorker(s.Slot)
		if !known && s.MetricsAge >= 0 && !p.warned[s.Slot] {
			p.warned[s.Slot] = true
			unknown, guess = append(unknown, s.ID), tokens
		}
	}
	if total > 0 {
		p.reuse.SetCapacity(int(2 * float64(total) / p.scale.textBlock()))
	}
	return unknown, guess
}

// SharedTokens returns how many tokens of KV the tier that all workers share is taken to hold; 0 = there is none.
func (p *Pool) SharedTokens() int { return p.lower.sharedTokens() }

// TokensPerByte returns the estimate of tokens in a byte of prompt text.
func (p *Pool) TokensPerByte() float64 { return p.scale.tokensPerByte() }

// TransferRate returns how many tokens of KV a second come from a prefiller, as learnt, 0 if that is not known.
func (p *Pool) TransferRate(at time.Time) float64 { return p.transfer.rate(at) }

// spaceName returns the name under which a model's prompts are known. A salt keeps tenants apart.
func spaceName(model, salt string) string {
	if salt == "" {
		return model
	}
	return model + "#" + salt
}

// Listed returns models that the pool's workers list, at most so many and none that is hidden, for an error about a
// misspelt name.
func (p *Pool) Listed(at time.Time, most int, hidden func(model string) bool) (models []string) {
	for _, s := range p.Workers.Stats(at) {
		for _, m := range s.Models {
			if s.Up && !s.Prefills && len(models) < most && !slices.Contains(models, m) && !hidden(m) {
				models = append(models, m)
			}
		}
	}
	return models
}
