package feed

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/lab/zmqpub"
)

// fleet is a feed of two workers, of which the first publishes.
func fleet(t *testing.T, topic string) (f *Feed, publish func(), answer func(n uint64), log *bytes.Buffer) {
	t.Helper()
	p := zmqpub.New(zmtp.Config{}, 100)
	l, err := p.Listen(t.Context(), "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	log = new(bytes.Buffer)
	stats := []worker.Stats{{ID: "a", Endpoint: "a", Slot: 0, Ranks: 1}, {ID: "b", Endpoint: "b", Slot: 1, Ranks: 1}}
	f = New(Config{Index: holdings.New(holdings.Config{}), Log: slog.New(slog.NewTextHandler(log, nil)),
		Workers: func(time.Time) []worker.Stats { return stats }})
	t.Cleanup(f.Close)
	f.Configure(map[string]Origin{"a": {URL: "http://127.0.0.1:1", Events: l.Addr().String()}}, nil)
	f.Tick(time.Now())
	waittest.Until(t, "the subscription", func() bool {
		e, _ := f.Of("a")
		return e.Connected && p.Subscribers(topic) == 1
	})
	seq := byte(0)
	return f, func() {
		p.Publish([]byte(topic), []byte{0, 0, 0, 0, 0, 0, 0, seq}, storedBlocks(int(seq), 2))
		seq++
	}, func(n uint64) { stats[0].Answered += n }, log
}

// A worker that serves and publishes nothing is not believed, with one line, until it does.
func TestSilentWorker(t *testing.T) {
	f, publish, answer, log := fleet(t, "kv@a@m")
	answer(silentAnswers)
	f.Tick(time.Now())
	if e, _ := f.Of("a"); e.Doubt != "" {
		t.Errorf("after a moment it is doubted: %s", e.Doubt)
	}
	for range 3 {
		f.Tick(time.Now().Add(silentTime))
	}
	if e, _ := f.Of("a"); e.Doubt != doubtSilent {
		t.Errorf("doubt %q; want %q", e.Doubt, doubtSilent)
	}
	publish()
	waittest.Until(t, "an event", func() bool { e, _ := f.Of("a"); return e.Batches == 1 })
	f.Tick(time.Now().Add(silentTime))
	if e, _ := f.Of("a"); e.Doubt != "" || !e.Live || e.Held.Blocks != 2 {
		t.Errorf("after an event: %+v", e)
	}
	if _, ok := f.Of("b"); ok {
		t.Error("a worker without kv_events has some")
	}
	f.Close()
	if n := strings.Count(log.String(), "check enable_kv_cache_events"); n != 1 {
		t.Errorf("%d lines; want 1:\n%s", n, log)
	}
}

// Events under another worker's name are not believed.
func TestTopicNamesAnother(t *testing.T) {
	f, publish, _, log := fleet(t, "kv@b@m")
	publish()
	waittest.Until(t, "an event", func() bool { e, _ := f.Of("a"); return e.Batches == 1 && e.Topic != "" })
	f.Tick(time.Now())
	if e, _ := f.Of("a"); e.Live || !strings.Contains(e.Doubt, `names worker "b"`) {
		t.Errorf("%+v", e)
	}
	f.Close()
	if n := strings.Count(log.String(), "two workers are mixed up"); n != 1 {
		t.Errorf("%d lines; want 1:\n%s", n, log)
	}
}

// Addresses that stay in a reload keep their source; one that goes takes its view along.
func TestReload(t *testing.T) {
	f, publish, _, _ := fleet(t, "pod-17")
	publish()
	waittest.Until(t, "an event", func() bool { e, _ := f.Of("a"); return e.Live && e.Held.Blocks == 2 })
	same := map[string]Origin{"a": f.origins["a"]}
	f.Configure(same, nil)
	f.Tick(time.Now())
	if e, _ := f.Of("a"); e.Connections != 1 || !e.Live || e.Held.Blocks != 2 {
		t.Errorf("a reload that changes nothing: %+v", e)
	}
	f.Configure(map[string]Origin{"a": {URL: "http://127.0.0.1:1", Events: "tcp://127.0.0.1:1"}}, nil)
	f.Tick(time.Now())
	if e, _ := f.Of("a"); e.Live || e.Held.Blocks != 0 || e.State != kvevents.Never {
		t.Errorf("another address: %+v", e)
	}
	f.Configure(nil, nil)
	f.Tick(time.Now())
	if _, ok := f.Of("a"); ok {
		t.Error("no address, and still a source")
	}
}

// Two publishers under one worker's name are refused. A worker that restarts is not.
func TestTwoUnderOneName(t *testing.T) {
	log := new(bytes.Buffer)
	logger := slog.New(slog.NewTextHandler(log, nil))
	d, err := Open(t.Context(), "tcp://127.0.0.1:0", nil, logger)
	if err != nil {
		t.Fatal(err)
	}
	stats := []worker.Stats{{ID: "a", Endpoint: "a", Ranks: 1}}
	f := New(Config{Index: holdings.New(holdings.Config{}), Log: logger, Listener: d,
		Workers: func(time.Time) []worker.Stats { return stats }})
	for range takeovers + 2 {
		c, err := zmtp.Dial(t.Context(), d.Addr(), zmtp.Config{Kind: zmtp.PUB})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Recv(); err != nil { // the subscription
			t.Fatal(err)
		}
		before, _ := f.Of("a")
		_ = c.Send([]byte("kv@a@m"), make([]byte, 8), storedBlocks(1, 2))
		waittest.Until(t, "the batch, or a refusal", func() bool {
			e, ok := f.Of("a")
			return ok && (e.Batches > 0 && e.Since != before.Since || e.Doubt == doubtTwo)
		})
	}
	f.Tick(time.Now())
	if e, _ := f.Of("a"); e.Doubt != doubtTwo || e.Live {
		t.Errorf("%+v", e)
	}
	f.Tick(time.Now().Add(takeoverTime))
	if e, _ := f.Of("a"); e.Doubt != "" || !e.Live {
		t.Errorf("a minute without a second publisher: %+v", e)
	}
	stranger, err := zmtp.Dial(t.Context(), d.Addr(), zmtp.Config{Kind: zmtp.PUB})
	if err != nil {
		t.Fatal(err)
	}
	_ = stranger.Send([]byte("kv@nobody@m"), make([]byte, 8), storedBlocks(1, 2))
	for {
		if _, err := stranger.Recv(); err != nil {
			break
		}
	}
	f.Close()
	d.Close()
	if !strings.Contains(log.String(), "give each worker its own topic") {
		t.Errorf("no line names the remedy:\n%s", log)
	}
}
