package peers

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// TestFlushedWhileARouterStarts: after Redis has lost all data, a router that starts takes over the secret of the
// running routers, whoever stores one first. So their history stays valid.
func TestFlushedWhileARouterStarts(t *testing.T) {
	t.Parallel()
	f := func(name string, loses func(b *redistest.Server)) {
		t.Run(name, func(t *testing.T) {
			b := redistest.Start(t)
			old := open(t, b, "old")
			holds(old, 1)
			waittest.Until(t, "it is sent", func() bool { return old.list()[0].sender.Stats().Frames > 0 })
			pool := old.list()[0].pool
			slot := pool.Workers.Stats(time.Now())[0].Slot
			pool.Index.Space(9).TouchAgo(slot, []uint64{1, 3, 5}, 0)
			before := old.Secret()
			loses(b)
			late := prepare(t, b, "late", slog.New(slog.DiscardHandler), "p")
			if late.Secret() == before {
				t.Skip("the old router came first: this time there is nothing to see")
			}
			runUntil(t, late)
			waittest.Until(t, "the late router has the secret of the old one", func() bool { return late.Secret() == before })
			waittest.Until(t, "the late router receives from the old one", func() bool {
				all := late.list()[0].receiver.Routers(time.Now())
				return len(all) == 1 && all[0].Alive && !all[0].OtherSecret
			})
			if n := blocks(old); n != 3 || old.Secret() != before {
				t.Errorf("the old router knows %d blocks; want 3", n)
			}
		})
	}
	f("flushed", func(b *redistest.Server) { b.Do("FLUSHALL") })
	f("killed, and another takes over", func(b *redistest.Server) { b.Kill(); b.Start() })
}

// TestForeignSendersTakeNoPlaces: made-up senders of another secret or release keep no router out, and few of them are
// shown.
func TestForeignSendersTakeNoPlaces(t *testing.T) {
	now := time.Now()
	pool := newPool(t, &clock{now}, 2, 1<<16)
	secret := pool.Secret()
	mark := secret.Fingerprint()
	_, _, r := newPair(pool, 1, alone(mark))
	send := func(sender, mark uint64, version byte) error {
		var w writer
		w.begin(&head{version: version, text: prompt.TextVersion, mark: mark, sender: sender, number: 1}, now)
		return r.Apply(seal(append(w.b, byte(kindForgotten), 0, 0, 0, 0, 0, 0, 0, 0, 0), now, now, false), now, now)
	}
	for n := range uint64(2 * maxPeers) {
		if err := send(1000+n, mark+1, wireVersion); !errors.Is(err, errSecret) {
			t.Fatalf("another secret: %v", err)
		}
		if err := send(5000+n, mark, wireVersion+1); !errors.Is(err, errVersion) {
			t.Fatalf("another release: %v", err)
		}
	}
	if n := len(r.Routers(now)); n != maxForeign {
		t.Errorf("%d foreign routers are shown; want %d", n, maxForeign)
	}
	for n := range uint64(maxPeers) {
		if err := send(10_000+n, mark, wireVersion); err != nil {
			t.Errorf("router %d: %v", n, err)
		}
	}
}

// TestTheLastID: an entry with the last possible id, after which Redis takes no more, ends nothing for long: the stream
// begins anew, and all routers hear each other.
func TestTheLastID(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := open(t, server, "a"), open(t, server, "b")
	holds(a, 1)
	waittest.Until(t, "b hears a", func() bool { return blocks(b) == 1 })
	c := client(t, server)
	last := redis.XAddArgs{Stream: stream, ID: "18446744073709551615-18446744073709551615", Values: []any{"f", "x"}}
	if err := c.XAdd(context.Background(), &last).Err(); err != nil {
		t.Fatal(err)
	}
	holds(a, 2)
	holds(b, 3)
	waittest.Until(t, "both hear each other again", func() bool { return blocks(a) == 1 && blocks(b) == 2 })
	late := open(t, server, "late")
	holds(b, 4)
	waittest.Until(t, "a router that starts hears them", func() bool { return blocks(late) >= 1 })
}
