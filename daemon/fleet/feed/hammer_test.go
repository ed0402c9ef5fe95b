package feed

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestHammer: while workers come and go, their origins change and publishers dial in, each worker has one source or
// none; those that are left at the end have one of their own, and after Close nobody has.
func TestHammer(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	d := openAt(t, "tcp://127.0.0.1:0", quiet)
	var there atomic.Pointer[[]worker.Stats]
	fleet := func(from, n int) {
		list := make([]worker.Stats, n)
		for i := range list {
			id := fmt.Sprint("w", from+i)
			list[i] = worker.Stats{ID: id, Endpoint: id, Ranks: 1, Slot: uint32(from + i), Up: true}
		}
		there.Store(&list)
	}
	fleet(0, 4)
	f := New(Config{Index: holdings.New(holdings.Config{}), Log: quiet, Listener: d,
		Workers: func(time.Time) []worker.Stats { return slices.Clone(*there.Load()) }})
	t.Cleanup(f.Close)
	origins := func(n int) {
		all := map[string]Origin{}
		for i := range 8 {
			all[fmt.Sprint("w", i)] = Origin{URL: "http://127.0.0.1:1", Events: fmt.Sprint("tcp://127.0.0.1:", 1+n%2)}
		}
		f.Configure(all, nil)
	}
	origins(0)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 60 {
				switch (g + i) % 4 {
				case 0:
					fleet(i%4, 4)
				case 1:
					origins(i)
				case 2:
					f.Reset(fmt.Sprint("w", i%8))
				}
				f.Tick(time.Now())
				f.Of(fmt.Sprint("w", i%8))
			}
		})
	}
	all.Go(func() { dialInAgain(t, d.Addr()) })
	all.Wait()
	fleet(2, 3)
	origins(0)
	f.Tick(time.Now())
	f.mu.Lock()
	for id, s := range f.sources {
		if want := (place{events: "tcp://127.0.0.1:1"}); s.id != id || s.at != want {
			t.Errorf("%s has the source of %s at %v", id, s.id, s.at)
		}
	}
	if n := len(f.sources); n != 3 {
		t.Errorf("%d sources of 3 workers", n)
	}
	f.mu.Unlock()
	f.Close()
	f.Tick(time.Now())
	if _, ok := f.Of("w3"); ok || len(f.sources) != 0 {
		t.Errorf("%d sources after the end", len(f.sources))
	}
}

// dialInAgain publishes for w3, each time on another connection.
func dialInAgain(t *testing.T, addr string) {
	for range 15 {
		c, err := zmtp.Dial(t.Context(), addr, zmtp.Config{Kind: zmtp.PUB})
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Recv() // the subscription
		_ = c.Send([]byte("kv@w3@m"), make([]byte, 8), storedBlocks(1, 2))
		c.Close()
	}
}
