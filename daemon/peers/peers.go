package peers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/goredis"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Config states how routers find each other.
type Config struct {
	Redis       string      // URL
	TLS         *tls.Config // of rediss://: its RootCAs and GetClientCertificate; nil = the system's authorities
	Prefix      string      // of its keys
	Secret      string      // that the routers share; "" = the first router makes one in Redis
	Name        string      // of this router, for people
	StreamBytes int         // of a pool's history that Redis keeps, roughly
	Log         *slog.Logger
}

// Peers shares the history of this router's pools with other routers through Redis. Safe for concurrent use.
type Peers struct {
	conf       Config
	link       *link
	log        *slog.Logger
	queued     chan struct{} // a record was queued while runExchanges waited for one
	health     health
	began      time.Time
	due        atomic.Int64 // nanoseconds since began: a record queued from then on is announced
	leaseTimer *time.Timer  // fires when a lease ends

	mu      sync.Mutex // guards members, offered
	members []*Member
	offered string // what this router would store as the secret in Redis; "" = it is configured

	secret atomic.Pointer[route.Secret]
	mark   atomic.Uint64 // of the secret
}

// Open connects to Redis and takes over the secret stored there, if Redis answers within a second. Peers sends and
// applies no message before Run.
func Open(c Config) (*Peers, error) {
	l, err := newLink(c.Redis, c.TLS, c.Prefix, newID())
	if err != nil {
		return nil, err
	}
	p := &Peers{conf: c, link: l, log: c.Log, queued: make(chan struct{}, 1), began: time.Now(),
		leaseTimer: time.NewTimer(Lease)}
	p.health.log, p.health.addr = c.Log, l.addr
	text := c.Secret
	if text == "" {
		p.offered = rand.Text() + rand.Text()
		text = p.offered
	}
	p.setSecret(text)
	if err := p.syncSecret(context.Background()); err != nil {
		p.health.fail(err, time.Now())
	}
	return p, nil
}

// newID returns a number that no other router uses.
func newID() uint64 {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return binary.LittleEndian.Uint64(id[:])
}

// joined is a pool that a router shares with others.
type joined struct {
	*Peers
	pool *route.Pool
}

func (j joined) session(s Session)   { j.pool.Sessions.Hear(s.Kind, s.Key, s.Value, s.Life) }
func (j joined) fingerprint() uint64 { return j.mark.Load() }

// Secret returns the secret from which the namespaces' seeds are made. It changes if Redis was away at the start and
// turns out to hold another secret.
func (p *Peers) Secret() route.Secret { return *p.secret.Load() }

func (p *Peers) setSecret(text string) {
	s := route.Secret(sha256.Sum256([]byte("warmpath history " + text)))
	p.secret.Store(&s)
	p.mark.Store(s.Fingerprint())
}

// syncSecret reads the secret and the time from Redis. If the secret is another one, syncSecret drops all history: its
// hashes mean nothing to any other router. If Redis has lost its data, syncSecret queues the newest frames again.
func (p *Peers) syncSecret(ctx context.Context) error {
	p.mu.Lock()
	offered := p.offered
	p.mu.Unlock()
	stands, forgot, err := p.link.secretIs(ctx, offered)
	if forgot {
		for _, m := range p.list() {
			m.sender.requeue()
		}
	}
	if err != nil || stands == "" || stands == offered {
		return err
	}
	p.setSecret(stands)
	p.mu.Lock()
	p.offered = stands // syncSecret stores it again in a Redis that was flushed
	p.mu.Unlock()
	for _, m := range p.list() {
		p.log.Info("history: Redis has a secret of other routers: this one's own history is forgotten", "pool", m.name)
		m.pool.SetSecret(p.Secret())
		m.sender.dropFrames()
		m.replayAgain() // the messages read until now were refused
	}
	return nil
}

func (p *Peers) list() []*Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.members)
}

// Join shares a pool's history and the changes of its sessions with the other routers until leave is called. A nil
// Peers shares nothing. Each Join has a sender's id of its own: a pool that a reload removes and another one adds again
// numbers its frames from 1, and knows nothing of the earlier frames.
func (p *Peers) Join(name string, pool *route.Pool) (leave func()) {
	if p == nil {
		return func() {}
	}
	m := &Member{name: name, stream: p.link.stream(name), pool: pool}
	m.chains, m.sender, m.receiver = newPair(pool, newID(), joined{Peers: p, pool: pool})
	pool.Sessions.Tell(func(kind byte, key string, value []byte, life time.Duration) {
		m.sender.QueueSession(Session{Kind: kind, Key: key, Value: value, Life: life}, time.Now())
	})
	pool.SetSecret(p.Secret())
	pool.Tell(m.sender)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = append(p.members, m)
	return func() { p.leave(m) }
}

