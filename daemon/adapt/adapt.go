package adapt

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/parts/goredis"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/fleet/adapters"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
	"github.com/warmpath/warmpath/daemon/fleet/probe"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/ledger"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Shared connects to the routers that share the workers' history, nil if there are none, and the limits of keys.
func Shared(c *conf.Config, log *slog.Logger) (*peers.Peers, *ledger.Ledger, error) {
	limits, err := limits(&c.Cache, log)
	if err != nil {
		return nil, nil, err
	}
	history, err := history(c, log)
	return history, limits, err
}

// history connects to the routers that share the workers' history.
func history(c *conf.Config, log *slog.Logger) (*peers.Peers, error) {
	url, err := c.History.RedisURL(&c.Cache)
	if err != nil || url == "" {
		return nil, err
	}
	secured, err := security(c.History.Security(&c.Cache))
	if err != nil {
		return nil, err
	}
	secret, err := c.History.Secret()
	if err != nil {
		return nil, err
	}
	name := RouterName(c)
	return peers.Open(peers.Config{Redis: url, TLS: secured, Prefix: "warmpath/", Secret: secret, Name: name,
		StreamBytes: c.History.MaxBytes, Log: log})
}

// RouterName returns this router's name among others.
func RouterName(c *conf.Config) string {
	name := c.History.Name
	if name == "" {
		name, _ = os.Hostname()
	}
	return name
}

// security returns the TLS settings of a Redis.
func security(f conf.RedisFiles) (*tls.Config, error) {
	return goredis.TLS(f.Table, f.CA, f.Cert, f.Key)
}

// OpenStore opens where the router keeps its own state.
func OpenStore(c *conf.Cache, owners tier.Owners, log *slog.Logger) (*tier.Store, error) {
	url, secured, err := redisOf(c)
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	return tier.Open(tier.Config{MaxBytes: c.MaxBytes, Redis: url, TLS: secured, Timeout: c.Timeout, Owners: owners,
		Log: log})
}

// redisOf returns the URL and the TLS settings of the Redis of [cache].
func redisOf(c *conf.Cache) (url string, secured *tls.Config, err error) {
	url, err = c.RedisURL()
	if err == nil {
		secured, err = security(c.Security())
	}
	return url, secured, err
}

// limits keeps the limits of keys, for all routers that share the Redis of [cache].
func limits(c *conf.Cache, log *slog.Logger) (*ledger.Ledger, error) {
	url, secured, err := redisOf(c)
	if err != nil {
		return nil, err
	}
	return ledger.Open(ledger.Config{Redis: url, TLS: secured, Log: log})
}

// Specs returns a pool's workers.
func Specs(c *conf.Pool) []worker.Spec {
	s := make([]worker.Spec, len(c.Workers))
	for i, w := range c.Workers {
		w.Role = cmp.Or(w.Role, c.Disaggregation.FoundRole())
		s[i] = worker.Spec{ID: w.ID, URL: w.URL, MetricsURL: w.MetricsURL, KVTokens: w.KVTokens, CPUTokens: w.CPUTokens,
			Weight: w.Weight, Cost: w.Cost, Labels: labels(&c.Disaggregation, &w), DataParallel: w.DataParallel, Drain: w.Drain}
		s[i].Role = role(&c.Disaggregation, w.RoleOf())
	}
	return s
}

// role returns the role of a worker by the configuration's word for it.
func role(d *conf.Disaggregation, said string) worker.Role {
	switch {
	case !d.On():
		return worker.Both
	case d.Answering && said == conf.RolePrefill:
		return worker.PrefillsToo
	case d.Answering || said == conf.RoleDecode:
		return worker.Decodes
	case said == conf.RolePrefill:
		return worker.Prefills
	}
	return worker.Both
}

