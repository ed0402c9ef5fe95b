package vllmsim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/lmworker"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// control starts the router's controller. Addresses that end in 0 are any.
func control(t *testing.T, pull, reply, heartbeat string) *lmcache.Controller {
	t.Helper()
	k, err := lmcache.New(lmcache.Config{Pull: pull, Reply: reply, Heartbeat: heartbeat, Hash: "builtin", ChunkSize: 256})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// keysOf returns the number of chunks that the controller believes an instance to hold, -1 where it knows none.
func keysOf(k *lmcache.Controller, instance string) int64 {
	for _, i := range k.Stats().Instances {
		if i.ID == instance {
			return i.Keys["LocalCPUBackend"]
		}
	}
	return -1
}

// TestControllerKnowsTheTier: over random requests the router's controller counts the chunks that the CPU tier holds,
// and a new controller learns them by a full sync from a worker of 0.5.6.
func TestControllerKnowsTheTier(t *testing.T) {
	for _, release := range []string{lmworker.Release056, lmworker.Release039} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			k := control(t, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0")
			pull, reply, heartbeat, _ := k.Addrs()
			s := newTiny(t, Config{
				ID:        "worker-a",
				KVTokens:  3000,
				CPUTokens: 20 * lmworker.ChunkTokens,
				Speed:     2000,
				DevMode:   true,
				LMCache:   LMCache{Pull: pull, Reply: reply, Release: release},
			})
			rng := rand.New(rand.NewPCG(3, 3))
			same := func(k *lmcache.Controller) {
				t.Helper()
				d := s.process.Load().infer.ranks.drivers[0]
				d.mu.Lock()
				held := len(d.engine.Held(engine.OnCPU))
				d.mu.Unlock()
				waittest.Until(t, "as many keys as chunks", func() bool { return keysOf(k, "worker-a") == int64(held) })
			}
			for range 8 {
				for range 8 {
					// One salt alone: LMCache's keys leave it out, and two would share theirs.
					body := `{"max_tokens":300,"prompt":"` + engine.TextOfTokens(uint64(rng.IntN(6)), 300+rng.IntN(1500)) + `"}`
					if w := do(s, "POST", "/v1/completions", body); w.Code != 200 {
						t.Fatal(w.Body)
					}
				}
				settleTier(s)
				same(k)
			}
			if s.Stats().CPUTokens == 0 {
				t.Error("nothing was loaded from the CPU tier")
			}
			wantMatch(t, s, k)
			if release == lmworker.Release039 {
				return // it has no full sync
			}
			k.Close()
			same(control(t, pull, reply, heartbeat))
		})
	}
}

// settleTier waits until the engine rests.
func settleTier(s *Server) {
	d := s.process.Load().infer.ranks.drivers[0]
	for busy := true; busy; {
		d.mu.Lock()
		d.advance()
		_, busy = d.engine.NextEvent()
		d.mu.Unlock()
	}
}

// wantMatch holds what the controller answers for a prompt to what the worker has of it.
func wantMatch(t *testing.T, s *Server, k *lmcache.Controller) {
	t.Helper()
	r := k.NewRoster()
	r.Set([]lmcache.Worker{{Slot: 0, ID: "worker-a", Host: "127.0.0.1"}})
	text := engine.TextOfTokens(77, 1000)
	ids := engine.AppendTokens(nil, text)
	do(s, "POST", "/v1/completions", `{"max_tokens":1,"prompt":"`+text+`"}`)
	settleTier(s)
	var q lmcache.Query
	out := make([]lmcache.Held, 1)
	waittest.Until(t, "768 tokens matched", func() bool { // the first look shows the controller which hash it is
		q.Reset("", ids)
		r.Match(&q, []uint32{0}, out)
		return out[0].Live && out[0].Local == 768
	})
}

// TestLeaving: a worker that is closed deregisters, one that is killed does not.
func TestLeaving(t *testing.T) {
	k := control(t, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0")
	pull, reply, _, _ := k.Addrs()
	cfg := Config{ID: "killed", LMCache: LMCache{Pull: pull, Reply: reply}}
	killed := newTiny(t, cfg)
	cfg.ID = "closed"
	cfg.DataParallel = 2
	closed := newTiny(t, cfg)
	want := func(ids ...string) {
		t.Helper()
		waittest.Until(t, strings.Join(ids, ", "), func() bool {
			var found []string
			for _, i := range k.Stats().Instances {
				found = append(found, i.ID)
			}
			return slices.Equal(found, ids)
		})
	}
	want("closed", "closed-dp1", "killed")
	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	closed.Close()
	want("killed")
}
