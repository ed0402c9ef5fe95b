package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/adapt"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/fleet/adapters"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
	"github.com/warmpath/warmpath/daemon/fleet/probe"
	"github.com/warmpath/warmpath/daemon/fleet/subset"
	"github.com/warmpath/warmpath/daemon/fleet/wake"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
	"github.com/warmpath/warmpath/plugins"
)

// nameServers are those of the system. Tests have their own.
var nameServers = &net.Resolver{StrictErrors: true}

// pool runs what stands behind one [[pools]] table: the route decides, the prober asks the workers, discovery finds
// them. It lives as long as a pool of its name is configured.
type pool struct {
	name    string
	log     *slog.Logger
	route   *route.Pool
	prober  *probe.Prober
	found   *discover.Discovery[conf.Worker]
	clients epoch.Clients
	vigil   *operator.Vigil
	looked  atomic.Int64    // when it looked after a change, in ns of Unix time
	roster  *lmcache.Roster // whose LMCache is whose
	asking  *epoch.Asking
	loader  *adapters.Loader
	feed    *feed.Feed
	ends    []func() // of what shares the history, and has it written
	staff   *strategies.Serving
	queue   *waiting.Queue // of its requests
	waker   *wake.Waker
	daemon  *Daemon
	leaving leaving // workers whose conversations are being moved
	subset  subset.Subset
	unfit   seldom.Line // for refit

	set      atomic.Pointer[setup]
	changing sync.Mutex // one change of workers at a time

	life    context.Context // of what tends the pool
	stop    context.CancelFunc
	running sync.WaitGroup
}

// setup is a pool's configuration in force with what was made of it. It is never changed, only replaced.
type setup struct {
	conf    conf.Pool // Workers are those found, not those of the file alone, and of these those that this router uses
	all     []conf.Worker
	known   []worker.Spec            // of all, if the pool has a subset
	members map[string]subset.Member // the workers that it uses; nil = all
	key     string                   // the workers' API key
	tls     *tls.Config
	clients map[string]*upstream.Client // by worker URL
}

