package tier

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// What stands in Redis under a key is a string: one byte of mark, then the value. Anything else is not ours ("garbage").
const (
	markValue     = 'v'
	markTombstone = 't' // deleted by a router; others drop their copy when they see it
)

// dialTimeout is for connections made in the background; a request waits for its own Timeout only.
const dialTimeout = time.Second

// remote is L2: one Redis behind a breaker. Every call ends by its deadline, and what went wrong is only counted.
type remote struct {
	c       *redis.Client
	addr    string // without user and password
	prefix  string
	timeout time.Duration
	breaker
	epoch                                  epoch
	calls, failed, slow, garbage, restored atomic.Uint64

	onOpen func(error)
}

func newRemote(conf Config) (*remote, error) {
	opt, err := redis.ParseURL(conf.Redis)
	if err != nil { // it may hold the password: neither the URL nor a part of it is repeated
		return nil, errors.New("tier: the Redis URL is not valid; want redis://[user:password@]host:port[/db], rediss://... or unix://[user:password@]/path[?db=n], with special characters of the password percent-encoded")
	}
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.DialTimeout = dialTimeout
	opt.ContextTimeoutEnabled = true
	opt.ReadTimeout, opt.WriteTimeout, opt.PoolTimeout = dialTimeout, dialTimeout, conf.Timeout
	opt.Protocol = 2 // no push messages to look for on every reply
	opt.DisableIdentity = true
	opt.PipelinePoolSize = -1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if opt.PoolSize == 0 {
		opt.PoolSize = 16 // more only queue at Redis's one thread
	}
	if opt.MinIdleConns == 0 {
		opt.MinIdleConns = 4
	}
	opt.Dialer = dialer(opt.TLSConfig, int64(conf.MaxBytes/2)+maxLine) // no value that memory takes is larger
	return &remote{c: redis.NewClient(opt), addr: opt.Addr, prefix: conf.Prefix, timeout: conf.Timeout}, nil
}

// dialer obeys its context in the TLS handshake too, which go-redis's own does not, and bounds replies to most bytes.
func dialer(conf *tls.Config, most int64) func(context.Context, string, string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	dial := plain.DialContext
	if conf != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: conf}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return guarded(c, most), nil
	}
}

// silent keeps the client's own lines, one for every failed dial, out of the log: the breaker says it once.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// key is unambiguous for every namespace: its length stands before it.
func (r *remote) key(ns, key string) string {
	return r.prefix + strconv.Itoa(len(ns)) + ":" + ns + ":" + key
}

// reply is what a script found, or left.
type reply struct {
	kind  byte // see the scripts
	value []byte
	ttl   time.Duration // 0: no expiry
}

// ask runs a script on one key until the deadline of ctx.
func (r *remote) ask(ctx context.Context, script *redis.Script, key string, args ...any) (reply, error) {
	start := time.Now()
	res, err := script.Run(ctx, r.c, []string{key, r.prefix + epochKey}, append(args, r.epoch.known())...).Slice()
	r.outcome(start, err)
	if err != nil {
		return reply{}, err
	}
	return r.parse(res)
}

func (r *remote) parse(res []any) (reply, error) {
	kind, ok1 := str(res, 0)
	value, ok2 := str(res, 1)
	if !ok1 || !ok2 || len(res) != 3 || len(kind) != 1 {
		return reply{}, fmt.Errorf("tier: Redis at %s answered a script with %d parts; is it a Redis?", r.addr, len(res))
	}
	ttl, _ := res[2].(int64)
	if kind[0] == 'g' {
		r.garbage.Add(1)
	}
	return reply{kind: kind[0], value: []byte(value), ttl: max(0, time.Duration(ttl)*time.Millisecond)}, nil
}

func str(res []any, i int) (string, bool) {
	if i >= len(res) {
		return "", false
	}
	s, ok := res[i].(string)
	return s, ok
}

// set writes a value whatever stands there.
func (r *remote) set(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	start := time.Now()
	err := r.c.Set(ctx, key, marked(value), ttl).Err()
	r.outcome(start, err)
	return err
}

func (r *remote) outcome(start time.Time, err error) {
	r.calls.Add(1)
	if time.Since(start) > r.timeout {
		r.slow.Add(1)
	}
	if err == nil {
		r.success()
		return
	}
	r.failed.Add(1)
	if r.failure() {
		r.onOpen(err)
	}
}

func marked(value []byte) []byte {
	b := make([]byte, 0, len(value)+1)
	return append(append(b, markValue), value...)
}

// millis is a TTL for a script: whole milliseconds, rounded up; 0 is none.
func millis(ttl time.Duration) int64 {
	if ttl <= 0 {
		return 0
	}
	return int64((ttl + time.Millisecond - 1) / time.Millisecond)
}
