package feed

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// Listener takes workers that dial us. It serves the feeds of all pools.
type Listener struct {
	log   *slog.Logger
	ports *ports

	refusals seldom.Line

	mu    sync.Mutex // guards the rest
	feeds []*Feed
	taken map[string][]time.Time // when a worker connected lately, by its id
}

// Open listens at addr, tcp://HOST:PORT or ipc://PATH, until ctx ends. With no addr there is no Listener.
func Open(ctx context.Context, addr string, by bind.Binder, log *slog.Logger) (*Listener, error) {
	if addr == "" {
		return nil, nil
	}
	d := &Listener{log: log, taken: map[string][]time.Time{}}
	c := kvevents.SubscribeConfig()
	c.Bind = by
	c.First = firstMessage
	c.Refused = func(from zmtp.Address, err error) { d.refuse(from.String(), err.Error()) }
	d.ports = &ports{ctx: ctx, base: addr, config: c, to: d, log: log, listeners: map[int]*zmtp.Listener{}}
	l, err := d.ports.open()
	if err != nil {
		return nil, fmt.Errorf("daemon: cannot listen for KV events; change server.kv_events_listen or free the port: %w",
			err)
	}
	log.Info("listening for the KV events of workers", "address", l.Addr().String())
	return d, nil
}

// firstMessage is how long a publisher may take to say who it is. An engine that has nothing to say for longer dials
// anew by itself: ZeroMQ queues what it publishes meanwhile.
const firstMessage = 30 * time.Second

// Addr returns the address at which d listens for rank 0.
func (d *Listener) Addr() string { return d.ports.addr() }

// Close ends all connections. A nil Listener has none.
func (d *Listener) Close() {
	if d != nil {
		d.ports.close()
	}
}

func (d *Listener) add(f *Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.feeds = append(d.feeds, f)
}

func (d *Listener) remove(f *Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.feeds = slices.DeleteFunc(d.feeds, func(x *Feed) bool { return x == f })
}

// refuse logs a refused peer, at most every ten seconds.
func (d *Listener) refuse(from, why string) {
	if d.refusals.Due(time.Now(), 10*time.Second) {
		d.log.Warn("a publisher of KV events is refused", "from", from, "why", why)
	}
}

// serve follows one publisher once its first message has named it. rank is that of the port that it dialled.
func (d *Listener) serve(c *zmtp.Conn, rank int) {
	first, err := c.Recv()
	if err != nil {
		return
	}
	from := c.Peer().Address
	if len(first) < 3 || len(first[1]) != 8 {
		d.refuse(from.String(), "its first message is no KV event")
		return
	}
	if r, said := rankIn(first[2]); said {
		rank = r
	}
	f, w := d.find(string(first[0]), from, rank)
	if w == nil {
		d.refuse(from.String(), fmt.Sprintf("topic %q of rank %d names no worker, nor does its address: set topic in "+
			`--kv-events-config to "kv@<worker id>@<model>"`, first[0], rank))
		return
	}
	c.Settle()
	if d.crowded(w.ID) {
		f.doubtTwo(w.ID)
		d.refuse(from.String(), fmt.Sprintf("%s %s: give each worker its own topic", doubtTwo, w.ID))
		return
	}
	f.serve(w, c, first)
}

// rankIn reads the data-parallel rank off a payload, if it has one.
func rankIn(payload []byte) (rank int, said bool) {
	b, _ := new(kvevents.Decoder).Decode(payload, nowhere{})
	return b.Rank, b.HasRank
}

// nowhere is a sink for callers that want the batch alone.
type nowhere struct{}

func (nowhere) Store(*blocks.Stored)           {}
func (nowhere) Remove(blocks.Medium, []uint64) {}
func (nowhere) Clear()                         {}

// find returns the worker that a publisher is, and its feed: by its id, else by the host and port that the topic names,
// else by the address that it dials from, if that is one worker's alone.
func (d *Listener) find(topic string, from zmtp.Address, rank int) (*Feed, *worker.Stats) {
	d.mu.Lock()
	feeds := slices.Clone(d.feeds)
	d.mu.Unlock()
	now := time.Now()
	name := named(topic)
	ip, _, _ := net.SplitHostPort(from.Addr)
	ip = plainHost(ip)
	at := placeAt(name)
	var byName, byAddress *worker.Stats
	var its, itsFeed *Feed
	same, others := 0, 0
	for _, f := range feeds {
		for _, w := range f.config.Workers(now) {
			if w.ID == name || w.Endpoint == name && w.Rank == rank {
				return f, &w
			}
			if w.Rank == rank && at != "" && placeAt(w.URL) == at {
				if byName == nil || byName.ID != w.ID { // two pools may have it under one name
					same++
				}
				byName, its = &w, f
			}
			if w.Rank == rank && ip != "" && plainHost(hostOf(w.URL)) == ip {
				byAddress = &w
				itsFeed = f
				others++
			}
		}
	}
	switch {
	case same == 1:
		return its, byName
	case others == 1 && same == 0:
		return itsFeed, byAddress
	}
	return nil, nil
}

// Two publishers under one name take the place of each other again and again, as ZeroMQ reconnects. A worker that
// restarts does so once.
const (
	takeovers    = 5
	takeoverTime = time.Minute
)

// crowded counts a connection of a worker and reports whether there were too many. It deletes a worker that has made
// none for takeoverTime: each pod of a rollout has an id of its own.
func (d *Listener) crowded(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for of, times := range d.taken {
		times = slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) > takeoverTime })
		d.taken[of] = times
		if len(times) == 0 {
			delete(d.taken, of)
		}
	}
	if len(d.taken[id]) >= takeovers {
		return true
	}
	d.taken[id] = append(d.taken[id], now)
	return false
}

// serve follows the events of a worker that dialled us, in place of those of its connection before.
func (f *Feed) serve(w *worker.Stats, c *zmtp.Conn, first [][]byte) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	if f.sources[w.ID] != nil {
		f.drop(w.ID, false)
	}
	o := f.origins[w.Endpoint]
	replay, _ := Address(o.Replay, o.URL, w.Rank)
	s := f.begin(w, place{replay: replay})
	frames := slices.Clone(first)
	for i := range frames {
		frames[i] = slices.Clone(frames[i])
	}
	s.run(f.life, func(ctx context.Context) { s.sub.Serve(ctx, c, frames) })
	f.mu.Unlock()
	<-s.done
}

// If two publishers claim to be one worker, doubtTwo keeps its view out of the rows until no publisher was refused
// for takeoverTime.
func (f *Feed) doubtTwo(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sources[id]
	if s == nil {
		return
	}
	s.contested = time.Now()
	if s.entry.doubted(doubtTwo) {
		s.log.Warn("the worker's KV events are not believed: it is chosen by routed history", "why", doubtTwo,
			"remedy", `give each worker its own topic in --kv-events-config: "kv@<worker id>@<model>"`)
	}
}
