package epoch

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/adapters"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/limit"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/overflow"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Epoch is what is in force when a request comes in: configuration, pools, settings. A reload makes another, and a
// request reads one alone. It is never changed.
type Epoch struct {
	Pools    []*Pool     // in the order of the file
	Keys     *gate.Keys  // nil = everybody may send requests
	Names    *names.List // nil = every name is a model's own
	Sessions Naming
	Explain  bool            // server.explain: headers may ask for the decision
	Log      ExplainLog      // server.explain_log
	Access   bool            // there is an access log
	Overflow overflow.Limits // of bodies that are kept until they can be routed
	Deadline []string        // server.deadline_header

	Limits map[string]*limit.Key // of the keys that have limits, by their names; nil = none has
}

// Naming is how clients name their sessions.
type Naming struct {
	Identity      *identity.List // nil = by none
	Cookie        string         // of the router's own; "" = by none
	Always        bool           // a session stays at its worker whatever the strategy asks for
	EndWithWorker bool           // a session ends with its worker and does not move
}

// ExplainLog selects the requests whose candidates the access log has.
type ExplainLog struct {
	Share  float64       // of all requests, 0 to 1
	Slower time.Duration // and those that take longer; 0 = no others
}

// Wanted draws whether a request's candidates are logged however long it takes. kept: they must be kept to its end.
func (l *ExplainLog) Wanted() (logged, kept bool) {
	logged = l.Share > 0 && rand.Float64() < l.Share
	return logged, logged || l.Slower > 0
}

// Patterns are those of the models that a pool serves.
type Patterns interface {
	// Serves reports whether one of the patterns fits the model.
	Serves(model string) bool
	// Names reports whether one of the patterns is just that model.
	Names(model string) bool
}

// Pool is a pool with the settings of an epoch.
type Pool struct {
	*route.Pool
	Clients        *Clients
	Patterns       Patterns      // of the models that it serves
	Key            string        // the workers' API key, "" if they ask for none
	InvocationPath string        // where SageMaker's calls go
	WorkerSessions string        // "auto", "on", "off": workers keep sessions of their own
	ClientRank     bool          // a client's X-data-parallel-rank chooses the engine of a worker
	Hints          string        // "fetch": workers are told of each other's KV; "pass": a client may tell them; "": none
	Continue       int           // how often another worker goes on with a stream that breaks off; 0 = none does
	FirstByteRetry time.Duration // after how long without a first byte another worker is tried; 0 = never
	HeaderTimeout  time.Duration
	OverflowStatus int  // of what no worker has room for: 429 or 503; 0 = 429
	Limited        bool // something bounds what a worker has at a time

	Queue     *waiting.Queue // where requests wait; nil = they do not
	WaitEmpty bool           // also while no worker is up
	Waker     Waker          // is called when no worker is up for a request; nil = nothing is called

	Pairing *Pairing // prompts are computed by workers of their own; nil = each worker does both

	Loader  Loader  // loads adapters; nil = adapters are not loaded
	Shadows Shadows // nil = none
	Asking  *Asking // asks the workers beside requests; nil = nothing is asked
}

// Guards reports whether the router takes out of bodies what names one worker to another.
func (p *Pool) Guards() bool { return p.Pairing != nil || p.Hints == "fetch" }

// Pairing has the prompts of a pool computed by workers of their own.
type Pairing struct {
	Connector pair.Connector
	Rate      float64 // route.SplitRule has it and the next two
	Always    bool
	Threshold int
	Bootstrap int // the port of a prefiller's bootstrap server

	Same []string // names of labels that the two workers have alike
	Near string   // of one that they had better have alike; "" = none
	Far  float64  // seconds by which another value there is worse

	Prefillers worker.Fence // who computes prompts
	Decoders   worker.Fence // who answers clients
	Shared     bool         // prefillers do too
}

// Answering returns the labels of the workers inside of a fence that answer clients.
func (p *Pairing) Answering(fence worker.Fence) worker.Fence {
	if p == nil {
		return fence
	}
	return slices.Concat(fence, p.Decoders)
}

// Loader loads LoRA adapters at workers.
type Loader interface {
	// Load has the worker load the adapter that is wanted, if it lacks it and the name may be one, and waits for that. The
	// adapter stays there until release is called.
	Load(ctx context.Context, w *worker.Worker, x adapters.Want) (release func(), err error)
}

// Waker asks for workers.
type Waker interface{ Wake() }

// Shadows are strategies that decide beside the pool's own, without effect.
type Shadows interface {
	// Watch starts their decisions. It returns nil if they do not decide. See Seen.Others.
	Watch(c *route.Choice) fmt.Stringer
}

// Clients are the connections to a pool's workers, by their URL. They outlive epochs.
type Clients struct {
	mu     sync.RWMutex // guards all below
	of     map[string]*upstream.Client
	habits map[string]*habits // of these workers' ids

	engines map[string]string // URLs of prefillers, by the engines that their answers name; "" = of several

	mute sync.Map // URLs of workers that refuse to be asked for the usage of a stream
}

// Mute records that a worker refuses to be asked for the usage of a stream.
func (c *Clients) Mute(url string) { c.mute.Store(url, true) }

