package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// PeerName is what a daemon calls itself at another's Redis door, which looks whether it may. What it asks there stays
// there.
const PeerName = "warmpath-pool"

// servers are the nodes behind one client of go-redis.
type servers struct {
	config Config
	kind   kind
	client redis.UniversalClient
	ring   *redis.Ring // client, if they are a pool

	prefix string        // of keys
	mark   string        // see compareMark, which alone uses it
	size   atomic.Int64  // bytes of values that they keep at most; 0 = not known
	losses atomic.Uint64 // of a Redis: how often it is known to have lost what it had
	mapped atomic.Bool   // a cluster has said which server has what
	log    outage        // until then

	mu    sync.Mutex // guards nodes
	nodes map[*redis.Client]*node
}

// silenceLibrary turns off the log lines of the client library, one for every failed dial: a node logs an outage once.
var silenceLibrary = sync.OnceFunc(func() { redis.SetLogger(noLines{}) })

type noLines struct{}

func (noLines) Printf(context.Context, string, ...any) {}

const poolSize = 32 // connections to one server

func newServers(c Config) (*servers, error) {
	silenceLibrary()
	s := &servers{config: c, nodes: map[*redis.Client]*node{}}
	if c.Pool != nil {
		s.kind = pool
		s.ring = s.newRing(c.Pool)
		s.client = s.ring
		return s, nil
	}
	if c.Redis == nil {
		return nil, errNoServers
	}
	p, err := parseURL(c.Redis.URL)
	if err != nil {
		return nil, err
	}
	s.kind = p.kind
	s.prefix = c.Redis.Prefix
	switch p.kind {
	case sentinel:
		s.client = s.newFailover(p.sentinel)
	case cluster:
		s.client = s.newCluster(p.cluster)
	default:
		opt := p.single
		opt.Dialer = dialer(secured(opt.TLSConfig, c.Redis.TLS), c.Timeout)
		s.client = s.newClient(opt)
	}
	return s, nil
}

// newClient makes the client of one server, with its node.
func (s *servers) newClient(opt *redis.Options) *redis.Client {
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.DialTimeout = s.config.Timeout
	opt.ReadTimeout = commandTime
	opt.WriteTimeout = commandTime
	opt.PoolTimeout = s.config.Timeout
	opt.ContextTimeoutEnabled = true
	opt.Protocol = 2 // no push messages to look for on every reply
	opt.DisableIdentity = true
	opt.PipelinePoolSize = -1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if opt.PoolSize == 0 {
		opt.PoolSize = poolSize
	}
	c := redis.NewClient(opt)
	s.adopt(c, opt.Addr)
	return c
}

// adopt puts a node before the client.
func (s *servers) adopt(c *redis.Client, addr string) {
	n := &node{addr: addr, log: s.config.Log}
	c.AddHook(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[c] = n
}

func (s *servers) newFailover(opt *redis.FailoverOptions) *redis.Client {
	t := s.config.Timeout
	opt.Dialer = dialer(secured(opt.TLSConfig, s.config.Redis.TLS), t)
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.DialTimeout = t
	opt.ReadTimeout = commandTime
	opt.WriteTimeout = commandTime
	opt.PoolTimeout = t
	opt.ContextTimeoutEnabled = true
	opt.Protocol = 2
	opt.DisableIdentity = true
	opt.PipelinePoolSize = -1
	if opt.PoolSize == 0 {
		opt.PoolSize = poolSize
	}
	c := redis.NewFailoverClient(opt)
	s.adopt(c, "master "+opt.MasterName)
	return c
}

func (s *servers) newCluster(opt *redis.ClusterOptions) *redis.ClusterClient {
	opt.Dialer = dialer(secured(opt.TLSConfig, s.config.Redis.TLS), s.config.Timeout)
	opt.NewClient = s.newClient
	opt.DisableRoutingPolicies = true // each command here has one key
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClusterClient(opt)
}

// newRing makes the client of a pool. Rendezvous hashing gives each key to one live member: of n members one that
// leaves or comes back moves an n-th of the keys.
func (s *servers) newRing(p *Pool) *redis.Ring {
	return redis.NewRing(&redis.RingOptions{
		Addrs: named(p.Members), ClientName: PeerName, Username: p.User, Password: p.Password,
		Dialer: dialer(p.TLS, s.config.Timeout), NewClient: s.newClient, HeartbeatFrequency: pulseEvery,
		HeartbeatFn: func(_ context.Context, c *redis.Client) bool { return s.node(c).up() },
	})
}

// named names each member by its address, which is what hashing goes by: all daemons must have the same names.
func named(members []string) map[string]string {
	m := make(map[string]string, len(members))
	for _, addr := range members {
		m[addr] = addr
	}
	return m
}

// setMembers replaces the members of a pool.
func (s *servers) setMembers(members []string) {
	s.ring.SetAddrs(named(members))
	live := s.ring.GetShardClients()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.nodes {
		if !slices.Contains(live, c) && !slices.Contains(members, c.Options().Addr) {
			delete(s.nodes, c)
		}
	}
}

// node is what stands before a client. A client that has gone has one that is down.
func (s *servers) node(c *redis.Client) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[c]; n != nil {
		return n
	}
	return &node{down: true, log: s.config.Log}
}

// each calls f for every server.
func (s *servers) each(f func(*redis.Client, *node)) {
	s.mu.Lock()
	list := make(map[*redis.Client]*node, len(s.nodes))
	for c, n := range s.nodes {
		list[c] = n
	}
	s.mu.Unlock()
	for c, n := range list {
		f(c, n)
	}
}

