package route

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// candidatesOf names a record's candidates in their order, with why they were skipped.
func candidatesOf(r *record.Record) string {
	var all []string
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if c.Skipped == "" {
			all = append(all, c.Worker)
		} else {
			all = append(all, c.Worker+": "+c.Skipped)
		}
	}
	return strings.Join(all, "; ")
}

// A record names every worker of the pool: the candidates in the order of the choice, then why each other was none.
func TestCandidates(t *testing.T) {
	f := func(fleet string, a Ask, want string) {
		t.Helper()
		s := newScene(t, fleet)
		s.enter(opened("s"), "a", true)
		var r record.Record
		if c := s.chosen(a); !c.Explain(&r) {
			t.Errorf("%q: nothing is explained", fleet)
		}
		if got := candidatesOf(&r); got != want {
			t.Errorf("%q: %s; want %s", fleet, got, want)
		}
	}
	s := newScene(t, "")
	f("a b c", s.ask(first+1, Claim{}), "b; a; c")
	f("a b:down c:starting d:ejected e:leaving f:draining g:lacks h:full i:slow j k l m", s.ask(first, Claim{}),
		"a; j; k; l; m; b: down; c: starting; d: ejected: failed answer; e: draining: gives up what it accepts; "+
			"f: draining: asked to drain; g: does not list the model; h: has no room: max_in_flight, max_wait_seconds or max_kv_use; i: begins slowly: not its turn")
	f("a b:busy c:down", s.ask(first, Claim{Opened: opened("s")}), "a; b: the session stays at its worker; c: down")
}

// After a second look the record has its candidates: the workers that were tried are candidates no more.
func TestCandidatesOfTheSecondLook(t *testing.T) {
	s := newScene(t, "a b:slow c:starting")
	c := s.chosen(s.ask(first, Claim{}))
	for range 2 {
		to, _ := c.Next(s.now)
		s.send(c, to)
		s.heal("c")
	}
	var r record.Record
	c.Explain(&r)
	if got := candidatesOf(&r); got != "c; b" && got != "b; c" {
		t.Errorf("%s", got)
	}
	s.become("b", "down")
	s.now = s.now.Add(1)
	c = s.chosen(s.ask(first, Claim{}))
	s.heal("b")
	r = record.Record{}
	if c.Explain(&r); !strings.Contains(candidatesOf(&r), "b: begins slowly: not its turn") {
		t.Errorf("%s", candidatesOf(&r))
	}
}

// A record of a large fleet lists its best, and how many more there were.
func TestManyCandidates(t *testing.T) {
	f := func(n, want, more int) {
		t.Helper()
		var words []string
		for i := range n {
			words = append(words, fmt.Sprintf("w%d", i))
		}
		s := newScene(t, strings.Join(words, " ")+" down:down")
		var r record.Record
		if s.chosen(s.ask(first, Claim{})).Explain(&r); len(r.Candidates) != want || int(r.More) != more {
			t.Errorf("%d workers: %d candidates and %d more; want %d and %d", n, len(r.Candidates), r.More, want, more)
		}
		s.enter(opened("s"), "w1", true)
		r = record.Record{}
		if s.chosen(s.ask(first, Claim{Opened: opened("s")})).Explain(&r); len(r.Candidates) != want ||
			r.Candidates[0].Worker != "w1" {
			t.Errorf("%d workers, one of them pinned: %d candidates", n, len(r.Candidates))
		}
	}
	f(10, 11, 0)
	f(64, 64, 0)
	f(70, 64, 6)
}

