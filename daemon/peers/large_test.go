package peers

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// stream is the stream of the pool "p" of the routers that open starts.
const stream = "{w}/history/p"

// open starts a router with a pool of two workers, which runs until the test ends.
func open(t *testing.T, redis *redistest.Server, name string) *Peers {
	t.Helper()
	p := prepare(t, redis, name, slog.New(slog.DiscardHandler), "p")
	runUntil(t, p)
	return p
}

// prepare makes a router that does not run yet.
func prepare(t *testing.T, redis *redistest.Server, name string, log *slog.Logger, pools ...string) *Peers {
	t.Helper()
	p, err := Open(Config{Redis: redis.URL(), Prefix: "w/", Name: name, StreamBytes: 16 << 20, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		p.Join(pool, newPool(t, &clock{began}, 2, 1<<16))
	}
	return p
}

func runUntil(t *testing.T, p *Peers) (stop func()) {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { p.Run(ctx); close(ended) }()
	stop = func() { end(); <-ended }
	t.Cleanup(stop)
	return stop
}

// client returns a client of the library.
func client(t *testing.T, server *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket(), WriteTimeout: time.Minute, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	return c
}

// foreign adds an entry of that many bytes to the stream.
func foreign(t *testing.T, c *redis.Client, bytes int) {
	t.Helper()
	add := redis.XAddArgs{Stream: stream, Values: []any{"f", strings.Repeat("x", bytes)}}
	if err := c.XAdd(context.Background(), &add).Err(); err != nil {
		t.Fatal(err)
	}
}

// holds makes the router's first pool report that w0 holds a chain, and ends the request.
func holds(p *Peers, hash uint64) {
	to, now := p.list()[0].sender, time.Now()
	id := to.Sent(&route.Sent{Worker: worker.KeyOf("w0"), Space: 9, Est: .1, Tokens: 64, Block: 32},
		[]prompt.Chain{{Hashes: []uint64{hash}}}, now)
	to.Ended(id, now)
}

// blocks returns how many blocks w0 holds by the router's books.
func blocks(p *Peers) int {
	pool := p.list()[0].pool
	return pool.Index.Worker(pool.Workers.Stats(time.Now())[0].Slot).Blocks
}

// TestEntriesTooLarge: an entry that is larger than any reply, or several that are so together, keep no router from the
// messages around them, whether the router starts then or runs.
func TestEntriesTooLarge(t *testing.T) {
	t.Parallel()
	f := func(name string, count, bytes, known int) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			c := client(t, server)
			first := open(t, server, "first")
			told := func(n int) {
				t.Helper()
				holds(first, uint64(n))
				waittest.Until(t, "it is in the stream", func() bool {
					m := first.list()[0]
					return !m.sender.hasQueued() && m.sender.Stats().Waiting == 0
				})
			}
			told(1)
			for range count {
				foreign(t, c, bytes)
			}
			told(2)
			second := open(t, server, "second")
			waittest.Until(t, "a router that starts knows what was sent", func() bool { return blocks(second) == known })
			for range count {
				foreign(t, c, bytes)
			}
			told(3)
			waittest.Until(t, "a router that runs receives what is sent after", func() bool { return blocks(second) == known+1 })
			if s := second.list()[0].receiver.Stats(); s.Foreign < 1 || s.Gaps+s.Unlinked > 0 {
				t.Errorf("%+v; want foreign entries, and nothing lost", s)
			}
		})
	}
	f("one", 1, maxReply+1<<20, 2)
	f("many", readCount, 2*maxReply/readCount, 1) // with minReplay of these, a router reads no further back
}
