package kvevents

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// follow runs a Subscriber of the worker until the test ends.
func follow(t testing.TB, c Config) (*Subscriber, *view, *logtest.Log) {
	t.Helper()
	v, j := newView(), &logtest.Log{}
	c.Sink = v
	c.OnState = v.enter
	c.Log = slog.New(slog.NewTextHandler(j, nil))
	s := New(c)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s, v, j
}

func awaitState(t testing.TB, s *Subscriber, want State) {
	t.Helper()
	waittest.Until(t, want.String(), func() bool { return s.Stats().State == want })
}

// awaitExact waits until the view is what the worker holds, and live.
func awaitExact(t testing.TB, s *Subscriber, v *view, w *fakeWorker) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%+v\nheld %d, viewed %d", s.Stats(), len(w.held()), len(v.held()))
		}
	}()
	waittest.Until(t, "the view is what the worker holds", func() bool {
		return s.Stats().State == Live && maps.Equal(v.held(), w.held())
	})
	for _, wrong := range v.wrong {
		t.Error(wrong)
	}
}

// A router that starts beside a worker with a history knows at once what it holds, by either shape of the replay.
func TestReplayAtTheStart(t *testing.T) {
	for _, shape := range []int{3, 4} {
		w := startWorker(t)
		w.shape = shape
		for range 50 {
			w.store(sent)
		}
		w.remove(sent)
		s, v, _ := follow(t, Config{Endpoint: w.endpoint, Replay: w.replay})
		awaitExact(t, s, v, w)
		waittest.Until(t, "the subscription", func() bool { return w.pub.Subscribers("kv@w@m") == 1 })
		w.store(sent)
		awaitExact(t, s, v, w)
		if st := s.Stats(); st.Replayed != 51 || st.Gaps != 0 || st.Topic != "kv@w@m" {
			t.Errorf("shape %d: %+v", shape, st)
		}
	}
}

// What the publisher no longer has makes the view partial until the worker clears its cache.
func TestBeginningIsGone(t *testing.T) {
	w := startWorker(t)
	w.buffer = 5
	for range 20 {
		w.store(sent)
	}
	s, v, _ := follow(t, Config{Endpoint: w.endpoint, Replay: w.replay})
	awaitState(t, s, Partial)
	waittest.Until(t, "five batches", func() bool { return s.Stats().Batches == 5 })
	w.clear(sent)
	w.store(sent)
	awaitExact(t, s, v, w)
}

func TestWithoutReplaySocket(t *testing.T) {
	w := startWorker(t)
	s, v, j := follow(t, Config{Endpoint: w.endpoint})
	awaitState(t, s, Partial) // nobody knows what was before
	waittest.Until(t, "the subscription", func() bool { return w.pub.Subscribers("kv@w@m") == 1 })
	w.store(sent)
	awaitExact(t, s, v, w) // 0 is the first
	w.store(lost)
	w.store(sent)
	awaitState(t, s, Partial)
	if j.Count("set kv_events_replay") != 1 {
		t.Error("the gap was not logged with its remedy")
	}
	w.clear(sent)
	awaitExact(t, s, v, w)
	w.restart()
	waittest.Until(t, "the subscription", func() bool { return w.pub.Subscribers("kv@w@m") == 1 })
	w.store(sent)
	awaitExact(t, s, v, w)
}

// Each fault alone, and the view is exact again.
func TestFaults(t *testing.T) {
	faults := map[string]func(w *fakeWorker){
		"gap":              func(w *fakeWorker) { w.store(lost); w.remove(lost); w.store(sent) },
		"gap, silence":     func(w *fakeWorker) { w.store(sent); w.store(lost) },
		"duplicate":        func(w *fakeWorker) { w.store(twice); w.remove(twice) },
		"reorder":          func(w *fakeWorker) { w.store(held); w.remove(sent); w.store(sent) },
		"restart":          func(w *fakeWorker) { w.restart(); w.store(sent) },
		"restart, silence": func(w *fakeWorker) { w.restart() },
		"restart to the same sequence": func(w *fakeWorker) {
			n := w.seq
			w.restart()
			for w.seq <= n {
				w.store(sent)
			}
		},
		"clear": func(w *fakeWorker) { w.clear(sent); w.clear(sent); w.store(sent) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := startWorker(t)
			s, v, _ := follow(t, Config{Endpoint: w.endpoint, Replay: w.replay})
			for range 20 {
				w.store(sent)
			}
			awaitExact(t, s, v, w)
			fault(w)
			awaitExact(t, s, v, w)
		})
	}
}

// Random faults, with or without a worker that forgets what is old.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := startWorker(t)
		s, v, _ := follow(t, Config{Endpoint: w.endpoint, Replay: w.replay})
		for range 300 {
			how := sent
			if rng.IntN(20) == 0 {
				how = rng.IntN(4)
			}
			switch rng.IntN(10) {
			case 0, 1, 2:
				w.remove(how)
			case 3:
				if rng.IntN(10) == 0 {
					w.clear(how)
				}
				if rng.IntN(20) == 0 {
					w.restart()
				}
			default:
				w.store(how)
			}
			if rng.IntN(5) == 0 {
				time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			}
		}
		w.store(sent)
		awaitExact(t, s, v, w)
	}
}

