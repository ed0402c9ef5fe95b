package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/adapt"
	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/admin/register"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/admin/tracing"
	"github.com/warmpath/warmpath/daemon/admin/unit"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/front"
	"github.com/warmpath/warmpath/daemon/request/ledger"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/sessionapi"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
	"github.com/warmpath/warmpath/daemon/transport/listen"
	"github.com/warmpath/warmpath/host"
)

// Daemon is the whole process, as main runs it and tests start it on port 0.
type Daemon struct {
	log   *slog.Logger
	level *slog.LevelVar // of log

	host     *host.Host
	lmcache  *lmcache.Controller
	tier     *tier.Store // what outlives a request, and with Redis the process: sessions, and what strategies remember
	kvCache  *kvcache.Cache
	peers    *peers.Peers     // nil = the history is not shared
	memory   *peers.StateFile // nil = a restart is a cold start
	register *register.Register
	kvEvents *feed.Listener // for workers that dial us; nil = there is none
	certs    certificate.All
	metrics  *metrics.Metrics
	departed *metrics.Departed
	server   *exchange.Server
	api      *sessionapi.API
	front    *front.Server
	operator *operator.Server
	tracer   tracing.Tracer
	manager  *unit.Manager // nil = the process has no service manager, and cannot be upgraded

	state   atomic.Pointer[state]
	reload  sync.Mutex // one change of state at a time
	loaded  conf.Loaded
	atStart *conf.Config // whose listeners and limits are in force
	room    descriptorLimit
	limits  *ledger.Ledger // of the clients' keys
	ring    decisions.Ring // of the last requests

	collecting *time.Timer // see collectSoon; guarded by reload

	life    context.Context    // of what tends the process
	end     context.CancelFunc // of life
	tending sync.WaitGroup     // of what runs as long as life
}

// seriesStay is how long the series of a worker or pool outlive it: a scrape or two at the usual 15 to 30 s, so that
// the counts of its last requests reach Prometheus. With no end, pods that roll under workers_dns would make /metrics
// grow for the life of the process.
var seriesStay = time.Minute // tests set another

// Version is what this binary calls itself; see Makefile.
var Version = "dev"

// New is NewUnder without a service manager.
func New(c *conf.Config, log *slog.Logger) (*Daemon, error) { return NewUnder(nil, c, log) }

// NewUnder loads the modules, watches the workers, and binds the listeners that m, or nil, has not bound. Nothing is
// served before Run. log's handler should let all levels through: server.log_level, which a reload may change, decides.
func NewUnder(m *unit.Manager, c *conf.Config, log *slog.Logger) (*Daemon, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	level := new(slog.LevelVar)
	operator.SetLevel(level, c.Server.LogLevel)
	log = slog.New(operator.NewLeveled(log.Handler(), level))
	controller, err := adapt.LMCache(&c.LMCache, m, log) // first: unanswered workers report nothing
	if err != nil {
		return nil, err
	}
	store, err := adapt.OpenStore(&c.Cache, session.Shares{}, log)
	if err != nil {
		controller.Close()
		return nil, err
	}
	kv := store.Local(strategies.StoreKeys, strategies.StoreBytes)
	h, err := host.New(context.Background(), host.Config{CacheDir: c.Server.CacheDir(), Log: log, KV: kv})
	if err != nil {
		controller.Close()
		store.Close()
		return nil, err
	}
	d := &Daemon{log: log, room: descriptorLimit{log: log}, level: level, host: h, lmcache: controller, tier: store,
		atStart: c, manager: m, metrics: metrics.NewMetrics(Version)}
	d.departed = metrics.NewDeparted(d.metrics, seriesStay)
	d.server = exchange.New(exchange.Config{Log: log, Meter: d.metrics, Keeper: &d.ring})
	d.api = sessionapi.New(d.server, log)
	d.life, d.end = context.WithCancel(context.Background())
	d.tending.Go(func() { store.Run(d.life) })
	d.tending.Go(func() { kv.Run(d.life) })
	d.state.Store(&state{conf: c, inForce: c, epoch: &front.Epoch{}})
	if err := d.start(c); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Daemon) start(c *conf.Config) error {
	s := &c.Server
	d.manager.Given().LogUnused(d.log, s.Listen, s.Admin)
	var err error
	d.certs, err = adapt.Certificates(c, d.log)
	if err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	d.front, err = front.New(front.Config{Log: d.log, Meter: d.metrics, Backend: process{d},
		Listener: d.manager.Given().Client, Listen: s.Listen, Bind: d.manager,
		Certificate: d.certs.Server, MaxConns: s.MaxConnections, Connections: s.MaxConnections, ReadTimeout: s.ReadTimeout,
		MaxHeaderBytes: s.MaxHeaderBytes, IdleTimeout: s.IdleTimeout, WriteTimeout: s.WriteTimeout})
	if err != nil {
		return err
	}
	kv := adapt.KVCache(c, Version, discover.System(nameServers), d.manager, d.log)
	kv.Certificate = d.certs.KVCache
	kv.Succeeds = d.manager.Succeeds()
	if d.lmcache != nil {
		kv.Beliefs = d.lmcache
	}
	d.kvCache, err = kvcache.Open(kv)
	if err != nil {
		return err
	}
	d.kvEvents, err = feed.Open(d.life, s.KVEventsListen, d.manager, d.log)
	if err != nil {
		return err
	}
	d.peers, d.limits, err = adapt.Shared(c, d.log)
	if err != nil {
		return err
	}
	d.tending.Go(func() { d.peers.Run(d.life) })
	d.tending.Go(func() { d.limits.Run(d.life) })
	d.memory, d.register = peers.OpenState(s.StateFile, d.log), register.Open(c, d.log)
	d.manager.HandOver(process{d})
	d.reload.Lock()
	err = d.loaded.Apply(c, d.apply)
	d.reload.Unlock()
	if err != nil {
		return err
	}
	most, forAdmin := d.room.fit(c, d.state.Load().pools) // the workers are known now
	d.front.SetMaxConns(most)
	store := strategies.NewStore(d.host, process{d})
	d.tending.Go(func() { d.peers.RunModules(d.life, d.receives(store)) })
	d.operator, err = operator.New(operator.Config{Metrics: d.metrics, Process: process{d}, Store: d.tier,
		KVCache: d.kvCache, Certificates: &d.certs, LMCache: d.lmcache, Peers: d.peers, Memory: d.memory, Spans: &d.tracer,
		Ring: &d.ring, Register: d.register, Registrar: process{d},
		WhatIf: strategies.NewLab(d.host, process{d}), Strategies: store,
		Limits: d.limits, Succeeds: d.manager.Succeeds(), Listener: d.manager.Given().Admin, Admin: s.Admin, Bind: d.manager,
		AdminTokenFile: s.AdminTokenFile, Connections: forAdmin, ReadTimeout: s.ReadTimeout, IdleTimeout: s.IdleTimeout,
		Binary: unit.Command(), Log: d.log,
		Wrap: func(l net.Listener) net.Listener { return listen.NewPatient(l, d.log) }})
	if err != nil {
		return err
	}
	d.metrics.Reloaded(metrics.Reload{At: time.Now(), OK: true, File: c.Path})
	d.note(c)
	d.tending.Go(func() { d.tend(d.life) })
	d.tending.Go(func() { d.memory.Run(d.life) })
	return nil
}

