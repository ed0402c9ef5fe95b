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

	"github.com/warmpath/warmpath/cache/parts/breaker"
	"github.com/warmpath/warmpath/cache/parts/goredis"
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
	c       *goredis.Client
	addr    string // without user and password
	keys    keys
	timeout time.Duration
	log     *slog.Logger
	breaker breaker.Breaker // that healer alone closes, once Redis has answered in time and has got what it missed

	why      atomic.Value // string: of the last outage
	refused  atomic.Bool  // a line says what the Redis refused in that outage
	refusals refusals

	epoch                                  epoch
	calls, failed, slow, garbage, restored atomic.Uint64
}

func newRemote(conf Config) (*remote, error) {
	c, err := Connect(conf.Redis, conf.TLS, Bounds{Bytes: int64(conf.MaxBytes/2) + maxLine, // no value in memory is larger
		Reply: dialTimeout, Pool: conf.Timeout, Connections: 16, Idle: 4}) // more only queue at Redis's one thread
	if err != nil {
		return nil, err
	}
	return &remote{
		c: c, addr: c.Addr, keys: keys(goredis.Tagged(conf.Prefix)), timeout: conf.Timeout, log: conf.Log,
		breaker: breaker.Breaker{Rule: outage},
	}, nil
}

// Bounds are the limits of a client.
type Bounds struct {
	Bytes       int64         // of a reply: a larger one ends its connection
	Reply, Pool time.Duration // of the waits for a reply, and for a connection; a context's deadline is shorter
	Connections int           // at most, but for a URL with a pool_size
	Least       int           // connections, whatever the URL says
	Idle        int           // kept ready
}

// Connect makes a client of the Redis of a URL, which may be a Sentinel's or a cluster: nothing is retried, and a
// context's deadline holds. security has the authorities and the client certificate of rediss://; nil = the system's
// authorities. An error does not show the URL.
func Connect(url string, security *tls.Config, b Bounds) (*goredis.Client, error) {
	c, err := goredis.Connect(url, goredis.Settings{TLS: security, Dialer: dialer{b.Bytes}, Dial: dialTimeout,
		Reply: b.Reply, Pool: b.Pool, Connections: b.Connections, Least: b.Least, Idle: b.Idle})
	if err != nil {
		return nil, fmt.Errorf("tier: the Redis URL is not valid: %w", err)
	}
	return c, nil
}

// dialer connects to Redis, and limits replies to most bytes. Unlike go-redis's own it stops at the end of its context
// in the TLS handshake too.
type dialer struct{ most int64 }

// Dial implements [goredis.Dialer].
func (d dialer) Dial(ctx context.Context, network, addr string, conf *tls.Config) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	dial := plain.DialContext
	if conf != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: conf}).DialContext
	}
	c, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return guarded(c, d.most), nil
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
		r.refused.Store(isReply(err))
		r.log.Warn("tier: Redis is lost; memory alone serves, and Redis gets the writes later", "addr", r.addr, "err", err,
			"remedy", r.explain(err))
	}
	if !r.breaker.Open() {
		r.noteRefusal(err)
	}
}

// noteRefusal logs once what a Redis that is not lost goes on to refuse.
func (r *remote) noteRefusal(err error) {
	if remedy, due := r.refusals.note(err, time.Now()); due {
		r.log.Warn("tier: Redis refuses a part of what it is asked; the memory of this router alone has that", "addr", r.addr,
			"err", err, "remedy", remedy)
	}
}

// explain keeps why the Redis is lost, and returns what is to be done.
func (r *remote) explain(err error) (remedy string) {
	remedy = goredis.Remedy(err)
	r.why.Store(fmt.Sprintf("%v; %s", err, remedy))
	return remedy
}

// still takes what a lost Redis did with a probe. A refusal is more informative than the timeout by which the Redis may
// have been lost.
func (r *remote) still(err error) {
	if !isReply(err) {
		return
	}
	remedy := r.explain(err)
	if !r.refused.Swap(true) {
		r.log.Warn("tier: Redis answers again, and refuses; memory alone serves", "addr", r.addr, "err", err,
			"remedy", remedy)
	}
}

// isReply reports whether an error is the Redis's own answer.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// writeProbe writes a key of its own, since a replica or a full Redis answers a read.
func (r *remote) writeProbe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return r.c.Set(ctx, string(r.keys)+"probe", "", time.Second).Err()
}

// loadScripts gives Redis the scripts of requests.
func (r *remote) loadScripts(ctx context.Context) error {
	holder, err := r.c.Holder(ctx, r.keys.epoch())
	if err != nil {
		return err
	}
	for _, script := range scripts {
		if err := script.Load(ctx, holder).Err(); err != nil {
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
	if st.Open {
		st.Why, _ = r.why.Load().(string)
	} else {
		st.Refuses = r.refusals.state(time.Now())
	}
	st.Opens = r.breaker.Opens()
	st.Calls = r.calls.Load()
	st.Failures = r.failed.Load()
	st.Slow = r.slow.Load()
	st.Garbage = r.garbage.Load()
	st.Restored = r.restored.Load()
}
