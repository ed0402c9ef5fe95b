package world

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// rule is a chooser that notes its calls and sends each request to the first worker that is up, or the one that choose
// names.
type rule struct {
	calls  []string
	choose func(q *trial.Request, fleet []trial.View) int
}

func (r *rule) note(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *rule) Choose(_ time.Duration, q *trial.Request, fleet []trial.View) int {
	if r.choose != nil {
		return r.choose(q, fleet)
	}
	return slices.IndexFunc(fleet, func(v trial.View) bool { return v.Up })
}

func (r *rule) Sent(_ time.Duration, q *trial.Request, w int)  { r.note("sent %d to %d", q.ID, w) }
func (r *rule) First(_ time.Duration, q *trial.Request, w int) { r.note("first %d", q.ID) }
func (r *rule) End(_ time.Duration, q *trial.Request, w int, e *trial.End) {
	r.note("end %d %v", q.ID, e.Status)
}
func (r *rule) Down(_ time.Duration, w int) { r.note("down %d", w) }
func (r *rule) Up(_ time.Duration, w int)   { r.note("up %d", w) }

// single is a chat of one turn.
func single(start time.Duration, id uint64, tokens, output int) traffic.Chat {
	return traffic.Chat{Start: start, Turns: []traffic.Turn{{Parts: []traffic.Part{{ID: id, Tokens: tokens}}, Answer: ^id,
		Output: output}}}
}

