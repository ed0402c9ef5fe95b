package lmcache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/cache/zmtp"
)

// Config is where to listen and how the workers hash. An address is HOST:PORT; "" leaves the socket out.
type Config struct {
	Pull        string // the workers' controller_pull_url
	Reply       string // their controller_reply_url
	Heartbeat   string // sent to them when they register
	Advertise   string // host by which workers reach Heartbeat; "" = by which they reached Reply
	Coordinator string // HTTP of the multi-process servers, their --coordinator-url

	Hash      string            // pre_caching_hash_algorithm of the workers; "" or "auto" = found out
	ChunkSize int               // of the workers; 0 = found out
	Seed      uint32            // their PYTHONHASHSEED
	Instances map[string]string // lmcache_instance_id -> worker id, where they differ

	Limits Limits
	Log    *slog.Logger
	Bind   bind.Binder // nil = the system
}

// Algorithms lists what Config.Hash takes.
func Algorithms() []string { return append([]string{"auto"}, algorithmNames[:]...) }

// Controller is the controller and the coordinator. Its methods may be called side by side. A nil Controller is one
// that is not configured: it has no rosters and reports nothing.
type Controller struct {
	config Config
	fleet  *fleet
	learn  *learner
	log    *slog.Logger

	pull, reply, heartbeat *zmtp.Listener
	coordinator            *coordinator

	conns atomic.Uint64 // numbers the connections

	reading sync.Mutex // guards ops and keys
	ops     []operation
	keys    []uint64

	mu      sync.Mutex // guards rosters
	rosters []*Roster

	end     context.CancelFunc
	running sync.WaitGroup
}

// What a worker's connection may send. One frame holds a message; 50 of them come in one go.
const (
	maxFrame   = 8 << 20
	maxFrames  = 256
	maxPeers   = 4096
	maxHeld    = 4 * maxFrame // bytes of messages that are on their way or waiting, of all connections
	maxGarbage = 100          // frames that are not understood, before a connection is closed
	pingEvery  = 10 * time.Second

	firstMessage = 30 * time.Second // ZeroMQ dials anew by itself, and keeps what it has to send
)

// New binds all sockets and serves them at once: a worker whose registration is not answered within 30 s of its own
// start reports nothing until it is restarted.
func New(c Config) (*Controller, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	algorithms, err := algorithmsOf(c.Hash)
	if err != nil {
		return nil, err
	}
	if _, err := newHasher(Variant{Chunk: max(c.ChunkSize, 0)}); c.ChunkSize != 0 && err != nil {
		return nil, err
	}
	k := &Controller{config: c, log: c.Log, fleet: newFleet(c.Limits, c.Log),
		learn: newLearner(c.Seed, algorithms, c.ChunkSize)}
	k.fleet.seed = c.Seed
	ctx, end := context.WithCancel(context.Background())
	k.end = end
	if err := k.listen(ctx); err != nil {
		k.Close()
		return nil, err
	}
	k.running.Go(func() { k.tend(ctx) })
	pull, reply, heartbeat, coordinator := k.Addrs()
	k.log.Info("LMCache controller listening", "pull", pull, "reply", reply, "heartbeat", heartbeat,
		"coordinator", coordinator)
	return k, nil
}

func algorithmsOf(name string) ([]Algorithm, error) {
	if name == "" || name == "auto" {
		return nil, nil
	}
	n := slices.Index(algorithmNames[:], name)
	if n < 0 {
		return nil, fmt.Errorf("lmcache: hash %q; want one of %q, as pre_caching_hash_algorithm of the workers", name,
			Algorithms())
	}
	return []Algorithm{Algorithm(n)}, nil
}

