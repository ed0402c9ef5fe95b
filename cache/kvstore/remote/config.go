package remote

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"time"
)

// Config names the servers, and what is sent to them. One of Redis and Pool is set.
type Config struct {
	Redis *Redis
	Pool  *Pool

	Memory  bool          // memory keeps values that the servers have, too
	Promote Promote       // which values from the servers memory keeps, if Memory
	Through bool          // a put waits until the servers have the value
	Queue   int64         // bytes of values on their way to the servers; further values are skipped. Default 64 MiB
	Timeout time.Duration // of a server's silence; default 500 ms
	Log     *slog.Logger  // default slog.Default()
}

// Redis is a Redis or Valkey of version 6 or later: one, a sentinel's, or a cluster.
type Redis struct {
	URL    string        // see ParseURL
	Prefix string        // of its keys
	TLS    *tls.Config   // of rediss://: its RootCAs and GetClientCertificate; nil = the system's authorities
	TTL    time.Duration // of values that have no end; 0 = none
}

// Pool is several daemons that share their memory. Each value belongs to one of them.
type Pool struct {
	Members        []string                 // HOST:PORT of each one's Redis listener; all daemons must have the same texts
	Self           func(member string) bool // reports whether the member is this daemon
	Bytes          int64                    // of values that this daemon keeps at most
	User, Password string                   // of the doors
	TLS            *tls.Config              // of the doors; nil = plain TCP
}

// Promote is a policy for values that come from the servers.
type Promote string

// The policies.
const (
	Always Promote = "always" // memory keeps all
	Second Promote = "second" // memory keeps a value that comes a second time
	Never  Promote = "never"  // memory keeps values for their readers only
)

const (
	defaultQueue   = 64 << 20
	defaultTimeout = 500 * time.Millisecond
	commandTime    = 10 * time.Second // of a command in all; 128 MiB at 13 MB/s
)

var errNoServers = errors.New("remote: neither a Redis nor a pool is given")

func (c Config) withDefaults() Config {
	if c.Queue <= 0 {
		c.Queue = defaultQueue
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Promote == "" {
		c.Promote = Always
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}
