package peers

import (
	"log/slog"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// TestFlushedWhileARouterStarts: after Redis has lost all data, a router that starts takes over the secret of the
// running routers, whoever stores one first. So their history stays valid.
func TestFlushedWhileARouterStarts(t *testing.T) {
	f := func(name string, loses func(b *redistest.Server)) {
		t.Run(name, func(t *testing.T) {
			b := redistest.Start(t)
			old := open(t, b, "old")
			holds(old, 1)
			eventually(t, "it is sent", func() bool { return old.list()[0].sender.Stats().Frames > 0 })
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
			eventually(t, "the late router has the secret of the old one", func() bool { return late.Secret() == before })
			eventually(t, "the late router receives from the old one", func() bool {
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
