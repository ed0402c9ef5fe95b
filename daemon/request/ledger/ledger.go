package ledger

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/goredis"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/request/limit"
)

const (
	every     = 100 * time.Millisecond // between two messages
	idleTurns = 10                     // how many of them leave out unused keys
	patience  = 500 * time.Millisecond // for an answer
	maxReply  = 8 << 20                // 128 keys with the entries of 200 routers
	atOnce    = 128                    // keys in a script
)

// Config is what a Ledger needs.
type Config struct {
	Redis string      // its URL; "" = no other router shares the limits
	TLS   *tls.Config // of rediss://; nil = the system's authorities
	Log   *slog.Logger
}

// Ledger is a Book whose limits are those of all routers that share a Redis.
type Ledger struct {
	limit.Book
	c      *goredis.Client // nil = there is none
	log    *slog.Logger
	prefix string
	self   string
	lost   atomic.Bool
	asked  atomic.Bool

	mu          sync.Mutex // guards all below
	turn        int
	list        []limit.Message   // memory
	others      map[string]others // by key
	saidOdd     bool
	saidVersion bool
}

// Open makes a Ledger; nothing is sent before Run. It fails on a bad URL only.
func Open(conf Config) (*Ledger, error) {
	l := &Ledger{log: conf.Log, self: fmt.Sprintf("%016x", rand.Uint64()), others: map[string]others{}}
	if conf.Redis == "" {
		return l, nil
	}
	var err error
	l.c, err = tier.Connect(conf.Redis, conf.TLS, tier.Bounds{Bytes: maxReply, Reply: patience, Pool: patience,
		Connections: 2})
	if err != nil {
		return nil, err
	}
	l.prefix = goredis.Tagged("warmpath/") + "limits/"
	return l, nil
}

// Lost reports whether Redis does not answer, so that this router gives out an equal part of each limit.
func (l *Ledger) Lost() bool { return l != nil && l.lost.Load() }

// Counts returns the figures of all keys with limits. A nil Ledger has none.
func (l *Ledger) Counts(at time.Time) []limit.Stats {
	if l == nil {
		return nil
	}
	return l.Stats(at)
}

// Run shares the limits until ctx ends.
func (l *Ledger) Run(ctx context.Context) {
	if l.c == nil {
		return
	}
	defer l.c.Close()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if !l.lost.Load() { // what was taken last stays taken
				l.note(ctx, l.exchange(context.WithoutCancel(ctx)))
			}
			return
		case <-tick.C:
		}
		l.note(ctx, l.exchange(ctx))
	}
}

// Configure makes these the limits of the keys, as [limit.Book.Configure]. The first time it asks Redis what the keys
// have taken elsewhere, and asks again when all routers have written: what a router that is new let in until its first
// message would come on top. If Redis does not answer it goes on without.
func (l *Ledger) Configure(ctx context.Context, all map[string]limit.Limits, at time.Time) map[string]*limit.Key {
	keys := l.Book.Configure(all, at)
	if l.c == nil || keys == nil || l.asked.Swap(true) {
		return keys
	}
	err := l.exchange(ctx)
	if err == nil {
		select {
		case <-ctx.Done():
		case <-time.After(2 * every):
		}
		l.mu.Lock()
		l.turn = 0
		l.mu.Unlock()
		err = l.exchange(ctx)
	}
	l.note(ctx, err)
	return keys
}

// exchange sends a message for each key, and takes the answers.
func (l *Ledger) exchange(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.messages(time.Now())
	for len(all) > 0 {
		some := all[:min(atOnce, len(all))]
		all = all[len(some):]
		if err := l.send(ctx, some, l.turn%idleTurns == 1); err != nil {
			return err
		}
	}
	return nil
}

// messages returns the messages to send now. The first one says that this router is alive.
func (l *Ledger) messages(now time.Time) []limit.Message {
	l.turn++
	all := l.Messages(append(l.list[:0], limit.Message{}), now)
	kept := all[:1]
	for _, m := range all[1:] {
		if !m.Idle || l.turn%idleTurns == 1 {
			kept = append(kept, m)
		}
	}
	l.list = all[:0]
	if len(all) == 1 { // no key has limits
		return nil
	}
	return kept
}

// note logs when Redis is lost, and when it is back.
func (l *Ledger) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		if l.lost.Swap(false) {
			l.log.Info("the limits of keys are shared again", "addr", l.c.Addr)
		}
	case !l.lost.Swap(true):
		l.log.Warn("the limits of keys are not shared, as Redis does not answer: this router gives out an equal part of"+
			" each", "addr", l.c.Addr, "error", err, "remedy", goredis.Remedy(err))
	}
}