func (k *Controller) listen(ctx context.Context) (err error) {
	held := quota.New(maxHeld)
	for _, l := range []struct {
		name, addr string
		kind       zmtp.Kind
		serve      func(*zmtp.Conn)
		into       **zmtp.Listener
	}{
		// heartbeat comes first, as reply gives its address to the workers.
		{name: "heartbeat", addr: k.config.Heartbeat, kind: zmtp.ROUTER, serve: k.answer, into: &k.heartbeat},
		{name: "reply", addr: k.config.Reply, kind: zmtp.ROUTER, serve: k.answer, into: &k.reply},
		{name: "pull", addr: k.config.Pull, kind: zmtp.PULL, serve: k.take, into: &k.pull},
	} {
		if l.addr == "" {
			continue
		}
		c := zmtp.Config{Kind: l.kind, MaxFrame: maxFrame, MaxMessage: 4 * maxFrame, MaxFrames: maxFrames, Peers: maxPeers,
			Heartbeat: pingEvery, First: firstMessage, Held: held, Refused: k.turnedAway, Bind: k.config.Bind}
		*l.into, err = zmtp.Listen(ctx, "tcp://"+l.addr, c, l.serve)
		if err != nil {
			*l.into = nil
			return fmt.Errorf("lmcache: %s = %q: %w", l.name, l.addr, err)
		}
	}
	if k.config.Coordinator != "" {
		k.coordinator, err = newCoordinator(k.config.Coordinator, k.config.Bind, k.fleet)
		if err != nil {
			return fmt.Errorf("lmcache: coordinator = %q: %w", k.config.Coordinator, err)
		}
	}
	return nil
}

// Addrs returns where the sockets are bound, "" for one that is not.
func (k *Controller) Addrs() (pull, reply, heartbeat, coordinator string) {
	of := func(l *zmtp.Listener) string {
		if l == nil {
			return ""
		}
		return l.Addr().Addr
	}
	if k.coordinator != nil {
		coordinator = k.coordinator.addr()
	}
	return of(k.pull), of(k.reply), of(k.heartbeat), coordinator
}

// Close ends all connections.
func (k *Controller) Close() {
	if k == nil {
		return
	}
	k.end()
	for _, l := range []*zmtp.Listener{k.pull, k.reply, k.heartbeat} {
		if l != nil {
			l.Close()
		}
	}
	if k.coordinator != nil {
		k.coordinator.close()
	}
	k.running.Wait()
}

// NewRoster returns a Roster for a pool. It is kept up to date until Drop.
func (k *Controller) NewRoster() *Roster {
	if k == nil {
		return nil
	}
	r := &Roster{fleet: k.fleet, learn: k.learn, names: k.config.Instances}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rosters = append(k.rosters, r)
	return r
}

// Drop ends the care for a roster.
func (k *Controller) Drop(r *Roster) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rosters = slices.DeleteFunc(k.rosters, func(o *Roster) bool { return o == r })
}

// tendEvery is the beat of what is tended. A new instance is understood, and has its worker, after this time at the
// latest.
const tendEvery = 200 * time.Millisecond

func (k *Controller) tend(ctx context.Context) {
	beat := time.NewTicker(tendEvery)
	defer beat.Stop()
	var p pupil
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		tick(k.fleet, time.Now())
		p.study(k.fleet, k.learn)
		k.mu.Lock()
		rosters := slices.Clone(k.rosters)
		k.mu.Unlock()
		for _, r := range rosters {
			r.refresh()
		}
	}
}

func (k *Controller) turnedAway(a zmtp.Address, err error) {
	k.fleet.refuse("peer "+hostOf(a), "a connection to the LMCache controller was turned away", "peer", a.String(),
		"error", err, "remedy", "only LMCache workers belong on these ports")
}

func hostOf(a zmtp.Address) string {
	host, _, err := net.SplitHostPort(a.Addr)
	if err != nil {
		return a.Addr
	}
	return host
}

// take serves a worker's PUSH socket: each frame is a message of its own, unanswered.
func (k *Controller) take(c *zmtp.Conn) {
	m := &message{from: hostOf(c.Peer().Address), conn: k.conns.Add(1)}
	k.fleet.plug(m.conn, m.from)
	defer k.fleet.unplug(m.conn)
	bad := 0
	for {
		frames, err := c.Recv()
		if err != nil {
			return
		}
		for _, f := range frames {
			if err := k.note(m, f); err != nil {
				bad++
				k.misunderstood(c, err)
				continue
			}
			c.Settle()
		}
		if bad > maxGarbage {
			return
		}
	}
}

