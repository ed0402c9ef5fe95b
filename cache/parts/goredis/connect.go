package goredis

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Settings are the settings of a client that its URL does not have.
type Settings struct {
	TLS         *tls.Config // of rediss://: its RootCAs and GetClientCertificate; nil = the system's authorities
	Dialer      Dialer
	Dial        time.Duration // of a connection
	Reply       time.Duration // of one reply; contexts set shorter limits
	Pool        time.Duration // of the wait for a connection
	Connections int           // at most, of each server; the URL's pool_size comes first
	Least       int           // connections, whatever the URL says
	Idle        int           // connections that are kept ready; the URL's comes first

	Made func(c *redis.Client, addr string) // is called with each client of one server; nil = nothing is
}

// Dialer connects to a Redis; conf is nil without TLS.
type Dialer interface {
	Dial(ctx context.Context, network, addr string, conf *tls.Config) (net.Conn, error)
}

// Client is a client of one Redis, of a Sentinel's primary, or of a cluster.
type Client struct {
	redis.UniversalClient
	Kind Kind
	Addr string // without user and password
}

// Connect makes a client; nothing is sent before its first command. Each command is sent only once, unless a cluster
// redirects it, and ends with its context.
func Connect(url string, set Settings) (*Client, error) {
	s, err := Parse(url)
	if err != nil {
		return nil, err
	}
	silence()
	c := &Client{Kind: s.Kind}
	switch s.Kind {
	case Sentinel:
		c.Addr = "the primary " + s.Sentinel.MasterName
		primary := redis.NewFailoverClient(set.failover(s.Sentinel))
		set.made(primary, "master "+s.Sentinel.MasterName)
		c.UniversalClient = primary
	case Cluster:
		c.Addr = "the cluster of " + s.Cluster.Addrs[0]
		c.UniversalClient = redis.NewClusterClient(set.cluster(s.Cluster))
	default:
		c.Addr = s.Single.Addr
		c.UniversalClient = set.New(s.Single)
	}
	return c, nil
}

func (set *Settings) made(c *redis.Client, addr string) {
	if set.Made != nil {
		set.Made(c, addr)
	}
}

// Holder returns the client of the one server that has a key, for commands that name none.
func (c *Client) Holder(ctx context.Context, key string) (redis.UniversalClient, error) {
	if cluster, ok := c.UniversalClient.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return c.UniversalClient, nil
}

// dial returns the Dialer in the library's form.
func (set *Settings) dial(conf *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return set.Dialer.Dial(ctx, network, addr, conf)
	}
}

// New makes the client of one server.
func (set *Settings) New(opt *redis.Options) *redis.Client {
	plain(opt)
	opt.DialTimeout = set.Dial
	opt.ReadTimeout = set.Reply
	opt.WriteTimeout = set.Reply
	opt.PoolTimeout = set.Pool
	opt.PoolSize = cmp.Or(max(opt.PoolSize, set.Least), set.Connections)
	if opt.MinIdleConns == 0 {
		opt.MinIdleConns = set.Idle
	}
	opt.TLSConfig = secured(opt.TLSConfig, set.TLS)
	opt.Dialer = set.dial(opt.TLSConfig)
	c := redis.NewClient(opt)
	set.made(c, opt.Addr)
	return c
}

// failover sets what New sets: the library has no common form of both.
func (set *Settings) failover(opt *redis.FailoverOptions) *redis.FailoverOptions {
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.ContextTimeoutEnabled = true
	opt.Protocol = 2
	opt.DisableIdentity = true
	opt.PipelinePoolSize = -1
	opt.DialTimeout = set.Dial
	opt.ReadTimeout = set.Reply
	opt.WriteTimeout = set.Reply
	opt.PoolTimeout = set.Pool
	opt.PoolSize = cmp.Or(max(opt.PoolSize, set.Least), set.Connections)
	if opt.MinIdleConns == 0 {
		opt.MinIdleConns = set.Idle
	}
	opt.TLSConfig = secured(opt.TLSConfig, set.TLS)
	opt.Dialer = set.dial(opt.TLSConfig)
	return opt
}

func (set *Settings) cluster(opt *redis.ClusterOptions) *redis.ClusterOptions {
	opt.TLSConfig = secured(opt.TLSConfig, set.TLS)
	opt.NewClient = set.New
	opt.DisableRoutingPolicies = true // all keys of a command have one slot
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return opt
}