// Mutes reports whether a worker refuses that.
func (c *Clients) Mutes(url string) bool {
	_, mutes := c.mute.Load(url)
	return mutes
}

// Get returns the client of a worker, nil if it has been removed.
func (c *Clients) Get(url string) *upstream.Client {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.of[url]
}

// OwnEngine records that a prefiller's answer names an engine, and reports whether no other prefiller's answer has
// named it. Decoders confuse the KV of two engines of one name, so neither prefiller may hand over until one restarts.
func (c *Clients) OwnEngine(url, engine string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	by, known := c.engines[engine]
	switch {
	case engine == "" || known && by == url:
		return true
	case known:
		c.engines[engine] = ""
		return false
	case c.engines == nil || len(c.engines) > maxEngines:
		c.engines = map[string]string{}
	}
	c.engines[engine] = url
	return true
}

// maxEngines bounds the engines that are known by name: more than there are prefillers with their ranks.
const maxEngines = 4096

// Habit returns what is known of a worker's ids, nil if it has been removed.
func (c *Clients) Habit(url string, k prompt.Kind, stream bool) *Habit {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.habits[url].of(k, stream)
}

// Restarted drops what is known of a worker whose process has ended.
func (c *Clients) Restarted(url string) {
	c.mute.Delete(url)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.engines, func(_, by string) bool { return by == url || by == "" })
	if h := c.habits[url]; h != nil {
		h.forget()
	}
}

// Set replaces the clients. Requests under way keep theirs.
func (c *Clients) Set(of map[string]*upstream.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of, c.engines = of, nil
	c.mute.Clear() // the next request asks again
	kept := make(map[string]*habits, len(of))
	for url := range of {
		kept[url] = c.habits[url]
		if kept[url] == nil {
			kept[url] = new(habits)
		}
	}
	c.habits = kept
}

// CloseIdle closes the connections that wait for a request.
func (c *Clients) CloseIdle() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, u := range c.of {
		u.CloseIdle()
	}
}

// For returns the first pool that serves the model. A request that names none goes to the first pool. nil: no pool
// serves it.
func (e *Epoch) For(model string) *Pool {
	for _, p := range e.Pools {
		if model == "" || p.Patterns.Serves(model) {
			return p
		}
	}
	return nil
}

// HasRoom reports whether a request for the model need not wait, with a key for those workers.
func (e *Epoch) HasRoom(model string, fence worker.Fence) bool {
	p := e.For(model)
	if p == nil || p.Queue != nil && p.Queue.ForRoom() > 0 {
		return false
	}
	_, _, s := p.Workers.Snapshot(worker.Query{Model: model, Fence: p.Pairing.Answering(fence), At: time.Now()}, nil, nil)
	return s == worker.Ready
}

// ShareModel reports whether all workers of all pools list some model, or none does. Else a request that names no model
// may go to a worker which does not serve the one that it means.
func (e *Epoch) ShareModel(at time.Time) bool {
	var shared []string
	some := false
	for _, p := range e.Pools {
		for _, s := range p.Workers.Stats(at) {
			if len(s.Models) == 0 {
				continue
			}
			if !some {
				shared = s.Models
			}
			some = true
			shared = slices.DeleteFunc(slices.Clone(shared), func(m string) bool { return !slices.Contains(s.Models, m) })
		}
	}
	return !some || len(shared) > 0
}

// Named returns the pool of that name, or nil.
func (e *Epoch) Named(name string) *Pool {
	for _, p := range e.Pools {
		if name == p.Name {
			return p
		}
	}
	return nil
}

// Holding returns the pool whose store has a session, even one that has ended. nil: no pool has it (Unknown), or some
// store does not answer (Silent).
func (e *Epoch) Holding(n session.Name, at time.Time) (*Pool, session.Status) {
	nobody := session.Unknown
	for _, p := range e.Pools {
		switch _, s := p.Sessions.Peek(n, at); s {
		case session.Unknown:
		case session.Silent: // another pool may hold it here
			nobody = s
		default:
			return p, session.Found
		}
	}
	return nil, nobody
}

// Living does as Holding for a session that lives.
func (e *Epoch) Living(n session.Name, at time.Time) (*Pool, session.Status) {
	nobody := session.Unknown
	for _, p := range e.Pools {
		switch _, s := p.Sessions.Peek(n, at); s {
		case session.Found:
			return p, s
		case session.Silent:
			nobody = s
		}
	}
	return nil, nobody
}

// Saturated reports whether no pool could take one more request, at a worker or in its queue.
func (e *Epoch) Saturated(now time.Time) bool {
	for _, p := range e.Pools {
		if p.Queue != nil || !p.Workers.Saturated(now) {
			return false
		}
	}
	return true
}

// RetryAfter returns in how many seconds a client is to come back that was refused before its pool was known: when the
// first pool has a place. 0 = there is no pool.
func (e *Epoch) RetryAfter(now time.Time) (soonest int) {
	for _, p := range e.Pools {
		if s := p.Workers.RetryAfter(now); soonest == 0 || s < soonest {
			soonest = s
		}
	}
	return soonest
}
