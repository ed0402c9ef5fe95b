package tier

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/breaker"
	"github.com/warmpath/warmpath/cache/goredis"
)

const (
	// dialTimeout is for connections made in the background; a request waits for its own Timeout only.
	dialTimeout = time.Second
	// backgroundTimeout is for one step where no request waits.
	backgroundTimeout = time.Second
)

// outage is when Redis counts as lost. The number of failures alone took a burst of requests on cold connections, which
// fail together within 5 ms, for an outage: of 10,000 bindings that a restarted router asked for, 20 at once, it did
// not find a half.
var outage = breaker.Rule{Failures: 5, Over: 150 * time.Millisecond}

// remote is L2: one Redis behind a breaker. Every call ends by its deadline, and what went wrong is only counted.
type remote struct {
	c       *redis.Client
	addr    string // without user and password
	keys    keys
	timeout time.Duration
	log     *slog.Logger
	breaker breaker.Breaker // that healer alone closes, once Redis has answered in time and has got what it missed

	epoch                                  epoch
	calls, failed, slow, garbage, restored atomic.Uint64
}

func newRemote(conf Config) (*remote, error) {
	opt, err := Options(conf.Redis, conf.TLS, int64(conf.MaxBytes/2)+maxLine) // no value that memory takes is larger
	if err != nil {
		return nil, err
	}
	opt.PoolTimeout = conf.Timeout
	if opt.PoolSize == 0 {
		opt.PoolSize = 16 // more only queue at Redis's one thread
	}
	if opt.MinIdleConns == 0 {
		opt.MinIdleConns = 4
	}
	return &remote{
		c: redis.NewClient(opt), addr: opt.Addr, keys: keys(conf.Prefix), timeout: conf.Timeout, log: conf.Log,
		breaker: breaker.Breaker{Rule: outage},
	}, nil
}

var errPool = errors.New("tier: pool_size is out of range")

// Options returns how to reach the Redis of a URL: nothing is retried, a context's deadline holds, and a reply of more
// than most bytes ends its connection. security has the authorities and the client certificate of rediss://; nil = the
// system's authorities. An error does not show the URL.
func Options(url string, security *tls.Config, most int64) (*redis.Options, error) {
	opt, err := redis.ParseURL(url)
	if err == nil && !goredis.PoolFits(opt.PoolSize) {
		err = errPool
	}
	if err != nil { // neither the URL nor the error is shown: both may hold the password
		return nil, errors.New("tier: the Redis URL is not valid; want redis://[user:password@]host:port[/db], " +
			"rediss://... or unix://[user:password@]/path[?db=n], with special characters of the password percent-encoded")
	}
	goredis.Plain(opt)
	opt.DialTimeout = dialTimeout
	opt.ReadTimeout = dialTimeout
	opt.WriteTimeout = dialTimeout
	opt.TLSConfig = goredis.Secured(opt.TLSConfig, security)
	opt.Dialer = dialer(opt.TLSConfig, most)
	return opt, nil
}

// dialer connects to Redis, and limits replies to most bytes. Unlike go-redis's own it stops at the end of its context
// in the TLS handshake too.
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

// ask runs a script on one value until the deadline of ctx.
func (r *remote) ask(ctx context.Context, script *redis.Script, k id, args ...any) (reply, error) {
	start := time.Now()
	res, err := r.run(ctx, script, k, args...)
	r.count(start, err)
	if err != nil {
		return reply{}, err
	}
	return r.parse(res)
}

// askQuietly is ask without the breaker: a silent Redis is not counted as a failure.
func (r *remote) askQuietly(ctx context.Context, script *redis.Script, k id, args ...any) (reply, error) {
	res, err := r.run(ctx, script, k, args...)
	if err != nil {
		return reply{}, err
	}
	return r.parse(res)
}

func (r *remote) run(ctx context.Context, script *redis.Script, k id, args ...any) ([]any, error) {
	args = append(args, r.epoch.forRequest())
	return script.Run(ctx, r.c, []string{r.keys.key(k), r.keys.epoch()}, args...).Slice()
}

func (r *remote) parse(res []any) (reply, error) {
	kinds, ok1 := str(res, 0)
	value, ok2 := str(res, 1)
	if !ok1 || !ok2 || len(res) != 3 || len(kinds) != 1 {
		return reply{}, fmt.Errorf("tier: Redis at %s answered a script with %d parts; is it a Redis?", r.addr, len(res))
	}
	ttl, _ := res[2].(int64)
	k := kind(kinds[0])
	if k == kindGarbage {
		r.garbage.Add(1)
	}
	return reply{kind: k, value: []byte(value), ttl: max(0, time.Duration(ttl)*time.Millisecond)}, nil
}

func str(res []any, i int) (string, bool) {
	if i >= len(res) {
		return "", false
	}
	s, ok := res[i].(string)
	return s, ok
}

// set writes a value whatever stands there.
func (r *remote) set(ctx context.Context, k id, value []byte, ttl time.Duration) error {
	start := time.Now()
	err := r.c.Set(ctx, r.keys.key(k), marked(value), time.Duration(millis(ttl))*time.Millisecond).Err()
	r.count(start, err)
	return err
}

// count counts a call for the breaker and the statistics. It logs when the breaker opens.
func (r *remote) count(start time.Time, err error) {
	r.calls.Add(1)
	if time.Since(start) > r.timeout {
		r.slow.Add(1)
	}
	if err == nil {
		r.breaker.Succeed()
		return
	}
	r.failed.Add(1)
	if r.breaker.Fail(time.Now()) {
		r.log.Warn("tier: Redis is lost; memory alone serves, and Redis gets the writes later", "addr", r.addr, "err", err)
	}
}

// writeProbe writes a key of its own, since a replica or a full Redis answers a read.
func (r *remote) writeProbe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return r.c.Set(ctx, string(r.keys)+"probe", "", time.Second).Err()
}

// loadScripts gives Redis the scripts of requests.
func (r *remote) loadScripts(ctx context.Context) error {
	for _, script := range scripts {
		if err := script.Load(ctx, r.c).Err(); err != nil {
			return err
		}
	}
	return nil
}

// readEpoch reads the mark, and makes one where there is none. It reports whether this call is the first to see that
// Redis has forgotten.
func (r *remote) readEpoch(ctx context.Context) (lost bool) {
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	var stands *redis.StringCmd
	if _, err := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SetNX(ctx, r.keys.epoch(), rand.Text(), 0)
		stands = p.Get(ctx, r.keys.epoch())
		return nil
	}); err != nil {
		return false
	}
	return stands.Val() != "" && r.epoch.compare(stands.Val(), time.Now())
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

func (r *remote) stats(st *L2Stats) {
	st.Configured = true
	st.Open = r.breaker.Open()
	st.Opens = r.breaker.Opens()
	st.Calls = r.calls.Load()
	st.Failures = r.failed.Load()
	st.Slow = r.slow.Load()
	st.Garbage = r.garbage.Load()
	st.Restored = r.restored.Load()
}