// What a record has of the decision.
func TestExplain(t *testing.T) {
	s := newScene(t, "a b c:queued")
	sent := text("system ", 10)
	s.served(s.asking(completion(first+1, sent), Claim{}))
	c := s.chosen(s.asking(completion(bindTo+1, sent+text("more", 2)), Claim{Key: key("s")}))
	c.Bind()
	to, _ := c.Next(s.now)
	s.send(c, to)
	r := record.Record{ID: "id", Pool: "p"}
	if !c.Explain(&r) {
		t.Fatal("nothing is explained")
	}
	_, strategy := shared()
	if r.ID != "id" || r.Pool != "p" || r.Strategy != "obedient" || r.Module != strategy.SHA256() || len(r.Module) != 64 {
		t.Errorf("%+v", r)
	}
	if r.PromptTokens != 384 || r.PromptBlocks != 12 || r.BlockTokens != 32 || r.Prompts != 0 || r.LongestPrompt != 0 {
		t.Errorf("%+v", r)
	}
	if r.Reason != "obedient says 7" || r.Fallback != "" || r.Fuel <= 0 || r.PickTime <= 0 || r.Session != "key" {
		t.Errorf("%+v", r)
	}
	if r.Predicted != 10 || r.Believed != 320 || r.Queue != 0 {
		t.Errorf("%+v", r)
	}
	b, x := &r.Candidates[0], &r.Candidates[2]
	if b.Worker != "b" || b.State != "up" || b.GPU != 10 || b.FreeGPU >= unknownTokens || x.Worker != "c" ||
		x.InFlight != 1 || x.Wait <= 0 {
		t.Errorf("%+v, %+v", b, x)
	}
	if b.Cost <= 0 || b.Prefill <= 0 || b.Cost >= r.Candidates[1].Cost || b.Slowness != 1 || x.Tilt <= b.Tilt {
		t.Errorf("%+v", r.Candidates)
	}
	c = s.chosen(s.asking(completion(first+2, text("x", 2), text("y", 3)), Claim{}))
	c.Note(&r)
	if r.Prompts != 2 || r.LongestPrompt != 96 || r.PromptTokens != 160 || r.PromptBlocks != 3 || r.Session != "" ||
		r.Queue <= 0 {
		t.Errorf("a list: %+v", r)
	}
}

// The wait is that of the worker that comes first, in the first row too.
func TestTheWaitOfTheFirst(t *testing.T) {
	s := newScene(t, "a:queued b")
	var r record.Record
	if s.chosen(s.ask(first, Claim{})).Note(&r); r.Queue <= 0 {
		t.Errorf("%v", r.Queue)
	}
	if s.chosen(s.ask(first+1, Claim{})).Note(&r); r.Queue != 0 {
		t.Errorf("%v", r.Queue)
	}
}

// Note is for every request: it allocates nothing.
func TestNoteAllocatesNothing(t *testing.T) {
	s := newScene(t, "a b")
	s.enter(key("s"), "a", false)
	c := s.chosen(s.ask(first, Claim{Key: key("s")}))
	var r record.Record
	if got := testing.AllocsPerRun(100, func() { c.Note(&r) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// The engine's own counts in JSON: a count that it did not give is left out.
func TestARecordInJSON(t *testing.T) {
	f := func(u record.Usage, want string) {
		t.Helper()
		b, err := json.Marshal(&record.Record{ID: "id", Pool: "p", Usage: u})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Usage json.RawMessage }
		if err := json.Unmarshal(b, &got); err != nil || string(got.Usage) != want {
			t.Errorf("%+v: %s, %v; want %s", u, got.Usage, err, want)
		}
	}
	f(record.Usage{}, "")
	f(record.Usage{Known: true, Prompt: 10, Output: 3}, `{"prompt_tokens":10,"output_tokens":3}`)
	f(record.Usage{Known: true, Prompt: 10, CachedKnown: true}, `{"prompt_tokens":10,"output_tokens":0,"cached_tokens":0}`)
	f(record.Usage{Known: true, Prompt: 10, Output: 3, Cached: 8, CachedKnown: true},
		`{"prompt_tokens":10,"output_tokens":3,"cached_tokens":8}`)

	s := newScene(t, "a b:down")
	c := s.chosen(s.ask(first, Claim{}))
	var r record.Record
	c.Explain(&r)
	r.Attempts = append(r.Attempts, record.Attempt{Worker: "a", Reason: "late"})
	b, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"strategy":"obedient"`, `"reason":"obedient says 7"`, `"skipped":"down"`, `"gpu_blocks":0`,
		`"attempts":[{"worker":"a","reason":"late","after_ns":0}]`, `"cost":`, `"module_sha256":"`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s lacks %s", b, part)
		}
	}
}

// A slow answer's candidates may be written after the workers have changed: those that are gone are not named twice.
func TestAWorkerThatWasTriedIsNoCandidate(t *testing.T) {
	s := sceneOf(t, "a b", worker.Config{})
	c := s.chosen(s.ask(first, Claim{}))
	to, _ := c.Next(s.now)
	s.send(c, to)
	c.Next(s.now)
	if _, more := c.Next(s.now); more {
		t.Fatal("more")
	}
	var r record.Record
	c.Explain(&r)
	if got := candidatesOf(&r); got != "" {
		t.Errorf("%s", got)
	}
}

// TestAbsentCountsAllRouters: as the row of a candidate, what is told of another worker counts the requests of all
// routers.
func TestAbsentCountsAllRouters(t *testing.T) {
	if n := absent(&worker.Stats{InFlight: 1, Theirs: 3}, "m", 0, nil).InFlight; n != 4 {
		t.Errorf("%d in flight; want 4", n)
	}
}
