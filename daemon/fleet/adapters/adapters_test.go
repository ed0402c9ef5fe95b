package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// engine answers the calls of a loader, and writes down each as "load a" or "unload a".
type engine struct {
	takes  time.Duration // for a load
	status int
	answer string
	err    error

	mu      sync.Mutex
	calls   []string
	results []string // as a Meter
}

func (e *engine) Order(ctx context.Context, _, path string, body []byte, _ int) (int, []byte, error) {
	var call struct {
		Name string `json:"lora_name"`
	}
	_ = json.Unmarshal(body, &call)
	verb := "load "
	if path == UnloadPath {
		verb = "unload "
	}
	e.mu.Lock()
	e.calls = append(e.calls, verb+call.Name)
	e.mu.Unlock()
	if path == UnloadPath {
		return 200, nil, nil
	}
	select {
	case <-time.After(e.takes):
		return e.status, []byte(e.answer), e.err
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

func (e *engine) AdapterCall(_, call, result string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.results = append(e.results, call+" "+result)
}

// wants checks the calls, and forgets them.
func (e *engine) wants(t *testing.T, what string, calls ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.calls, calls) {
		t.Errorf("%s: the worker got %q; want %q", what, e.calls, calls)
	}
	e.calls = nil
}

func (e *engine) Names(model string) bool { return model == "base" }

// watcher notes the numbers of the workers.
type watcher struct{ ids []uint64 }

func (w *watcher) Watch(id uint64, _, _ string) { w.ids = append(w.ids, id) }
func (*watcher) WatchHealth(uint64)             {}
func (*watcher) Unwatch(uint64)                 {}
func (*watcher) CheckSoon(uint64)               {}
func (*watcher) ScrapeSoon(uint64)              {}
func (*watcher) ListSoon(uint64)                {}

// loads makes a source of a pool with one worker, which is up and lists its model alone.
func loads(e *engine, most int) (*Source, *worker.Worker) {
	var seen watcher
	l := New("main", slog.New(slog.DiscardHandler), e)
	s := l.By(Config{Source: "/a/{name}", Max: most, Own: e})
	p := worker.New(worker.Config{Workers: []worker.Spec{{ID: "w", URL: "http://127.0.0.1:9"}}, Watcher: &seen,
		Adapters: worker.Loading{Loads: s, Max: most}}, time.Now())
	l.Serve(p, e)
	p.Healthy(seen.ids[0], time.Now())
	p.Listed(seen.ids[0], []string{"base"}, []json.RawMessage{[]byte(`{"id":"base"}`)})
	return s, p.Reachable(nil)[0]
}

// want asks for an adapter, for a client without a key.
func (s *Source) want(ctx context.Context, w *worker.Worker, name string) (release func(), err error) {
	return s.wantFor(ctx, w, name, "")
}

func (s *Source) wantFor(ctx context.Context, w *worker.Worker, name, caller string) (release func(), err error) {
	return s.Load(ctx, w, Want{Name: name, Caller: caller, Until: time.Now().Add(SlotWait)})
}

// TestOneLoadForAll: many requests wait for one load, and one that leaves ends it for nobody else.
func TestOneLoadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{takes: 2 * time.Second, status: 200}
		s, w := loads(e, 0)
		leaving, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.want(leaving, w, "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a client that left: %v", err)
			}
		})
		for range 9 {
			all.Go(func() {
				release, err := s.want(t.Context(), w, "a")
				if err != nil {
					t.Error(err)
					return
				}
				release()
			})
		}
		all.Wait()
		e.wants(t, "ten at once", "load a")
		if _, err := s.want(t.Context(), w, "a"); err != nil {
			t.Error(err)
		}
		if _, err := s.want(t.Context(), w, "base"); err != nil {
			t.Error(err)
		}
		e.wants(t, "it is there, and so is the model")
	})
}