// newPool starts a pool; its strategy is put in by the caller.
func newPool(c conf.Pool, s conf.Sessions, d *Daemon) (*pool, error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pool{name: c.Name, log: d.log.With("pool", c.Name), life: ctx, stop: cancel, daemon: d}
	p.leaving.moves = map[string]moves{}
	p.vigil, p.staff, p.queue = operator.NewVigil(p.log), strategies.NewServing(), waiting.New(adapt.Queue(&c))
	p.waker, p.loader = wake.New(c.Name, c.Queue.WakeURL, p.log), adapters.New(c.Name, p.log, d.metrics)
	p.found = discover.New(adapt.Discovery(p.log, discover.System(nameServers), watchPoll,
		func() []conf.Worker { return d.register.Workers(c.Name) }))
	p.subset.Due, p.subset.Linger = make(chan struct{}, 1), subsetLinger
	c.Workers = p.found.Take(ctx, adapt.Sources(&c))
	members := p.subset.Choose(p.choosing(&c, adapt.Specs(&c)), time.Now())
	first, err := newSetup(c, members, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	p.set.Store(first)
	p.clients.Set(first.clients)
	p.prober = probe.New(adapt.Questions(&first.conf, first.key, first.tls))
	p.roster = d.lmcache.NewRoster()
	p.route = route.New(route.Config{Name: c.Name, Reason: plugins.ReasonText, Began: time.Now(), Offload: p.roster,
		Workers: p.watch(first), Tiers: adapt.Tiers(&first.conf, d.storeTokens), Clients: &p.clients,
		Sessions: session.On(d.tier, session.Config{Pool: c.Name, Life: s.Life, TTL: s.TTL})})
	p.route.Book.Token = d.tokenBytes
	p.route.Book.Configure(first.conf.HandOverBytes)
	p.route.KeepWeights(first.conf.Weights == "one")
	p.route.Lend(adapt.Lends(&first.conf))
	p.ends = append(p.ends, d.peers.Join(c.Name, p.route),
		d.memory.Join(c.Name, func() []string { return p.set.Load().conf.Models }, p.route))
	p.asking = epoch.NewAsking(epoch.Asked{Pool: p.route, Clients: &p.clients, Log: p.log, Meter: d.metrics})
	p.loader.Serve(p.route.Workers, p.asking)
	p.asking.Configure(first.key, epoch.AskConfig(c.Tokens))
	p.feed = feed.New(feed.Config{Index: p.route.Held, Workers: p.route.Workers.Stats, Listener: d.kvEvents, Log: p.log,
		Hear: p.route.KVEvents, Hears: p.route.WantsKVEvents})
	p.feed.Configure(adapt.Origins(&first.conf), first.tls)
	p.running.Go(func() { p.prober.Run(ctx, p.route.Workers) })
	go p.route.Sessions.Run(ctx)
	go p.found.Run(ctx, func([]conf.Worker) { p.refound() })
	p.running.Go(func() { p.staff.Shadows.Run(ctx) })
	go p.tend(ctx)
	go p.keepSubset(ctx)
	return p, nil
}

// tend corrects once a second what the route knows of its workers, and logs what has changed of whether they can serve.
func (p *pool) tend(ctx context.Context) {
	everySecond(ctx, func(now time.Time) {
		p.look()
		p.feed.Tick(now)
		p.rebalance(now)
		if p.set.Load().members != nil {
			p.subset.Look()
		}
		unknown, guess := p.route.Tick(now)
		for _, id := range unknown {
			p.log.Warn("KV cache size unknown: routing on a guess; set kv_tokens of the worker",
				"worker", id, "guess_tokens", guess)
		}
	})
}

// lookAtChange has the vigil look after a change of a worker. It looks at all of them: in a large fleet whose workers
// come up or go down together, each of their changes would take a millisecond, so most of them wait for tend. Of 100
// workers or fewer none waits.
func (p *pool) lookAtChange() {
	rest := time.Duration(len(p.set.Load().conf.Workers)-100) * 10 * time.Microsecond
	if now := time.Now().UnixNano(); now-p.looked.Load() >= int64(rest) {
		p.looked.Store(now)
		p.look()
	}
}

// look has the vigil look. The first changes of workers come while the route is still being made.
func (p *pool) look() {
	if p.route != nil {
		p.vigil.Look(p.shown())
	}
}

// shown is the pool as an operator sees it.
func (p *pool) shown() *readiness.Pool {
	set := p.set.Load()
	c := &set.conf
	var leads []readiness.Alias
	fences := map[string]worker.Fence{}
	if s := p.daemon.state.Load(); s != nil { // else the daemon starts
		for _, a := range s.conf.Leads(c) {
			leads = append(leads, readiness.Alias(a))
		}
		for i := range s.conf.Keys {
			if k := &s.conf.Keys[i]; k.Fence() != nil {
				fences[k.Name] = k.Fence()
			}
		}
	}
	var refuses func(url, adapter string) bool
	if c.Adapters.Source != "" {
		refuses = p.loader.Refused
	}
	return &readiness.Pool{Aliases: leads, Refuses: refuses, Pool: p.route, Models: c.Models, Patterns: c,
		Subset: p.subset.State, Outside: len(set.all) - len(c.Workers), Leaving: p, Panic: c.Panic, Events: p.feed,
		Shadows: p.staff.Shadows, Asking: p.asking, Queue: p.queue,
		Pairing: adapt.Pairing(&c.Disaggregation), Holds: c.Holds(), Header: c.HeaderTimeout, Fences: fences,
		Failing: p.found.Failing(), Unloaded: p.loader.Refusals(), Unwoken: p.waker.Failed(),
		Origin: func(url string) string { return string(p.found.Origin(url)) }}
}

// served is the pool as a request of this epoch sees it.
func (p *pool) served() *epoch.Pool {
	s := p.set.Load()
	served := adapt.Served(&s.conf, p.queue, p.loader)
	served.Pool, served.Clients, served.Key = p.route, &p.clients, s.key
	served.Asking, served.Shadows, served.Waker = p.asking, p.staff.Shadows, p.waker
	return served
}

// newSetup reads the secrets and makes a client for each worker that has none of the same settings. Authorities that
// are as before stay the same value: another would make new connections.
func newSetup(c conf.Pool, members map[string]subset.Member, before *setup) (*setup, error) {
	s := &setup{conf: c, all: c.Workers, members: members}
	if members != nil {
		s.known = adapt.Specs(&c)
		s.conf.Workers = slices.DeleteFunc(slices.Clone(c.Workers), func(w conf.Worker) bool {
			_, used := members[w.ID]
			return !used
		})
	}
	var err error
	s.key, err = c.WorkerKey()
	if err != nil {
		return nil, fmt.Errorf("daemon: pool %q: %w", c.Name, err)
	}
	s.tls, err = upstream.Authorities(c.TLSCAFile)
	if err != nil {
		return nil, fmt.Errorf("daemon: pool %q: %w", c.Name, err)
	}
	if before == nil {
		before = new(setup)
	}
	if s.tls != nil && before.tls != nil && s.tls.RootCAs.Equal(before.tls.RootCAs) {
		s.tls = before.tls
	}
	s.clients, err = adapt.Clients(&s.conf, s.tls, before.clients)
	return s, err
}

// specs returns the workers that the router uses.
func (s *setup) specs() []worker.Spec {
	all := adapt.Specs(&s.conf)
	for i := range all {
		all[i].Guest = s.members[all[i].ID].Guest
	}
	return all
}

// watch is what the pool of workers needs of the settings.
func (p *pool) watch(s *setup) worker.Config {
	w := adapt.Workers(&s.conf, p.queue, p.loader)
	w.Log, w.Watcher, w.OnChange = p.log, p.prober, p.lookAtChange
	if s.members != nil {
		w.Outside = p.subset.Want
	}
	return w
}

// takeOver bounds how long the workers of the old configuration serve on while one of the new ones has had no health
// check.
const takeOver = 5 * time.Second

// refound makes the workers that the sources give now those of the pool.
func (p *pool) refound() {
	p.changing.Lock()
	defer p.changing.Unlock()
	c := p.set.Load().conf
	c.Workers = p.found.Workers()
	if err := p.change(c); err != nil {
		p.log.Error("the workers found are refused: those before stay", "error", err)
	}
}

// update makes c the pool's configuration.
func (p *pool) update(c conf.Pool) error {
	p.found.Take(context.Background(), adapt.Sources(&c))
	p.changing.Lock()
	defer p.changing.Unlock()
	c.Workers = p.found.Workers()
	return p.change(c)
}

// change makes c, with the workers in it, the pool's configuration. Workers that stay keep all that is known of them.
// Those that leave serve until the new ones have had their first health check, so that a change of all workers at
// once loses no request. The caller holds p.changing. A change may wait seconds for the one before it, so each reads
// what is newest under the lock: settings and workers from before the wait would undo the other change.
func (p *pool) change(c conf.Pool) error {
	members := p.subset.Choose(p.choosing(&c, adapt.Specs(&c)), time.Now())
	return p.use(c, members)
}

// use is change for members of the pool's workers.
func (p *pool) use(c conf.Pool, members map[string]subset.Member) error {
	before := p.set.Load()
	next, err := newSetup(c, members, before)
	if err != nil {
		return err
	}
	c = next.conf
	both := maps.Clone(before.clients)
	maps.Copy(both, next.clients)
	p.clients.Set(both)
	p.set.Store(next)
	p.asking.Configure(next.key, epoch.AskConfig(c.Tokens))
	p.queue.Configure(adapt.Queue(&c))
	p.waker.Configure(c.Queue.WakeURL)
	p.route.Configure(p.watch(next), adapt.Tiers(&next.conf, p.daemon.storeTokens))
	p.route.Book.Configure(next.conf.HandOverBytes)
	p.route.KeepWeights(next.conf.Weights == "one")
	p.route.Lend(adapt.Lends(&next.conf))
	p.prober.Configure(adapt.Questions(&next.conf, next.key, next.tls))
	p.feed.Configure(adapt.Origins(&next.conf), next.tls)
	if all := worker.Union(next.specs(), before.specs()); len(all) > len(c.Workers) {
		p.route.Workers.Update(all, time.Now())
		p.awaitHeard()
	}
	p.route.Workers.Update(next.specs(), time.Now())
	p.clients.Set(next.clients)
	for url, u := range before.clients { // requests under way keep their connections; only idle ones go
		if u != next.clients[url] {
			u.Close()
		}
	}
	return nil
}

// awaitHeard waits until every worker has been found up or down.
func (p *pool) awaitHeard() { p.await(readiness.Heard) }

// awaitUp waits until every worker has been found up or down, and one is up.
func (p *pool) awaitUp() {
	p.await(func(s []worker.Stats) bool {
		return readiness.Heard(s) && slices.ContainsFunc(s, func(s worker.Stats) bool { return s.Up })
	})
}

func (p *pool) await(ok func([]worker.Stats) bool) {
	for end := time.Now().Add(takeOver); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok(p.route.Workers.Stats(time.Now())) {
			return
		}
	}
}

// close stops watching the workers and frees the strategy once its running picks are over.
func (p *pool) close() {
	p.stop()
	for _, end := range p.ends {
		end()
	}
	p.feed.Close()
	p.running.Wait()
	p.staff.Close()
	// The pointer stays: a request that found this pool before it was removed gets the fallback's choice.
	if s := p.route.Strategy.Strategy(); s != nil {
		s.Close(context.Background())
	}
	for _, u := range p.set.Load().clients {
		u.Close()
	}
}

// retire closes a pool that the configuration no longer has. Requests that chose it before the change still end: their
// workers and connections outlive the watch.
func (p *pool) retire() {
	p.close()
	p.log.Info("pool removed")
}
