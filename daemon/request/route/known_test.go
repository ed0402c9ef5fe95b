package route

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// sums is a store of modules in memory.
type sums struct {
	mu  sync.Mutex
	all map[string]int64
}

func (s *sums) Get(_, _ string) ([]byte, bool) { return nil, false }

func (s *sums) CompareAndSwap(_, _ string, _, _ []byte, _ time.Duration) int32 { return abi.ErrLimit }

func (s *sums) Add(_, key string, delta int64, _ time.Duration) (int64, int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[key] += delta
	return s.all[key], 0
}

func (s *sums) get(key string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[key]
}

// faulty loads a module of testdata.
func faulty(t *testing.T, file string, kv host.KV) *host.Strategy {
	t.Helper()
	wat, err := os.ReadFile("../../../testdata/modules/" + file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(context.Background(), host.Config{KV: kv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close(context.Background()) })
	return load(h, file, string(wat), "kv")
}

// A module that wants the host's score finds it in the rows: the least cost is where the prompt is cached.
func TestTheScoreThatAModuleWants(t *testing.T) {
	s := sceneBy(t, "a b c", worker.Config{}, faulty(t, "wants_cost.wat", nil))
	r := completion(decline, text("system ", 30))
	_, trip := s.trip(r)
	trip.End(&judge.Outcome{Kind: judge.Answered}, End{Whole: true, Status: 200, At: s.now})
	s.become("a", "queued")
	for range 3 {
		if c := s.chosen(s.asking(r, Claim{})); c.First().ID() == "a" {
			t.Errorf("%+v", c.fleet.frame.Rows)
		}
	}
	c := s.chosen(s.asking(r, Claim{}))
	_, trip = s.trip(r)
	trip.End(&judge.Outcome{Kind: judge.Answered}, End{At: s.now})
	if again := s.chosen(s.asking(r, Claim{})); again.First() != c.First() {
		t.Errorf("%s, then %s: its cache is warm", c.First().ID(), again.First().ID())
	}
	for i, row := range c.fleet.frame.Rows {
		if row.Cost <= 0 {
			t.Errorf("row %d costs %v", i, row.Cost)
		}
	}
	if plain := newScene(t, "a"); plain.chosen(plain.ask(decline, Claim{})).fleet.frame.Rows[0].Cost != 0 {
		t.Error("a score that nobody wants was computed")
	}
}

// A module that wants outcomes gets the first token and, once, the answer that the client got. It gets nothing of an
// attempt that gave the client no answer.
func TestWhatAModuleIsTold(t *testing.T) {
	kv := &sums{all: map[string]int64{}}
	s := sceneBy(t, "a", worker.Config{}, faulty(t, "notices.wat", kv))
	wait := func(key string, want int64) {
		t.Helper()
		for end := time.Now().Add(2 * time.Second); kv.get(key) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d; want %d", key, kv.get(key), want)
			}
		}
	}
	c, failed := s.trip(completion(decline, text("q", 10)))
	failed.End(&judge.Outcome{Kind: judge.Failed}, End{At: s.now})
	c.Again(s.now)
	to, _ := c.Next(s.now)
	trip := s.send(c, to)
	s.now = s.now.Add(time.Second)
	trip.FirstByte(s.now)
	wait("first", 1)
	e := End{Reply: answer("", 300, 200), Whole: true, Status: 200, At: s.now}
	trip.End(&judge.Outcome{Kind: judge.Answered}, e)
	trip.End(&judge.Outcome{Kind: judge.Answered}, e)
	wait("complete", 7)
	if n := &trip.notice; n.Attempts != 2 || n.TTFT != 1 || n.Seconds != 1 || n.Status != 200 || n.PromptTokens != 300 ||
		n.CachedTokens != 200 || n.OutputTokens != 7 || n.Believed != 0 || n.Worker != 0 || n.Key != to.Worker.Key() {
		t.Errorf("%+v", n)
	}
	s.Tick(time.Unix(0, 5))
	wait("tick", 5)
	if kv.get("first") != 1 || kv.get("complete") != 7 {
		t.Errorf("told twice: %v", kv.all)
	}
}

// A module may ask who holds what of the request's prompt, of every worker of the pool.
func TestWhatAModuleMayAsk(t *testing.T) {
	s := newScene(t, "a b c")
	sent := text("system ", 10)
	s.served(s.asking(completion(first+1, sent), Claim{}))
	s.served(s.asking(completion(first+2, sent[:4*prompt.BlockBytes]), Claim{}))
	b := s.worker("b")
	s.Workers.Drain("b", true, s.now) // no candidate, and still known
	c := s.chosen(s.asking(completion(first, sent+text("more", 2)), Claim{}))
	k, chain := c.fleet.frame.Prefixes, c.fleet.frame.Chain
	if slot, blocks := k.Best(chain); slot != b.Slot() || blocks != 10 {
		t.Errorf("best: %d blocks at slot %d", blocks, slot)
	}
	if _, blocks := k.Best([]uint64{1, 2}); blocks != 0 {
		t.Errorf("best of an unknown chain: %d blocks", blocks)
	}
	if h := k.Worker(b.Slot()); h.Key != b.Key() || h.Blocks != 10 || h.TailSecs < 0 {
		t.Errorf("b: %+v", h)
	}
	if h := k.Worker(0); h.Key != s.worker("a").Key() || h.Blocks != 0 || h.TailSecs != -1 {
		t.Errorf("a: %+v", h)
	}
	if h := k.Worker(77); h.Key != 0 || h.Blocks != 0 {
		t.Errorf("nobody: %+v", h)
	}
	if n := k.MatchOne(chain, b.Slot()); n != 10 {
		t.Errorf("%d blocks at b", n)
	}
	var tiers [3]abi.Tier
	if n := k.Tiers(b.Slot(), &tiers); n != 1 || tiers[0].Kind != abi.TierGPU || tiers[0].Used != 320 ||
		tiers[0].Capacity != unknownTokens ||
		tiers[0].Reuse <= 0 {
		t.Errorf("%d tiers, %+v", n, tiers)
	}
	if n := k.Tiers(0, &tiers); n != 1 || tiers[0].Reuse != -1 {
		t.Errorf("%d tiers, %+v", n, tiers)
	}
}

// What a strategy sees of the caller and of the endpoint.
func TestWhoAsksAndWhat(t *testing.T) {
	s := newScene(t, "a")
	a := s.asking(parsed("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`), Claim{})
	a.Caller, a.Deadline = "team", s.now.Add(time.Minute)
	h := &s.chosen(a).fleet.frame.Header
	if h.Caller != hashOf("team") || h.Deadline != a.Deadline.UnixNano() || h.Endpoint != abi.EndpointChat {
		t.Errorf("%+v", h)
	}
	h = &s.chosen(s.asking(parsed("/v1/audio/speech", `{"model":"m"}`), Claim{})).fleet.frame.Header
	if h.Caller != 0 || h.Deadline != 0 || h.Endpoint != 0 {
		t.Errorf("%+v", h)
	}
}