var errUnknown = errors.New("an unknown type of message")

// read decodes one message and has use take it. One at a time: what it unfolds into is memory that all connections
// share, and the fleet has one lock in any case.
func (k *Controller) read(m *message, frame []byte, use func() error) error {
	k.reading.Lock()
	defer k.reading.Unlock()
	m.ops, m.keys = k.ops, k.keys
	defer func() {
		k.ops, k.keys = m.ops, m.keys
		m.ops, m.keys = nil, nil
	}()
	if err := m.decode(frame); err != nil {
		return err
	}
	return use()
}

// note takes one unanswered message.
func (k *Controller) note(m *message, frame []byte) error {
	return k.read(m, frame, func() error { return k.apply(m) })
}

func (k *Controller) apply(m *message) error {
	now := time.Now()
	switch m.kind {
	case register:
		return k.fleet.register(m, now)
	case heartbeat:
		_, err := k.fleet.beat(m, now)
		return err
	case deregister:
		k.fleet.deregister(m)
		return nil
	case operations, admit, evict, syncBatch, syncEnd:
		return k.fleet.report(m, now)
	}
	return fmt.Errorf("%w: %q", errUnknown, m.name)
}

// answer serves a worker's DEALER or REQ: an empty frame and a message in, the same out.
func (k *Controller) answer(c *zmtp.Conn) {
	m := &message{from: hostOf(c.Peer().Address)}
	bad := 0
	for {
		frames, err := c.Recv()
		if err != nil {
			return
		}
		reply, err := k.reckon(m, frames[len(frames)-1], c)
		if err != nil {
			k.misunderstood(c, err)
			reply = refused(err.Error())
			bad++
		} else {
			c.Settle()
		}
		if bad > maxGarbage {
			return
		}
		if len(frames) == 1 {
			err = c.Send(reply)
		} else {
			err = c.Send(nil, reply)
		}
		if err != nil {
			return
		}
	}
}

// reckon returns the answer to one request.
func (k *Controller) reckon(m *message, frame []byte, c *zmtp.Conn) (reply []byte, err error) {
	err = k.read(m, frame, func() (err error) {
		reply, err = k.replyTo(m, c)
		return err
	})
	return reply, err
}

func (k *Controller) replyTo(m *message, c *zmtp.Conn) ([]byte, error) {
	now := time.Now()
	switch m.kind {
	case register:
		return registered(k.heartbeatURL(c)), k.fleet.register(m, now)
	case heartbeat:
		reason, err := k.fleet.beat(m, now)
		return beaten(reason), err
	case syncStart:
		return started(m.sync, k.fleet.startSync(m, now)), nil
	case syncStatus:
		return k.fleet.syncProgress(m, now).answer(m.sync), nil
	case peerLookup:
		return k.fleet.locate(m).answer(), nil
	}
	return nil, fmt.Errorf("%w: %q", errUnknown, m.name)
}

// heartbeatURL returns where the worker on c reaches the heartbeat socket.
func (k *Controller) heartbeatURL(c *zmtp.Conn) string {
	if k.heartbeat == nil {
		return ""
	}
	_, port, err := net.SplitHostPort(k.heartbeat.Addr().Addr)
	if err != nil {
		return ""
	}
	host := k.config.Advertise
	if host == "" {
		host = hostOf(c.Local())
	}
	return net.JoinHostPort(host, port)
}

func (k *Controller) misunderstood(c *zmtp.Conn, err error) {
	a := c.Peer().Address
	k.fleet.refuse("message "+hostOf(a), "a message to the LMCache controller is dropped", "peer", a.String(),
		"error", err, "remedy", "LMCache 0.3.9 to 0.5.6 is understood; look whether the peer is an LMCache worker")
}
