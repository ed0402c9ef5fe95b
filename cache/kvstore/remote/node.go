package remote

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/parts/breaker"
	"github.com/warmpath/warmpath/cache/parts/seldom"
)

// node is one server behind a breaker. It is a hook of go-redis: every command to the server passes it.
type node struct {
	addr string
	log  *slog.Logger

	evictions evictions
	breaker   breaker.Breaker // open while it is down
	denied    seldom.Once     // lines on commands that the server's ACL forbids

	mu      sync.Mutex // guards all below
	good    time.Time  // the last answer
	why     trouble    // as of the last line, while it is down
	empty   uint64     // how often it came back without its values so fast that it was never down
	beating bool       // a pulse is under way

	refusing refusal // why the server takes no value; "" = it does
	from     time.Time
	pause    time.Time // no value is sent before
}

func newNode(addr string, log *slog.Logger) *node {
	return &node{addr: addr, log: log, breaker: breaker.Breaker{Rule: breaker.Rule{Failures: failsToOpen}}}
}

// refusal is the reason for which a server that answers takes no value.
type refusal string

// The refusals, which are labels of metrics too.
const (
	refusedOOM      refusal = "oom"
	refusedReadOnly refusal = "read_only"
	refusedLogin    refusal = "login"
	refusedOther    refusal = "other"
)

const (
	failsToOpen = 3                      // failures in a row; one pulse is enough
	pulseEvery  = 200 * time.Millisecond // of a server that has not answered in that time
	pauseTime   = time.Second            // after a refusal: values of megabytes are not sent just to be refused
	calmTime    = 5 * pauseTime          // without a refusal: a full Redis still takes small values
)

var errDown = errors.New("remote: the server is down")

// pulse marks the context of a command that is sent even to a server that is down.
type pulse struct{}

func isPulse(ctx context.Context) bool { return ctx.Value(pulse{}) != nil }

// DialHook returns the dial function unchanged.
func (n *node) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook refuses a command while the server is down, and counts its outcome.
func (n *node) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !n.up() && !isPulse(ctx) {
			cmd.SetErr(errDown)
			return errDown
		}
		err := next(ctx, cmd)
		n.report(cmd, err, isPulse(ctx))
		return err
	}
}

// ProcessPipelineHook is ProcessHook for many commands.
func (n *node) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !n.up() && !isPulse(ctx) {
			for _, cmd := range cmds {
				cmd.SetErr(errDown)
			}
			return errDown
		}
		err := next(ctx, cmds)
		n.report(failed(cmds), err, isPulse(ctx))
		return err
	}
}

// failed returns the command whose error is the pipeline's.
func failed(cmds []redis.Cmder) redis.Cmder {
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			return cmd
		}
	}
	return cmds[0]
}

// lost returns how often the server may have lost its values. It is 0 for a nil node.
func (n *node) lost() uint64 {
	if n == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.breaker.Opens() + n.empty
}

// emptied records that the server has lost its values without having been down.
func (n *node) emptied() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.empty++
}

func (n *node) up() bool { return !n.breaker.Open() }

// report counts the outcome of a command. Any reply counts as an answer, except that the server cannot answer yet or
// refuses all clients.
func (n *node) report(cmd redis.Cmder, err error, pulse bool) {
	if errors.Is(err, context.Canceled) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, errDown) ||
		errors.Is(err, redis.ErrClosed) {
		return // no sign of the server's state
	}
	if err == nil && cmd.Name() == "hello" {
		return // the server may still refuse the connection's database
	}
	if !answered(err) {
		n.fail(err, pulse)
		return
	}
	n.succeed()
	if text, ok := redisError(err); ok && strings.HasPrefix(text, "NOPERM") && cmd.Name() != "set" { // of SET: see refuse
		n.deny(cmd.Name(), err)
	}
}

// answered reports whether an outcome is a reply of the server.
func answered(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) {
		return true
	}
	if errors.Is(err, redis.ErrClosed) {
		return false
	}
	text, ok := redisError(err)
	if !ok {
		return isShort(err)
	}
	return !begins(text, "LOADING", "MASTERDOWN", "CLUSTERDOWN", "UNBLOCKED") && !isShut(err)
}

// isShut reports whether the server refuses the URL's user, password and database.
func isShut(err error) bool {
	text, _ := redisError(err)
	return begins(text, "NOAUTH", "WRONGPASS", "DENIED", "ERR AUTH", "ERR DB index")
}