// leave ends the sharing of a pool's history.
func (p *Peers) leave(m *Member) {
	m.pool.Tell(nil)
	m.pool.Sessions.Tell(nil)
	m.pool.Workers.Share(0, nil, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = slices.DeleteFunc(p.members, func(o *Member) bool { return o == m })
}

// Run exchanges messages with the other routers until ctx ends, and then sends a last beat with the bye flag. A nil
// Peers returns at once.
func (p *Peers) Run(ctx context.Context) {
	if p == nil {
		return
	}
	p.runExchanges(ctx)
	if p.health.ok() {
		now := time.Now()
		for _, m := range p.list() {
			m.queueBeat(p.conf.Name, beatBye, now)
		}
		p.flush(context.Background())
	}
	_ = p.link.close()
}

// beat sends a heartbeat for each pool, with what this router wants of the others, if Redis is there.
func (p *Peers) beat(ctx context.Context) {
	now := time.Now()
	if err := p.syncSecret(ctx); err != nil {
		if ctx.Err() == nil {
			p.health.fail(err, now)
			p.expire(now)
		}
		return
	}
	p.retry(ctx)
	now = time.Now()
	if p.health.ok() {
		for _, m := range p.list() {
			m.tend(p.conf.Name, now)
			m.logDifferences(p.log, now)
		}
	}
	p.expire(now)
}

// retry sends again what Redis refused, or what could not be sent while Redis was lost. Redis counts as back once it
// takes some of it.
func (p *Peers) retry(ctx context.Context) {
	lost, all := !p.health.ok(), p.list()
	back := len(all) == 0
	for _, m := range all {
		writes, reads := m.refused()
		if (lost || writes) && p.sendAgain(ctx, m) {
			back = true
		}
		if reads && p.link.readable(ctx, m.stream) == nil {
			m.clearReadRefused()
			p.log.Info("history: the messages of other routers about a pool are read again", "pool", m.name)
		}
	}
	if !lost || !back {
		return
	}
	if since, was := p.health.good(time.Now()); was {
		p.log.Info("history: Redis is back: routers receive from each other again", "addr", p.link.addr,
			"after", since.Round(time.Millisecond), "messages_kept", p.waiting())
	}
}

// sendAgain sends what waits for a pool's stream, and before it the newest frames that the stream took: Redis may have
// been replaced, or may have returned to an older state. It reports whether Redis took any of it.
func (p *Peers) sendAgain(ctx context.Context, m *Member) bool {
	t := transfer{at: time.Now()}
	m.sender.requeue()
	m.queueBeat(p.conf.Name, 0, t.at) // so that there is something to send
	t.add(m, p.conf.StreamBytes)
	x := p.link.exchange(ctx, t.batches, nil, nil)
	sent, _ := p.applyReply(ctx, &t, &x)
	if sent > 0 {
		m.sender.QueueOpen(t.at) // the others have ended this router's requests in flight
	}
	return sent > 0
}

// expire ends the requests in flight of routers whose lease is over, and sets the timer for the next lease that ends.
func (p *Peers) expire(now time.Time) {
	var first time.Time
	steady := p.health.steady(now)
	for _, m := range p.list() {
		lost, next := m.receiver.Expire(m.readUntil(), now, steady)
		if len(lost) > 0 {
			p.log.Warn("history: routers are gone: their requests in flight are no longer counted", "pool", m.name,
				"count", len(lost), "routers", strings.Join(lost[:min(len(lost), maxNames)], ", "))
		}
		if !next.IsZero() && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	if !first.IsZero() {
		p.leaseTimer.Reset(max(first.Sub(now), exchangeEvery))
	}
}

// Stats describes the messages sent and applied so far. A nil Peers shares nothing.
func (p *Peers) Stats() Stats {
	s := Stats{Pools: []PoolStats{}}
	if p == nil {
		return s
	}
	s.On = true
	h := &p.health
	h.mu.Lock()
	s.Connected, s.Since, s.Losses = h.since.IsZero(), h.since, h.lost
	if h.err != nil && !s.Connected {
		s.Err = h.err.Error() + "; " + goredis.Remedy(h.err)
	}
	h.mu.Unlock()
	now := time.Now()
	for _, m := range p.list() {
		m.mu.Lock()
		progress := m.progress
		m.mu.Unlock()
		sent, received := m.sender.Stats(), m.receiver.Stats()
		s.Pools = append(s.Pools, PoolStats{Name: m.name, Routers: m.receiver.Routers(now), Told: sent.Traffic,
			Heard: received.Traffic, Replay: progress, Dropped: dropped(&sent, &received), Waiting: sent.Waiting,
			Received: received, Chains: m.chains.held()})
	}
	return s
}