// play runs a load under rules, one a router.
func play(t *testing.T, c Config, rules ...*rule) *trial.Run {
	t.Helper()
	c.Routers = len(rules)
	run, err := Run(t.Context(), c, func(i int) (Router, error) {
		return NewForeign(rules[i], c.Workers, 1<<19), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// A worker that dies takes the answers that had begun, and what had not is sent elsewhere.
func TestAWorkerDies(t *testing.T) {
	r := &rule{}
	run := play(t, Config{Workers: 2, Fates: []Fate{{At: 2 * time.Second, Kind: Dies}, {At: 5 * time.Second, Kind: Comes}},
		Load: traffic.Load{Chats: []traffic.Chat{single(0, 1, 1000, 500), single(1900*time.Millisecond, 2, 30_000, 5),
			single(6*time.Second, 3, 100, 2)}}}, r)
	want := []string{"up 0", "up 1", "sent 0 to 0", "first 0", "sent 1 to 0", "end 0 broken", "end 1 repeated", "down 0",
		"sent 1 to 1", "first 1", "end 1 answered", "up 0", "sent 2 to 0", "first 2", "end 2 answered"}
	if !slices.Equal(r.calls, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(r.calls, "\n"), strings.Join(want, "\n"))
	}
	o := run.Outcomes
	if o[0].Status != trial.Broken || o[0].Output < 50 || o[1].Attempts != 2 || o[1].Worker != 1 || o[2].Worker != 0 {
		t.Errorf("outcomes %+v", o)
	}
	if up := run.Workers[0].UpSeconds; up < 2 || up > run.Ended.Seconds()-2.9 {
		t.Errorf("worker 0 was up for %v s of %v", up, run.Ended)
	}
}

// A turn comes its gap after the end of the one before, and finds prompt and answer of that cached.
func TestTurns(t *testing.T) {
	first := traffic.Turn{Parts: []traffic.Part{{ID: 1, Tokens: 1600}}, Answer: 9, Output: 64}
	second := traffic.Turn{After: []int{0}, Gap: time.Second, Answer: 8, Output: 2,
		Parts: append(slices.Clip(first.Parts), traffic.Part{ID: 9, Tokens: 64, Answer: true}, traffic.Part{ID: 2, Tokens: 40})}
	run := play(t, Config{Workers: 1, Load: traffic.Load{Chats: []traffic.Chat{{Turns: []traffic.Turn{first, second}}}}}, &rule{})
	a, b := run.Outcomes[0], run.Outcomes[1]
	if b.Arrived != a.Ended+time.Second || b.Cached != 1648 {
		t.Errorf("the second turn came at %v with %d cached; the first ended at %v", b.Arrived, b.Cached, a.Ended)
	}
}

// Clients of a closed loop have one chat each at a time.
func TestClients(t *testing.T) {
	l := traffic.Load{Clients: 2}
	for i := range 10 {
		l.Chats = append(l.Chats, single(0, uint64(i+1), 3000, 20))
	}
	most := 0
	r := &rule{}
	r.choose = func(_ *trial.Request, fleet []trial.View) int {
		most = max(most, fleet[0].InFlight+1)
		return 0
	}
	if run := play(t, Config{Workers: 1, Load: l}, r); len(run.Outcomes) != 10 || most != 2 {
		t.Errorf("%d requests, %d at a time; want 10 and 2", len(run.Outcomes), most)
	}
}

func TestRefused(t *testing.T) {
	c := Config{Workers: 2, Load: traffic.Load{Chats: []traffic.Chat{single(0, 1, 10, 2), single(time.Second, 2, 10, 2)}}}
	for _, worker := range []int{-1, 2} {
		run := play(t, c, &rule{choose: func(*trial.Request, []trial.View) int { return worker }})
		if n := run.Count(trial.Refused); n != 2 {
			t.Errorf("worker %d: %d requests refused; want 2", worker, n)
		}
	}
}

// Requests are split over routers by chance, or by session; each router knows what it sent alone.
func TestRouters(t *testing.T) {
	var l traffic.Load
	for i := range 400 {
		c := single(time.Duration(i)*10*time.Millisecond, uint64(i+1), 20, 1)
		c.Session = uint64(i%40) + 1
		l.Chats = append(l.Chats, c)
	}
	for _, split := range []Split{AtRandom, BySession} {
		rules := []*rule{{}, {}, {}}
		at := map[uint64]map[int]bool{}
		for i, r := range rules {
			r.choose = func(q *trial.Request, _ []trial.View) int {
				if at[q.Session] == nil {
					at[q.Session] = map[int]bool{}
				}
				at[q.Session][i] = true
				return 0
			}
		}
		play(t, Config{Workers: 1, Load: l, Split: split}, rules...)
		several := 0
		for _, routers := range at {
			several += len(routers) - 1
		}
		if (several == 0) != (split == BySession) || len(rules[0].calls) == 0 {
			t.Errorf("split %d: %d times a session had another router", split, several)
		}
	}
}

// TestSync: what runs waits for the new weights and is computed again, what comes meanwhile waits too, and no block of the
// weights before is found.
func TestSync(t *testing.T) {
	const s = time.Second
	run := play(t, Config{Workers: 1, Sync: Sync{Every: 10 * s, Takes: 3 * s}, Load: traffic.Load{Chats: []traffic.Chat{
		single(1*s, 1, 1600, 2), single(5*s, 1, 1600, 2), single(9500*time.Millisecond, 2, 1600, 100), single(11*s, 3, 1600, 2),
		single(15*s, 1, 1600, 2), single(16*s, 2, 1600, 2), single(17*s, 3, 1600, 2)}}}, &rule{})
	for i, want := range []int{0, 1584, 0, 0, 0, 1584, 1584} {
		o := &run.Outcomes[i]
		if o.Cached != want || o.Status != trial.Answered {
			t.Errorf("request %d: %d tokens cached, %v; want %d", i, o.Cached, o.Status, want)
		}
	}
	if o := run.Outcomes; o[2].First > 10*s || o[2].Ended < 13*s || o[2].Ended > 15*s || o[3].First < 13*s {
		t.Errorf("one that ran: %+v; one that came: %+v; want the end, and the first token, after 13 s", o[2], o[3])
	}
}

func TestSlowWorker(t *testing.T) {
	l := traffic.Load{Chats: []traffic.Chat{single(0, 1, 4000, 2), single(10*time.Second, 2, 4000, 2)}}
	run := play(t, Config{Workers: 1, Load: l, Fates: []Fate{{At: 5 * time.Second, Kind: Slows, Slowness: 3}}}, &rule{})
	if a, b := run.Outcomes[0].TTFT(), run.Outcomes[1].TTFT(); b < 2.99*a || b > 3.01*a {
		t.Errorf("TTFT %v, then %v; want three times as much", a, b)
	}
}

func TestBadConfig(t *testing.T) {
	good := Config{Workers: 1, Load: traffic.Load{Chats: []traffic.Chat{single(0, 1, 10, 1)}}}
	f := func(want string, change func(c *Config)) {
		t.Helper()
		c := good
		change(&c)
		_, err := Run(t.Context(), c, func(int) (Router, error) { return NewForeign(&rule{}, c.Workers, 1), nil }, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want one of %q", err, want)
		}
	}
	f("give 1 to 1024", func(c *Config) { c.Workers = 0 })
	f("a sync every", func(c *Config) { c.Sync = Sync{Every: time.Second, Takes: time.Second} })
	f("give a worker", func(c *Config) { c.Fates = []Fate{{Worker: 1}} })
	f("a slowness over 0", func(c *Config) { c.Fates = []Fate{{Kind: Slows, Slowness: math.Inf(1)}} })
	f("engine:", func(c *Config) { c.Engine.KVTokens = -1 })
	f("does not fit", func(c *Config) { c.Engine = engine.Config{KVTokens: 64}; c.Load.Chats[0] = single(0, 1, 100, 1) })
}