// labels returns the labels of a worker, with one that has its role, and an empty one for each that it lacks of those
// which the two workers of a pair have alike: so a fence keeps it to those that lack it too.
func labels(d *conf.Disaggregation, w *conf.Worker) map[string]string {
	more := map[string]string{}
	if role := w.RoleOf(); role != conf.RoleBoth && w.Labels[conf.RoleLabel] != role {
		more[conf.RoleLabel] = role
	}
	for _, name := range d.Same {
		if d.On() && w.Labels[name] == "" {
			more[name] = ""
		}
	}
	if len(more) == 0 {
		return w.Labels
	}
	all := maps.Clone(w.Labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

// Pairing returns how prompts of a pool are computed by workers of their own, nil if they are not.
func Pairing(d *conf.Disaggregation) *epoch.Pairing {
	if !d.On() {
		return nil
	}
	p := &epoch.Pairing{Connector: pair.Connector(d.Connector), Threshold: d.Threshold, Rate: d.KVRate,
		Always: d.Rule == conf.RuleThreshold, Bootstrap: d.BootstrapPort, Shared: d.Answering,
		Same: d.Same, Near: d.Near, Far: d.Far.Seconds(),
		Prefillers: worker.Fence{worker.PrefillLabel}, Decoders: worker.Fence{worker.Not + worker.PrefillLabel}}
	if d.Answering {
		p.Decoders = nil
	}
	return p
}

// Workers returns how a pool treats its workers. If the pool has a queue, q is notified when a worker may have room. l
// loads its adapters.
func Workers(c *conf.Pool, q *waiting.Queue, l *adapters.Loader) worker.Config {
	w := worker.Config{
		Workers: Specs(c), HealthInterval: c.HealthInterval, ScrapeInterval: c.ScrapeInterval,
		SlowStart:              max(c.SlowStart, time.Nanosecond), // 0 = the pool's default
		PrefillTokensPerSecond: c.PrefillTokensPerSecond, RetryBudget: c.RetryBudget, Panic: c.Panic, DownGrace: c.DownGrace,
		PauseMax:    c.PauseMax,
		MaxInFlight: c.MaxInFlight, MaxWait: c.MaxWait, MaxKVUse: c.MaxKVUse, After: later,
		OwnTrials: true, Holds: c.Queue.WaitEmpty > 0,
	}
	if c.Queues() {
		w.Room = q
	}
	if c.Adapters.Source != "" {
		w.Adapters = worker.Loading{Max: c.Adapters.Max, Loads: source(c, l)}
	}
	return w
}

// later is the clock of the workers' pool, which has none of its own.
func later(d time.Duration, f func(now time.Time)) { time.AfterFunc(d, func() { f(time.Now()) }) }

// Served returns a pool's settings for its requests, which wait in q if the pool has a queue.
func Served(c *conf.Pool, q *waiting.Queue, l *adapters.Loader) *epoch.Pool {
	p := &epoch.Pool{Patterns: c, InvocationPath: c.InvocationPath, WorkerSessions: c.WorkerSessions,
		ClientRank: c.ClientRank, Hints: c.KVHints, Continue: c.Continue,
		FirstByteRetry: c.FirstByteRetry, HeaderTimeout: c.HeaderTimeout, Limited: c.Bounded(),
		OverflowStatus: c.Overflow,
		WaitEmpty:      c.Queue.WaitEmpty > 0, Pairing: Pairing(&c.Disaggregation)}
	if c.Queues() {
		p.Queue = q
	}
	if c.Adapters.Source != "" {
		p.Loader = source(c, l)
	}
	return p
}

// source returns the loader with where a pool's adapters are.
func source(c *conf.Pool, l *adapters.Loader) *adapters.Source {
	return l.By(adapters.Config{Source: c.Adapters.Source, Max: c.Adapters.Max, Own: c})
}

// Queue returns how much a pool's queue takes, and how long.
func Queue(c *conf.Pool) waiting.Config {
	q := &c.Queue
	return waiting.Config{Wait: q.Wait, WaitEmpty: q.WaitEmpty, Config: queue.Config{MaxRequests: q.MaxRequests,
		MaxBytes: int64(q.MaxBytes), Starve: q.Starve, ByDeadline: q.Order == "deadline"}}
}

// Origins returns where a pool's workers publish KV events, by their ids.
func Origins(c *conf.Pool) map[string]feed.Origin {
	all := make(map[string]feed.Origin, len(c.Workers))
	for i := range c.Workers {
		w := &c.Workers[i]
		events, replay := c.Events(w)
		all[w.ID] = feed.Origin{URL: w.URL, Events: events, Replay: replay}
	}
	return all
}

// Lends returns where others copy the KV of a worker from, nil if none does.
func Lends(c *conf.Pool) func(*worker.Worker) string {
	if c.KVHints != "fetch" {
		return nil
	}
	all := make(map[string]string, len(c.Workers))
	for i := range c.Workers {
		all[c.Workers[i].ID] = c.Source(&c.Workers[i])
	}
	return func(w *worker.Worker) string {
		at, _ := feed.Address(all[w.Endpoint()], w.URL(), int(w.Rank())) // checked before, but for ranks without a port
		return at
	}
}

// Tiers returns what lies below the GPUs of a pool's workers. store returns how many tokens this daemon's own KV cache
// has room for; a shared tier in the file comes first.
func Tiers(c *conf.Pool, store func() int) route.Tiers {
	t := route.Tiers{SharedTokens: max(0, c.SharedTokens), L1Rate: c.CPURate, L2Rate: c.SharedRate}
	if c.SharedTokens == 0 {
		t.Store = store
	}
	return t
}

// StorePart returns a pool's part of the tokens that this daemon's own KV cache has room for. The file does not say
// which pools' workers use its ports with their LMCache: the pools without a shared tier in the file have equal parts.
func StorePart(c *conf.Config, tokens int64) int {
	pools := 0
	for i := range c.Pools {
		if c.Pools[i].SharedTokens == 0 {
			pools++
		}
	}
	return int(tokens) / max(1, pools)
}

// KVCache returns the workers' KV cache with its doors.
func KVCache(c *conf.Config, version string, resolve discover.Resolver, by bind.Binder,
	log *slog.Logger) kvcache.Config {
	k := &c.KVCache
	return kvcache.Config{MaxBytes: int64(k.MaxBytes), Policy: k.Policy, RESP: k.RESP, User: k.User,
		SpillDir: k.SpillDir, SpillBytes: int64(k.SpillBytes), HyperPod: k.HyperPod, Segment: k.Segment,
		Mode: k.FileMode(), Password: k.Password, MaxConns: k.MaxConnections, ChunkTokens: c.LMCache.ChunkSize,
		L2: l2(k, resolve), Version: version, Bind: by, Log: log}
}

// Certificates reads the certificates of the listeners that have one.
func Certificates(c *conf.Config, log *slog.Logger) (all certificate.All, err error) {
	load := func(listener, cert, key string) *certificate.Pair {
		if cert == "" || err != nil {
			return nil
		}
		var p *certificate.Pair
		p, err = certificate.Load(certificate.Config{Listener: listener, CertFile: cert, KeyFile: key, Log: log})
		return p
	}
	all.Server = load("server", c.Server.TLSCertFile, c.Server.TLSKeyFile)
	if c.KVCache.RESP != "" {
		all.KVCache = load("kv_cache", c.KVCache.TLSCertFile, c.KVCache.TLSKeyFile)
	}
	return all, err
}

// Clients makes a client for each worker of a pool, by its URL. t is for those with https. One of before whose settings
// are the same stays.
func Clients(c *conf.Pool, t *tls.Config, before map[string]*upstream.Client) (map[string]*upstream.Client, error) {
	clients := make(map[string]*upstream.Client, len(c.Workers))
	for _, w := range c.Workers {
		to := upstream.Config{URL: w.URL, ConnectTimeout: c.ConnectTimeout, HeaderTimeout: c.HeaderTimeout,
			ChunkTimeout: c.StreamTimeout, TLS: t}
		if u := before[w.URL]; u.Has(to) {
			clients[w.URL] = u
			continue
		}
		u, err := upstream.New(to)
		if err != nil {
			return nil, fmt.Errorf("daemon: pool %q, worker %q: %w", c.Name, w.ID, err)
		}
		clients[w.URL] = u
	}
	return clients, nil
}

// LMCache starts the controller of the workers' LMCache. It is nil, which does nothing, if none is configured.
func LMCache(c *conf.LMCache, by bind.Binder, log *slog.Logger) (*lmcache.Controller, error) {
	if !c.On() {
		return nil, nil
	}
	return lmcache.New(lmcache.Config{Pull: c.Pull, Reply: c.Reply, Heartbeat: c.Heartbeat, Advertise: c.Advertise,
		Coordinator: c.Coordinator, Hash: c.Hash, ChunkSize: c.ChunkSize, Seed: uint32(c.HashSeed), Instances: c.Instances,
		Bind: by, Log: log})
}

// Questions returns how to ask a pool's workers, with their API key.
func Questions(c *conf.Pool, key string, t *tls.Config) probe.Config {
	return probe.Config{HealthInterval: c.HealthInterval, ScrapeInterval: c.ScrapeInterval, Key: key, TLS: t}
}