// TestLoadResults: what a worker answers decides what the client is told, and whether the worker is asked again.
func TestLoadResults(t *testing.T) {
	f := func(what string, e *engine, want error, result string, again bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s, w := loads(e, 0)
			if _, err := s.want(t.Context(), w, "a"); !errors.Is(err, want) {
				t.Errorf("%s: %v; want %v", what, err, want)
			}
			if got := strings.Join(e.results, ", "); got != result {
				t.Errorf("%s: counted %q; want %q", what, got, result)
			}
			e.wants(t, what, "load a")
			var calls []string
			if again {
				calls = []string{"load a"}
			}
			_, _ = s.want(t.Context(), w, "a")
			e.wants(t, what+", again at once", calls...)
			if want == nil {
				return
			}
			time.Sleep(forgetFor)
			_, _ = s.want(t.Context(), w, "a")
			e.wants(t, what+", after a while", "load a")
		})
	}
	f("loaded", &engine{status: 200}, nil, "load ok", false)
	f("it had it", &engine{status: 400, answer: "has already been loaded"}, nil, "load ok", false)
	f("no such adapter", &engine{status: 404, answer: "No adapter found"}, worker.ErrNoAdapter, "load refused", false)
	f("a bad request", &engine{status: 400, answer: "rank 512"}, worker.ErrNoAdapter, "load refused", false)
	f("too many", &engine{status: 429}, errFailed, "load failed", true)
	f("it broke", &engine{status: 500}, errFailed, "load failed", true)
	f("no connection", &engine{err: errors.New("refused")}, errFailed, "load failed", true)
	f("it hangs", &engine{takes: 2 * loadWait}, errFailed, "load failed", true)
}

// TestLoadsNoNonsense: a name that cannot be one costs the worker no call.
func TestLoadsNoNonsense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{status: 200}
		s, w := loads(e, 0)
		for _, name := range []string{"..", ".a", "a/b", "a b", "a\n", "%2e", "é", strings.Repeat("a", maxName+1)} {
			if _, err := s.want(t.Context(), w, name); !errors.Is(err, worker.ErrNoAdapter) || s.Loads("", name) {
				t.Errorf("%q: %v", name, err)
			}
		}
		e.wants(t, "nonsense")
		if s.Loads("", "base") || !s.Loads("", "a-B_1.2") {
			t.Error("the pool's model may be loaded, or an adapter may not")
		}
	})
}

// TestRoom: with max, the adapter of longest ago goes, none in use does, and the wait for one ends.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{status: 200}
		s, w := loads(e, 2)
		hold := func(name string) func() {
			t.Helper()
			release, err := s.want(t.Context(), w, name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
			return release
		}
		a, b := hold("a"), hold("b")
		a()
		e.wants(t, "room for two", "load a", "load b")
		c := hold("c")
		e.wants(t, "a is idle", "unload a", "load c")
		time.AfterFunc(10*time.Second, b)
		d := hold("d")
		e.wants(t, "b gets idle", "unload b", "load d")
		began := time.Now()
		if _, err := s.want(t.Context(), w, "e"); !errors.Is(err, ErrFull) || time.Since(began) > loadWait+time.Second {
			t.Errorf("all in use: %v after %s", err, time.Since(began))
		}
		e.wants(t, "all in use")
		c()
		d()
	})
}

// TestRefusals: what a worker has refused is named for a minute.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := loads(&engine{status: 404}, 0)
		for _, name := range []string{"sql", "law"} {
			_, _ = s.want(t.Context(), w, name)
		}
		if got, want := s.Refusals(), []string{"law by " + w.ID(), "sql by " + w.ID()}; !slices.Equal(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
		time.Sleep(time.Minute)
		if got := s.Refusals(); len(got) > 0 {
			t.Errorf("a minute later %q", got)
		}
	})
}

// TestMissedIsBounded: a flood of wrong names is forgotten.
func TestMissedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := loads(&engine{status: 404}, 0)
		for i := range maxMissed + 10 {
			_, _ = s.want(t.Context(), w, "x"+strings.Repeat("y", i%100)+time.Unix(int64(i), 0).Format("150405"))
		}
		if n := len(s.missed); n > maxMissed {
			t.Errorf("%d names", n)
		}
	})
}

// TestAListFromBeforeALoad: a list that the worker was asked for before a load does not remove the adapter, which keeps
// its slot. One that the worker is asked for later does: somebody else has unloaded the adapter.
func TestAListFromBeforeALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{status: 200}
		s, w := loads(e, 1)
		id := uint64(1)
		list := func() {
			s.workers.Listed(id, []string{"base"}, []json.RawMessage{[]byte(`{"id":"base"}`)})
		}
		load := func(name string) {
			release, err := s.want(t.Context(), w, name)
			if err != nil {
				t.Fatal(err)
			}
			release()
		}
		s.workers.Listing(id)
		load("a")
		list()
		load("b")
		e.wants(t, "after a list from before the load of a", "load a", "unload a", "load b")
		s.workers.Listing(id)
		list()
		load("a")
		e.wants(t, "after a list without b", "load a")
	})
}