// Addr is where clients are served, host:port.
func (d *Daemon) Addr() string { return d.front.Addr() }

// AdminAddr is where the operator is served.
func (d *Daemon) AdminAddr() string { return d.operator.Addr() }

// epoch is what is in force for a request that comes in now.
func (d *Daemon) epoch() *front.Epoch { return d.state.Load().epoch }

// shown are the pools as an operator sees them.
func (d *Daemon) shown() []*readiness.Pool { return d.state.Load().shown() }

// Run serves until ctx ends, then drains: /ready answers 503, after server.drain_delay no connection is accepted, open
// answers run to their end within server.drain_timeout; then streams are ended with an error event. Its error is nil
// after a clean drain.
func (d *Daemon) Run(ctx context.Context) error {
	failed := make(chan error, 3)
	for _, run := range []func() error{d.operator.Run, d.kvCache.Run, d.serveClients} {
		go func() { failed <- run() }()
	}
	d.log.Info("serving", "version", Version, "pid", os.Getpid(), "listen", d.Addr(), "admin", d.AdminAddr(),
		"tls", d.state.Load().conf.Server.TLSCertFile != "", "strategies", modules(d.state.Load().pools))
	select {
	case err := <-failed:
		return fmt.Errorf("daemon: a listener ended: %w", err)
	case <-ctx.Done():
	}
	d.tending.Go(d.memory.Save) // who stops us may not wait until the answers have ended
	d.manager.Stopping("draining")
	if d.manager.IsReplaced() { // workers and their caches are to go to the new process at once
		d.kvCache.Close()
		d.lmcache.Close()
		d.kvEvents.Close()
	}
	d.front.Leave(d.state.Load().conf.Server.DrainDelay, d.manager.IsReplaced())
	return d.front.Drain(d.state.Load().conf.Server.DrainTimeout)
}

// serveClients serves until the drain. On a kept socket it begins once every pool has a worker that is up. After an
// upgrade it begins once all workers have been heard as well: the first that is up would get all requests, although
// others hold their prompts.
func (d *Daemon) serveClients() error {
	d.manager.Await(func(whole bool) bool {
		return !slices.ContainsFunc(d.shown(), func(p *readiness.Pool) bool {
			return p.Empty(time.Now()) || whole && !readiness.Heard(p.Workers.Stats(time.Now()))
		})
	})
	d.manager.Ready("serving clients at " + d.Addr() + ", the operator at " + d.AdminAddr())
	return d.front.Run()
}

