package peers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// mortal is a router that sends one record for a pool of p, a request in flight, and dies.
func mortal(t *testing.T, p *Peers, c *redis.Client, self uint64) (died time.Time) {
	t.Helper()
	sender, _ := NewPair(p.list()[0].pool, self)
	died = time.Now()
	sender.Sent(&route.Sent{Worker: worker.KeyOf("w0"), Space: 9, Tokens: 64, Block: 32}, nil, died)
	for _, frame := range sender.Take(1<<20, died) {
		add := redis.XAddArgs{Stream: stream, Values: []any{"f", frame}}
		if err := c.XAdd(context.Background(), &add).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return died
}

// TestLeaseEndsInTime: 3 s after a router's death none of its requests counts as in flight. Many deaths at once make
// one log line.
func TestLeaseEndsInTime(t *testing.T) {
	t.Parallel()
	b := redistest.Start(t)
	var lines logtest.Log
	p := prepare(t, b, "one", slog.New(slog.NewJSONHandler(&lines, nil)), "p")
	runUntil(t, p)
	c := client(t, b)
	waittest.Until(t, "it has replayed", func() bool { return !p.anyReplayPending() })
	open := func() int { return p.list()[0].receiver.Stats().Open }
	self := uint64(100)
	waittest.AtBest(t, "the longest of four leases", Lease+beatEvery/5, func() (longest time.Duration) {
		for range 4 { // beats, which check the leases too, are a second apart
			self++
			died := mortal(t, p, c, self)
			waittest.Until(t, "the request is received", func() bool { return open() == 1 })
			waittest.Until(t, "and no longer counted", func() bool { return open() == 0 })
			took := time.Since(died)
			// An entry's time is in whole milliseconds of Redis's clock, which the router estimates.
			if took < Lease-5*time.Millisecond {
				t.Errorf("router %d: after %v; want %v", self, took, Lease)
			}
			longest = max(longest, took)
			time.Sleep(beatEvery / 4)
		}
		return longest
	})
	before := lines.Count("routers are gone")
	for i := range uint64(200) {
		mortal(t, p, c, 1000+i)
	}
	waittest.Until(t, "all are received", func() bool { return open() == 200 })
	waittest.Until(t, "and gone", func() bool { return open() == 0 })
	if n := lines.Count("routers are gone") - before; n > 20 {
		t.Errorf("%d lines of 200 routers", n)
	}
}

// TestLeasesWhileRedisIsLost: routers that were silent because Redis was lost do not count as gone, but their requests
// in flight end. One that died meanwhile is gone a Lease after Redis is back.
func TestLeasesWhileRedisIsLost(t *testing.T) {
	t.Parallel()
	f := func(name string, breaks, mends func(b *redistest.Server)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := redistest.Start(t)
			var lines logtest.Log
			p := prepare(t, b, "one", slog.New(slog.NewJSONHandler(&lines, nil)), "p")
			runUntil(t, p)
			open(t, b, "two")
			waittest.Until(t, "it receives from the other one", func() bool { return alive(p, 0) == 1 })
			mortal(t, p, client(t, b), 100)
			flights := func() int { return p.list()[0].receiver.Stats().Open }
			waittest.Until(t, "a request is in flight", func() bool { return flights() == 1 })
			breaks(b)
			waittest.Until(t, "Redis is lost", func() bool { return !p.Stats().Connected })
			waittest.Until(t, "the request is no longer counted", func() bool { return flights() == 0 })
			time.Sleep(beatEvery / 2)
			mends(b)
			back := func() bool { return len(lines.With(t, "msg", saysBack)) == 1 }
			waittest.Until(t, "Redis is back", back)
			waittest.Until(t, "the dead router is gone", func() bool { return lines.Count("routers are gone") == 1 })
			gone := lines.With(t, "routers", "0000000000000064")
			if len(gone) != 1 || alive(p, 0) != 1 || !back() {
				t.Errorf("%d alive; want one, and a line that the other is gone:\n%s", alive(p, 0), lines.String())
			}
		})
	}
	f("stopped", func(b *redistest.Server) { b.Signal(syscall.SIGSTOP) }, func(b *redistest.Server) { b.Signal(syscall.SIGCONT) })
	f("read-only", func(b *redistest.Server) { b.Do("REPLICAOF 127.0.0.1 1") }, func(b *redistest.Server) { b.Do("REPLICAOF NO ONE") })
}

// TestManyDeadRouters: however many routers have sent messages in the past, a starting router accepts those that live.
func TestManyDeadRouters(t *testing.T) {
	c := &clock{began.Add(time.Second)}
	_, h := NewPair(newPool(t, c, 3, 1<<20), 1)
	tell := func(self uint64) error {
		sender, _ := NewPair(h.pool, self)
		sender.Sent(&route.Sent{Worker: worker.KeyOf("w1"), Tokens: 1}, nil, c.now)
		return h.Apply(sender.Take(1<<20, c.now)[0], c.now, c.now)
	}
	h.BeginReplay()
	for i := range uint64(2 * maxPeers) {
		if err := tell(10 + i); err != nil {
			t.Fatalf("router %d of the past: %v", i, err)
		}
		c.pass(time.Second)
	}
	h.EndReplay(c.now)
	names := func() (all []string) {
		for _, r := range h.Routers(c.now) {
			all = append(all, r.ID)
		}
		return all
	}
	if all := names(); len(all) != maxPeers || !slices.ContainsFunc(all, func(id string) bool { return strings.HasSuffix(id, "0209") }) {
		t.Errorf("%d routers are known, the last of the past not among them: %v", len(all), all)
	}
	for i := range uint64(maxPeers - 3) { // three of the past may live
		if err := tell(5000 + i); err != nil {
			t.Fatalf("router %d that lives: %v", i, err)
		}
	}
	for i := range uint64(2 * maxPeers) {
		if err := tell(9000 + i); err != nil {
			if i > 3 || !errors.Is(err, errMany) {
				t.Errorf("router %d too many: %v", i, err)
			}
			return
		}
	}
	t.Errorf("more than %d routers that live are accepted", maxPeers)
}
