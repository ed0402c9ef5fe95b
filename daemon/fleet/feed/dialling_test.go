package feed

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// A worker that connects again and again is refused until its connections are older than takeoverTime. Of workers that
// are gone nothing is kept.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Listener{taken: map[string][]time.Time{}}
		for i := range 100 {
			if d.crowded(fmt.Sprint("pod-", i)) {
				t.Error("a first connection is refused")
			}
		}
		for i := range takeovers + 2 {
			if got, want := d.crowded("a"), i >= takeovers; got != want {
				t.Errorf("connection %d: refused %v; want %v", i, got, want)
			}
		}
		time.Sleep(takeoverTime + 1)
		if d.crowded("a") {
			t.Error("a connection after takeoverTime is refused")
		}
		if len(d.taken) != 1 {
			t.Errorf("%d workers are kept; want 1", len(d.taken))
		}
	})
}

// The blocks of a worker that dialled and has gone count as held for another minute, and are in the index no longer.
func TestConnectionThatEnded(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	d := openAt(t, "tcp://127.0.0.1:0", logger)
	stats := []worker.Stats{{ID: "a", Endpoint: "a", Ranks: 1}}
	f := New(Config{Index: holdings.New(holdings.Config{}), Log: logger, Listener: d,
		Workers: func(time.Time) []worker.Stats { return stats }})
	t.Cleanup(f.Close)
	c, err := zmtp.Dial(t.Context(), d.Addr(), zmtp.Config{Kind: zmtp.PUB})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Recv(); err != nil { // the subscription
		t.Fatal(err)
	}
	if err := c.Send([]byte("kv@a@m"), make([]byte, 8), storedBlocks(1, 2)); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the batch", func() bool { e, _ := f.Of("a"); return e.Live && e.Held.Blocks == 2 })
	c.Close()
	waittest.Until(t, "the end of the connection", func() bool { e, _ := f.Of("a"); return e.State == kvevents.Lost })
	f.Tick(time.Now().Add(forgetAfter / 2))
	if e, _ := f.Of("a"); e.Held.Blocks != 2 || e.Live {
		t.Errorf("half a minute later: %+v", e)
	}
	waittest.Until(t, "the end of the source", func() bool {
		f.Tick(time.Now().Add(2 * forgetAfter))
		e, ok := f.Of("a")
		return ok && e.Held.Blocks == 0
	})
	f.Tick(time.Now().Add(3 * forgetAfter))
	if e, _ := f.Of("a"); e.State != kvevents.Lost || e.Held.Clears != 1 {
		t.Errorf("later: %s, %d clears; want %s and one", e.State, e.Held.Clears, kvevents.Lost)
	}
}

// TestFind is the table of who a publisher is, by its topic and its address.
func TestFind(t *testing.T) {
	stats := []worker.Stats{{ID: "a", Endpoint: "a", URL: "http://10.0.0.1:8000"}, {ID: "b", Endpoint: "b", URL: "http://10.0.0.1:8001"},
		{ID: "c", Endpoint: "c", URL: "http://10.0.0.2:8000"}, {ID: "d", Endpoint: "d", URL: "http://[fd00::1]:8000"},
		{ID: "e#0", Endpoint: "e", URL: "http://gpu-5:8000"}, {ID: "e#1", Endpoint: "e", URL: "http://gpu-5:8000", Rank: 1},
		{ID: "f", Endpoint: "f", URL: "http://10.0.0.6"}, {ID: "g", Endpoint: "g", URL: "http://10.0.0.7:8000/models/one"}}
	feed := &Feed{config: Config{Workers: func(time.Time) []worker.Stats { return stats }}}
	d := &Listener{feeds: []*Feed{feed}}
	f := func(topic, from string, rank int, want string) {
		t.Helper()
		_, w := d.find(topic, zmtp.Address{Addr: from}, rank)
		got := ""
		if w != nil {
			got = w.ID
		}
		if got != want {
			t.Errorf("%q of rank %d from %s: %q; want %q", topic, rank, from, got, want)
		}
	}
	f("kv@a@m", "10.9.9.9:1", 0, "a")
	f("kv@10.0.0.1:8000@m", "10.0.0.1:1", 0, "a")
	f("kv@10.0.0.1:8001@m", "10.9.9.9:1", 0, "b")
	f("kv@http://10.0.0.1:8001@m", "10.0.0.1:1", 0, "b")
	f("kv@http://10.0.0.1:8001/@m", "10.0.0.1:1", 0, "b")
	f("kv@[::ffff:10.0.0.1]:8001@m", "10.0.0.1:1", 0, "b")
	f("kv@[::ffff:a00:1]:8001@m", "10.0.0.1:1", 0, "b")
	f("kv@[fd00::1]:8000@m", "10.9.9.9:1", 0, "d")
	f("kv@[FD00:0::1]:8000@m", "10.9.9.9:1", 0, "d")
	f("kv@GPU-5:8000@m", "10.9.9.9:1", 1, "e#1")
	f("kv@10.0.0.6:80@m", "10.9.9.9:1", 0, "f")
	f("kv@10.0.0.7:8000@m", "10.9.9.9:1", 0, "g")
	f("kv@10.0.0.1:8002@m", "10.0.0.1:1", 0, "") // two workers there, and none of that port
	f("kv@10.0.0.2:9000@m", "10.0.0.2:1", 0, "c")
	f("free text", "10.0.0.2:1", 0, "c")
	f("kv-events", "[::ffff:10.0.0.2]:1", 0, "c") // as a listener of both families names it
	f("", "10.0.0.1:1", 0, "")
	stats = append(stats, worker.Stats{ID: "twin", Endpoint: "twin", URL: "http://10.0.0.2:8000"})
	f("kv@10.0.0.2:8000@m", "10.0.0.2:1", 0, "") // two pools have it under two names
	f("kv@10.0.0.2:8000@m", "10.0.0.6:1", 0, "")
}

// FuzzPlaceAt: any text is read, and what comes of it is read as itself.
func FuzzPlaceAt(f *testing.F) {
	for _, s := range []string{"10.0.0.1:80", "http://[::1]:8", "https://u:p@h", "[::ffff:1.2.3.4]:5", ":", "[", "http://"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if at := placeAt(text); at != "" && placeAt(at) != at {
			t.Errorf("%q: %q, then %q", text, at, placeAt(at))
		}
	})
}
