package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/parts/breaker"
	"github.com/warmpath/warmpath/cache/parts/goredis"
)

// PeerName is the client name of a daemon at another's Redis listener, which checks the right to it and serves the name
// only from its own machine.
const PeerName = "warmpath-pool"

// pool is the kind of the daemons themselves.
const pool goredis.Kind = "pool"

// servers holds the nodes behind one client of go-redis.
type servers struct {
	config Config
	kind   goredis.Kind
	client redis.UniversalClient
	ring   *redis.Ring // the client, if it is a pool

	settings goredis.Settings // of the nodes' clients

	prefix string        // of keys
	mark   string        // only compareMark uses it
	size   atomic.Int64  // the bound of the servers' value bytes; 0 = not known
	losses atomic.Uint64 // of a Redis: how often it is known to have lost its values
	mapped atomic.Bool   // the slots of a cluster are known

	unmapped breaker.Breaker // open from the first failure to read them to their first reading

	mu    sync.Mutex // guards nodes
	nodes map[*redis.Client]*node
}

const poolSize = 32 // connections to one server

func newServers(c Config) (*servers, error) {
	s := &servers{config: c, nodes: map[*redis.Client]*node{}}
	s.settings = goredis.Settings{Dialer: dialer{c.Timeout}, Dial: c.Timeout, Reply: commandTime, Pool: c.Timeout,
		Connections: poolSize, Made: s.adopt}
	if c.Pool != nil {
		s.kind = pool
		s.ring = s.newRing(c.Pool)
		s.client = s.ring
		return s, nil
	}
	if c.Redis == nil {
		return nil, errNoServers
	}
	s.settings.TLS = c.Redis.TLS
	client, err := goredis.Connect(c.Redis.URL, s.settings)
	if err != nil {
		return nil, err
	}
	s.kind, s.client, s.prefix = client.Kind, client.UniversalClient, c.Redis.Prefix
	return s, nil
}

// adopt puts a node in front of the client.
func (s *servers) adopt(c *redis.Client, addr string) {
	n := newNode(addr, s.config.Log)
	c.AddHook(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[c] = n
}

// newRing makes the client of a pool. Rendezvous hashing gives each key to one live member: when one of n members
// leaves or comes back, an n-th of the keys moves.
func (s *servers) newRing(p *Pool) *redis.Ring {
	return redis.NewRing(&redis.RingOptions{
		Addrs: named(p.Members), ClientName: PeerName, Username: p.User, Password: p.Password,
		TLSConfig: p.TLS, NewClient: s.settings.New, HeartbeatFrequency: pulseEvery,
		HeartbeatFn: func(_ context.Context, c *redis.Client) bool { return s.node(c).up() },
	})
}

// named names each member by its address, which the hashing uses: all daemons must have the same names.
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

// remove drops the node of a client that is closed.
func (s *servers) remove(c *redis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, c)
}

// node returns the node of a client. A client that was removed gets one that is down.
func (s *servers) node(c *redis.Client) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.nodes[c]; n != nil {
		return n
	}
	n := newNode("", s.config.Log)
	n.breaker.Trip(time.Now())
	return n
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

// owner returns the server of a key, and nil if it is unknown. It never waits.
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
		c, err = all.MasterForKey(context.Background(), s.prefix+key) // it has the slot map, and renews it in the background
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

// up reports whether the server of a key answers. It never waits.
func (s *servers) up(key string) bool {
	_, n := s.owner(key)
	return n != nil && n.up()
}

// stand returns the present stand of a key's server. It never waits.
func (s *servers) stand(key string) stand {
	if s.kind != pool {
		return stand{losses: s.losses.Load()}
	}
	_, n := s.owner(key)
	return stand{server: n, losses: n.lost()}
}

// at returns the client for a key. For a cluster it returns the common client, which finds a key that has moved.
func (s *servers) at(key string) (redis.Cmdable, error) {
	if s.kind == goredis.Cluster {
		return s.client, nil
	}
	if c, _ := s.owner(key); c != nil {
		return c, nil
	}
	return nil, errDown
}

// beat probes the servers that have not answered for a while.
func (s *servers) beat(ctx context.Context) {
	if c, ok := s.client.(*redis.ClusterClient); ok && !s.mapped.Load() {
		s.readMap(ctx, c)
	}
	s.each(func(c *redis.Client, n *node) {
		if s.ring != nil && s.config.Pool.Self(c.Options().Addr) {
			return
		}
		n.beat(ctx, c, s.config.Timeout, func() { s.remove(c) })
	})
}

// readMap reads which server of a cluster has which slots.
func (s *servers) readMap(ctx context.Context, c *redis.ClusterClient) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	_, err := c.MasterForKey(ctx, "")
	if err == nil {
		s.mapped.Store(true)
		if lasted, was := s.unmapped.Close(time.Now()); was {
			s.config.Log.Info("the cluster of the KV cache's L2 is there", "after", lasted.Round(time.Millisecond))
		}
		return
	}
	if s.unmapped.Fail(time.Now()) {
		s.config.Log.Warn("no server of the KV cache's L2 says how the cluster is divided: all its values are misses",
			"error", err)
	}
}

// markKey cannot be a key of a store: those begin with their door.
const markKey = "mark"

// unmark deletes the mark: all daemons then drop their facts about a Redis within a second.
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

// compareMark checks by a key of its own whether a Redis has lost its values. In a cluster one server has the key.
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

// steady reports whether the key's server has evicted nothing since the fact was confirmed. It never waits.
func (s *servers) steady(key string, f fact) bool {
	_, n := s.owner(key)
	return n != nil && !n.evictions.since(f.at)
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
		list = append(list, ServerStats{Address: n.addr, Self: s.kind == pool && s.config.Pool.Self(n.addr), Up: n.up(),
			Opens: n.breaker.Opens(), DownFor: n.breaker.OpenFor(now), Refuses: string(n.refusing)})
	})
	slices.SortFunc(list, func(a, b ServerStats) int { return cmp.Compare(a.Address, b.Address) })
	return list
}
