package vllmsim

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

var returns = flag.Int("returns", 1, "episodes of each fault of TestReturnsToExact; -v prints how long they took")

// faultsOfEvents are those whose end has the router exact again within two seconds.
var faultsOfEvents = []string{FaultEventsGap, FaultEventsDuplicate, FaultEventsReorder, FaultEventsRestart,
	FaultEventsCut}

// TestReturnsToExact has each fault last for a random time under traffic, which goes on after it or ends with it. Then the
// router is live again, and has applied all that was published. How long that took is printed, not judged: a busy
// machine is slow.
func TestReturnsToExact(t *testing.T) {
	const longest = 4 * time.Second // of a fault, where many episodes are asked for
	for _, mode := range faultsOfEvents {
		for _, idle := range []bool{false, true} {
			name := mode + map[bool]string{false: ", then traffic", true: ", then none"}[idle]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newTiny(t, published(KVEvents{}))
				router := believe(t, s.process.Load().infer.ranks.drivers[0].events.Source())
				rng := rand.New(rand.NewPCG(uint64(len(name)), 3))
				var took []time.Duration
				for range *returns {
					for range 5 {
						chatOnce(t, s, rng)
					}
					awaitExact(t, s, router)
					if err := s.SetFault(Fault{Mode: mode}); err != nil {
						t.Fatal(err)
					}
					lasts := time.Duration(rng.Int64N(int64(longest)))
					if *returns == 1 {
						lasts /= 8
					}
					for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
						chatOnce(t, s, rng)
					}
					if err := s.SetFault(Fault{Mode: FaultNone}); err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					if !idle {
						chatOnce(t, s, rng)
					}
					awaitExact(t, s, router)
					took = append(took, time.Since(began).Round(time.Millisecond))
				}
				slices.Sort(took)
				t.Logf("back within %v in half of %d returns, %v at most", took[len(took)/2], len(took),
					took[len(took)-1])
			})
		}
	}
}

// published is a small worker that publishes its events.
func published(k KVEvents) Config {
	k.Endpoint = "tcp://127.0.0.1:0"
	k.Replay = "tcp://127.0.0.1:0"
	return Config{KVEvents: k, KVTokens: 4000, Speed: 2000}
}

func chatOnce(t *testing.T, s *Server, rng *rand.Rand) {
	t.Helper()
	talk := []message{{Role: "user", Content: engine.TextOfTokens(rng.Uint64N(30), 1+rng.IntN(200))}}
	body, err := json.Marshal(map[string]any{"messages": talk, "max_tokens": 1 + rng.IntN(20)})
	if err != nil {
		t.Fatal(err)
	}
	answerOf(t, s, "/v1/chat/completions", string(body))
}

// awaitExact waits until the router has applied all that the worker published, and believes it.
func awaitExact(t *testing.T, s *Server, router *believer) {
	t.Helper()
	var st kvevents.Stats
	var sent uint64
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		_, sent = settle(t, s.process.Load().infer.ranks.drivers[0])
		st = router.sub.Stats()
		if st.State == kvevents.Live && st.Next == sent {
			return
		}
	}
	t.Fatalf("the router is not exact again: %d batches published, %+v", sent, st)
}