// A sink that stands still, and a flood: the bound holds, and the view is cleared rather than wrong.
func TestFlood(t *testing.T) {
	w := startWorkerOf(t, 1000)
	w.buffer = 100
	s, v, j := follow(t, Config{Endpoint: w.endpoint, Replay: w.replay})
	w.store(sent)
	awaitExact(t, s, v, w)
	v.mu.Lock()
	v.pause = make(chan struct{})
	v.mu.Unlock()
	for range 200_000 {
		w.store(sent)
		if w.pub.Dropped() > 100 {
			break
		}
	}
	if w.pub.Dropped() == 0 {
		t.Fatal("the flood is too small for this machine")
	}
	v.mu.Lock()
	close(v.pause)
	v.pause = nil
	v.mu.Unlock()
	waittest.Until(t, "a gap", func() bool {
		w.store(sent)
		return s.Stats().Gaps > 0
	})
	if j.Count("level=WARN") == 0 && s.Stats().State == Live {
		t.Error("batches are gone for good, and the view is believed without a word")
	}
	w.clear(sent)
	w.store(sent)
	awaitExact(t, s, v, w)
	if bytes := s.Stats().Bytes; bytes == 0 {
		t.Error("nothing was counted")
	}
}

func TestGarbage(t *testing.T) {
	w := startWorker(t)
	s, v, j := follow(t, Config{Endpoint: w.endpoint, Replay: w.replay})
	for range 5 {
		w.store(sent)
	}
	awaitExact(t, s, v, w) // by a replay, perhaps
	waittest.Until(t, "the subscription", func() bool { return w.pub.Subscribers("kv@w@m") == 1 })
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		frames := make([][]byte, 1+rng.IntN(4))
		for i := range frames {
			frames[i] = make([]byte, []int{0, 1, 8, 8, 100, 5000}[rng.IntN(6)])
			for k := range frames[i] {
				frames[i][k] = byte(rng.Uint32())
			}
		}
		w.pub.Publish(frames...)
	}
	w.pub.Publish(w.topic, bytes.Repeat([]byte{0xff}, 8), nil)
	waittest.Until(t, "garbage", func() bool { return s.Stats().Dropped > 100 })
	w.store(sent)
	awaitExact(t, s, v, w)
	if lines := j.Count("level="); lines > 40 {
		t.Errorf("%d lines were logged", lines)
	}
}

// Addresses where nobody is, that never answer, that close, and that speak something else.
func TestNoPublisher(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			c.Close()
		}
	}()
	w := startWorker(t)
	for endpoint, want := range map[string]string{
		"tcp://127.0.0.1:1":                 "connection refused",
		"tcp://" + l.Addr().String():        "is this a ZeroMQ port?",
		"ipc:///nowhere/at/all":             "no such file",
		w.replay:                            "is this the right port?",
		"ftp://" + l.Addr().String() + "/x": "want tcp://",
	} {
		s, v, j := follow(t, Config{Endpoint: endpoint})
		waittest.Until(t, want, func() bool { return j.Count(want) == 1 })
		time.Sleep(50 * time.Millisecond)
		if n := j.Count("level="); n != 1 || s.Stats().State != Never || v.state != Never {
			t.Errorf("%s: %d lines, %s", endpoint, n, s.Stats().State)
		}
		w.start("tcp://"+porttest.Address(t), "tcp://"+porttest.Address(t)) // it may come back there
	}
}

// A replay socket that is none: the stream goes on, and the view is partial until it answers.
func TestReplaySocketFails(t *testing.T) {
	w := startWorker(t)
	w.store(sent)
	s, v, j := follow(t, Config{Endpoint: w.endpoint, Replay: "tcp://127.0.0.1:1"})
	awaitState(t, s, Partial)
	waittest.Until(t, "the subscription", func() bool { return w.pub.Subscribers("kv@w@m") == 1 })
	w.store(sent)
	waittest.Until(t, "a batch", func() bool { return s.Stats().Batches == 1 })
	if st := s.Stats(); st.State != Partial || st.Failed == 0 || j.Count("check kv_events_replay") == 0 {
		t.Errorf("%+v", st)
	}
	w.clear(sent)
	awaitExact(t, s, v, w)
}

// A worker that dials us is followed as one that is dialled.
func TestServe(t *testing.T) {
	w := startWorker(t)
	w.store(sent)
	v := newView()
	s := New(Config{Replay: w.replay, Sink: v, OnState: v.enter})
	served := make(chan struct{})
	l, err := zmtp.Listen(t.Context(), "tcp://127.0.0.1:0", SubscribeConfig(), func(c *zmtp.Conn) {
		defer close(served)
		first, err := c.Recv()
		if err != nil {
			t.Error(err)
		}
		s.Serve(t.Context(), c, first)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go w.pub.Connect(ctx, l.Addr().String())
	waittest.Until(t, "the subscription", func() bool { return w.pub.Subscribers("kv@w@m") == 1 })
	w.store(sent)
	w.store(sent)
	awaitExact(t, s, v, w)
	cancel()
	<-served
	if st := s.Stats(); st.State != Lost || st.Connected {
		t.Errorf("%+v", st)
	}
}

// A reset that the router has asked for counts at once; the event of it comes with the next store only.
func TestCleared(t *testing.T) {
	w := startWorker(t)
	s, v, _ := follow(t, Config{Endpoint: w.endpoint, Replay: w.replay})
	w.store(sent)
	awaitExact(t, s, v, w)
	s.Cleared()
	waittest.Until(t, "an empty view", func() bool { return len(v.held()) == 0 && s.Stats().State == Live })
}