// owner returns the server of a key, and nil where that is not known. It never waits.
func (s *servers) owner(key string) (*redis.Client, *node) {
	var c *redis.Client
	var err error
	switch all := s.client.(type) {
	case *redis.Client:
		c = all
	case *redis.Ring:
		c, err = all.GetShardClientForKey(s.prefix + key)
	case *redis.ClusterClient:
		if !s.mapped.Load() {
			return nil, nil
		}
		c, err = all.MasterForKey(context.Background(), s.prefix+key) // it has the map, and renews it in the background
	}
	if err != nil {
		return nil, nil
	}
	return c, s.node(c)
}

// own reports whether a key belongs to this daemon. It never waits.
func (s *servers) own(key string) bool {
	if s.kind != pool {
		return false
	}
	_, n := s.owner(key)
	return n != nil && s.config.Pool.Self(n.addr)
}

// up reports whether the server of a key can be asked. It never waits.
func (s *servers) up(key string) bool {
	_, n := s.owner(key)
	return n != nil && n.up()
}

// stand is where a key's server stands now. It never waits.
func (s *servers) stand(key string) stand {
	if s.kind != pool {
		return stand{losses: s.losses.Load()}
	}
	_, n := s.owner(key)
	return stand{server: n, losses: n.lost()}
}

// at returns the client to call for a key: of a cluster the one for all, which follows a key that has moved.
func (s *servers) at(key string) (redis.Cmdable, error) {
	if s.kind == cluster {
		return s.client, nil
	}
	if c, _ := s.owner(key); c != nil {
		return c, nil
	}
	return nil, errDown
}

// beat looks after the servers that have not answered for a while.
func (s *servers) beat(ctx context.Context) {
	if c, ok := s.client.(*redis.ClusterClient); ok && !s.mapped.Load() {
		s.readMap(ctx, c)
	}
	s.each(func(c *redis.Client, n *node) {
		if s.ring != nil && s.config.Pool.Self(c.Options().Addr) {
			return
		}
		n.beat(ctx, c, s.config.Timeout)
	})
}

// readMap learns which server of a cluster has what.
func (s *servers) readMap(ctx context.Context, c *redis.ClusterClient) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	_, err := c.MasterForKey(ctx, "")
	if err == nil {
		s.mapped.Store(true)
		s.log.back(s.config.Log)
		return
	}
	s.log.lost(s.config.Log, err)
}

// markKey is no key of a store: those begin with their door.
const markKey = "mark"

// unmark deletes the mark: all daemons then forget within a second what they know of a Redis.
func (s *servers) unmark(ctx context.Context) error {
	if s.kind == pool {
		return nil
	}
	c, err := s.at(markKey)
	if err != nil {
		return err
	}
	return c.Del(ctx, s.prefix+markKey).Err()
}

// compareMark learns whether a Redis has lost what it had, by a key that it had too. Of a cluster one server has it.
func (s *servers) compareMark(ctx context.Context) {
	name := s.prefix + markKey
	if s.kind == pool || !s.up(markKey) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	c, err := s.at(markKey)
	if err != nil || c.SetNX(ctx, name, rand.Text(), 0).Err() != nil {
		return
	}
	now, err := c.Get(ctx, name).Result()
	if err != nil || now == s.mark {
		return
	}
	if s.mark != "" {
		s.losses.Add(1)
		s.config.Log.Warn("the KV cache's L2 was flushed, or came back empty")
	}
	s.mark = now
}

// weigh asks the servers how much they keep. One that does not say, or has no limit, makes the sum unknown.
func (s *servers) weigh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	sum := int64(0)
	known := true
	s.each(func(c *redis.Client, n *node) {
		if s.kind == pool && s.config.Pool.Self(n.addr) {
			sum += s.config.Pool.Bytes
			return
		}
		if !n.up() {
			return // what it keeps is no use now
		}
		text, err := c.Info(ctx, "memory").Result()
		bytes := limitOf(text)
		known = known && err == nil && bytes > 0
		sum += bytes
	})
	if known {
		s.size.Store(sum)
	}
}

// steady reports whether the key's server has evicted nothing since the fact was known. It never waits.
func (s *servers) steady(key string, f fact) bool {
	_, n := s.owner(key)
	return n != nil && !n.evictions.since(f.at)
}

// countEvictions asks the servers that answer. What one does not say is taken for an eviction.
func (s *servers) countEvictions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	s.each(func(c *redis.Client, n *node) {
		if !n.up() || s.kind == pool && s.config.Pool.Self(n.addr) {
			return
		}
		text, err := c.Info(ctx, "stats").Result()
		count, ok := numberOf(text, "evicted_keys")
		n.evictions.note(count, err == nil && ok, time.Now())
	})
}

// limitOf returns maxmemory of INFO's text; 0 = there is none.
func limitOf(info string) int64 {
	n, _ := numberOf(info, "maxmemory")
	return max(n, 0)
}

// numberOf returns a number of INFO's text.
func numberOf(info, name string) (int64, bool) {
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func (s *servers) close() error {
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("remote: %w", err)
	}
	return nil
}

func (s *servers) stats() (list []ServerStats) {
	now := time.Now()
	s.each(func(_ *redis.Client, n *node) {
		n.mu.Lock()
		defer n.mu.Unlock()
		one := ServerStats{Address: n.addr, Self: s.kind == pool && s.config.Pool.Self(n.addr), Up: !n.down, Opens: n.opens,
			Refuses: string(n.refusing)}
		if n.down {
			one.DownFor = now.Sub(n.since)
		}
		list = append(list, one)
	})
	slices.SortFunc(list, func(a, b ServerStats) int { return cmp.Compare(a.Address, b.Address) })
	return list
}