func begins(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

// isShort reports whether a value did not fit the buffer. The library has no type for this error.
func isShort(err error) bool { return strings.HasPrefix(err.Error(), "redis: buffer too small") }

// redisError returns the text of an error reply.
func redisError(err error) (string, bool) {
	r, ok := errors.AsType[redis.Error](err)
	if !ok {
		return "", false
	}
	if _, network := errors.AsType[net.Error](err); network {
		return "", false
	}
	return r.Error(), true
}

func (n *node) succeed() {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.good = now
	if lasted, was := n.breaker.Close(now); was {
		n.log.Info("a server of the KV cache's L2 is back", "server", n.addr, "down_for", lasted.Round(time.Millisecond))
	}
}

func (n *node) fail(err error, pulse bool) {
	why := troubleOf(err)
	n.mu.Lock()
	defer n.mu.Unlock()
	fail := n.breaker.Fail
	if pulse {
		fail = n.breaker.Trip
	}
	switch {
	case fail(time.Now()):
	case n.up() || why == silent || why == n.why: // a reason may show later than the first error
		return
	}
	n.why = why
	switch why {
	case shutOut:
		n.log.Warn("a server of the KV cache's L2 refuses this daemon's login: its values are misses until it accepts; "+
			"correct the user, the password or the database, which in a pool all members share", "server", n.addr, "error", err)
	case noTLS:
		n.log.Warn("a server of the KV cache's L2 and this daemon cannot agree on TLS: its values are misses until they do; "+
			"correct the URL, tls_ca_file or tls_cert_file of kv_cache.l2, or the server's certificate", "server", n.addr,
			"error", err)
	default:
		n.log.Warn("a server of the KV cache's L2 does not answer: its values are misses until it does", "server", n.addr,
			"error", err)
	}
}

// trouble is the reason for which a server is down.
type trouble int

const (
	silent trouble = iota
	shutOut
	noTLS // a handshake failed on this side or, as a "remote error", on the other
)

func troubleOf(err error) trouble {
	switch {
	case isShut(err):
		return shutOut
	case strings.Contains(err.Error(), "tls: "):
		return noTLS
	}
	return silent
}

// deny logs a command that the server's ACL forbids, once: what lacks it does not fail, but never hits.
func (n *node) deny(command string, err error) {
	n.denied.Warn(n.log, command, "the ACL of the KV cache's L2 forbids a command: values may be misses; allow the user "+
		"what docs/kv-cache.md lists", "server", n.addr, "command", command, "error", err)
}

// refuse records that the server refused a value, and returns the reason.
func (n *node) refuse(err error) refusal {
	why := refusalOf(err)
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pause = now.Add(pauseTime)
	if n.refusing != why {
		n.refusing = why
		n.from = now
		n.log.Warn("a server of the KV cache's L2 takes no value: "+remedies[why], "server", n.addr, "error", err)
	}
	return why
}

// took records that the server took a value. The refusals have ended if there was none for calmTime.
func (n *node) took() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refusing != "" && time.Since(n.pause) >= calmTime-pauseTime {
		n.log.Info("a server of the KV cache's L2 takes values again", "server", n.addr, "was", n.refusing,
			"for", time.Since(n.from).Round(time.Millisecond))
		n.refusing = ""
	}
}

// paused reports whether the server has refused a value a moment ago.
func (n *node) paused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.pause)
}

// remedies are the remedies for an operator.
var remedies = map[refusal]string{
	refusedOOM:      "it is out of memory; give it more, or set its maxmemory-policy to allkeys-lru",
	refusedReadOnly: "it is a replica; give the address of the master, or of sentinels",
	refusedLogin:    "the user or the password is wrong, or may not write; correct the URL or the server's ACL",
	refusedOther:    "see its error",
}

func refusalOf(err error) refusal {
	text, _ := redisError(err)
	for prefix, why := range map[string]refusal{"OOM": refusedOOM, "READONLY": refusedReadOnly, "NOAUTH": refusedLogin,
		"WRONGPASS": refusedLogin, "NOPERM": refusedLogin} {
		if strings.HasPrefix(text, prefix) {
			return why
		}
	}
	return refusedOther
}

// beat sends the server a PING if it has been silent for pulseEvery, unless one is under way. It calls closed if the
// library has closed the client, as of a node that has left its cluster.
func (n *node) beat(ctx context.Context, c *redis.Client, timeout time.Duration, closed func()) {
	n.mu.Lock()
	due := !n.beating && (!n.up() || time.Since(n.good) >= pulseEvery)
	n.beating = n.beating || due
	n.mu.Unlock()
	if !due {
		return
	}
	go func() {
		defer func() { n.mu.Lock(); n.beating = false; n.mu.Unlock() }()
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, pulse{}, true), timeout)
		defer cancel()
		// The library does not notice that the server has closed a connection with TLS, so each such connection costs a
		// PING.
		for range c.PoolStats().IdleConns + 1 {
			err := c.Ping(ctx).Err() // the hook counts the outcome
			if errors.Is(err, redis.ErrClosed) {
				closed()
			}
			if !isClosed(err) {
				return
			}
		}
	}()
}

// isClosed reports whether the server had closed the connection of a command.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