// Close frees everything. Run must have returned.
func (d *Daemon) Close() {
	d.front.Close()
	d.operator.Close()
	d.kvCache.Close()
	d.lmcache.Close()
	d.end()
	d.reload.Lock()
	defer d.reload.Unlock()
	d.tending.Wait()
	d.front.CloseLog()
	d.tracer.Close()
	for _, p := range d.state.Load().pools {
		p.close()
	}
	if err := d.host.Close(context.Background()); err != nil {
		d.log.Warn("the sandbox did not close cleanly", "error", err)
	}
	if err := d.tier.Close(); err != nil {
		d.log.Warn("the connections to Redis did not close cleanly", "error", err)
	}
}

// tend sweeps the series of those who left, and fits the number of clients to the number of workers, once a second
// until ctx ends.
func (d *Daemon) tend(ctx context.Context) {
	everySecond(ctx, func(now time.Time) {
		d.certs.Look(now)
		// Expire waits until the workers that stay have been heard.
		d.tending.Go(func() { d.register.Expire(process{d}, now) })
		d.operator.Tick(now, d.log)
		d.departed.Sweep(d.shown(), now)
		d.metrics.Look(d.shown(), now)
		for _, p := range d.state.Load().pools {
			p.enroll(now)
		}
		most, _ := d.room.fit(d.atStart, d.state.Load().pools)
		d.front.SetMaxConns(most)
		d.manager.Alive(now)
	})
}

// everySecond calls f once a second until ctx ends.
func everySecond(ctx context.Context, f func(now time.Time)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			f(now)
		}
	}
}

// storeTokens returns how many tokens of KV a pool finds in this process's own KV cache; 0 = none, or not known.
func (d *Daemon) storeTokens() int {
	e, _ := d.kvCache.Holds()
	return adapt.StorePart(d.state.Load().conf, e.Tokens)
}

// tokenBytes returns how many bytes of KV a token of a model has, by what LMCache puts under the model's name into this
// process's own KV cache; 0 = no value has shown it.
func (d *Daemon) tokenBytes(model string) float64 {
	e, _ := d.kvCache.Holds()
	for _, m := range e.Models {
		if m.Name == model && !(m.Guessed && e.ChunkGuessed) {
			return m.BytesPerToken
		}
	}
	return 0
}

// process is the daemon as its rooms see it. It implements front.Backend, operator.Process, register.Process,
// strategies.Process and unit.Handover.
type process struct{ *Daemon }

func (p process) Configuration() *conf.Config { return p.state.Load().conf }
func (p process) Settings() map[string]any    { return conf.Shown(p.state.Load().inForce) }
func (p process) Epoch() *front.Epoch         { return p.epoch() }
func (p process) Served() *epoch.Epoch        { return &p.epoch().Epoch }
func (p process) Pools() []*readiness.Pool    { return p.shown() }
func (p process) Draining() bool              { return p.front.Draining() }
func (p process) Pprof() bool                 { return p.Configuration().Server.Pprof }

func (p process) Share(name string, wasm []byte) (note string) {
	switch {
	case p.peers == nil:
		return ""
	case !p.peers.SharesModules():
		return "other routers of the history do not get it: for that set history.secret_file"
	}
	if err := p.peers.PushModule(name, wasm); err != nil {
		return fmt.Sprintf("other routers of the history do not get it; push again: %v", err)
	}
	return "other routers of the history have it within seconds, if they have server.strategies_dir"
}

// receives returns what takes the modules that other routers were given.
func (d *Daemon) receives(store *strategies.Store) func(m *peers.Module) bool {
	var refused seldom.Once
	return func(m *peers.Module) bool {
		done, err := store.Receive(m.Name, m.At, m.SHA256, m.Fetch)
		if err != nil {
			refused.Warn(d.log, m.Name+m.SHA256, "a module that another router was given is not taken here, and the one before "+
				"stays; push it here to see all of why", "strategy", m.Name, "sha256", m.SHA256, "err", err)
		}
		return done
	}
}

func (p process) Found() map[string][]conf.Worker {
	all := map[string][]conf.Worker{}
	for _, one := range p.state.Load().pools {
		all[one.name] = one.set.Load().all
	}
	return all
}

func (p process) Refind(pool string) {
	for _, one := range p.state.Load().pools {
		if one.name == pool {
			one.refound()
		}
	}
}

func (p process) Upgrade(wait time.Duration) (pid int, err error) { return p.manager.Upgrade(wait) }

func (p process) Ready(draining bool) (bool, any) { return operator.Readiness(p.shown(), draining) }

func (p process) Serve(ctx context.Context, in *message.Inbound) *message.Outbound {
	switch in.Endpoint.Role {
	case message.Sessions, message.Invocations, message.SageMaker:
		return p.api.Serve(ctx, in)
	}
	return p.server.Serve(ctx, in)
}

func (p process) Ended(in *message.Inbound, took time.Duration, sent int64) {
	p.ring.Ended(in, took, sent)
}
func (p process) Trace(in *message.Inbound, at time.Time) { p.tracer.Begin(in, at) }
func (p process) Hold() (release func()) {
	registered, state := p.register.Hold(), p.memory.Hold()
	return func() { registered(); state() }
}
func (p process) Give() []byte      { return operator.Drains(p.shown()) }
func (p process) Take(given []byte) { operator.DrainAgain(p.shown(), given, p.log) }

func (p process) Clients() front.Stats { return p.front.Stats() }
