package traffic

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

var chats = Class{Rate: 1, Groups: 4, Shared: 100, Document: 500, Spread: .3, User: 40, Output: 30, Turns: 4, Think: 2}

func drawn(t *testing.T, p Plan, seed uint64) Load {
	t.Helper()
	l, err := p.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDraw(t *testing.T) {
	p := Plan{Classes: []Class{chats, chats}, Seconds: 100, Workers: 2}
	l := drawn(t, p, 1)
	if again := drawn(t, p, 1); !reflect.DeepEqual(l, again) {
		t.Error("one seed gives two loads")
	}
	if other := drawn(t, p, 2); reflect.DeepEqual(l, other) {
		t.Error("two seeds give one load")
	}
	turns, prompt := 0, 0
	for i, c := range l.Chats {
		if i > 0 && c.Start < l.Chats[i-1].Start {
			t.Fatal("chats are not in order of their starts")
		}
		turns += len(c.Turns)
		for k := range c.Turns {
			prompt += c.Turns[0].Tokens()
			if k == 0 {
				continue
			}
			before, now := &c.Turns[k-1], &c.Turns[k]
			n := len(before.Parts)
			if !slices.Equal(now.Parts[:n], before.Parts) || now.Parts[n] != (Part{before.Answer, before.Output, true}) {
				t.Fatalf("turn %d does not continue the one before: %v after %v", k, now.Parts, before.Parts)
			}
		}
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > .1*want {
			t.Errorf("%s is %v; want about %v", what, got, want)
		}
	}
	near("chats", float64(len(l.Chats)), 400)
	near("turns of a chat", float64(turns)/float64(len(l.Chats)), 4)
	near("tokens of a first prompt", float64(prompt)/float64(turns), 640)
	p.Requests = 77
	if n := drawn(t, p, 1); n.Requests() != 77 {
		t.Errorf("%d requests; want 77", n.Requests())
	}
	p.Surges = []Surge{{From: 0, Until: 10, Factor: 5}}
	p.Requests = 0
	surge := drawn(t, p, 1)
	early := slices.IndexFunc(surge.Chats, func(c Chat) bool { return c.Start >= 10*time.Second })
	near("chats of the surge", float64(early), 200)
}

// An agent's tree: branches continue one turn side by side, and the next turn waits for all of them.
func TestBranches(t *testing.T) {
	c := chats
	c.Branches, c.Turns, c.MaxTurns = 3, 9, 2
	for _, chat := range drawn(t, Plan{Classes: []Class{c}, Seconds: 20, Workers: 1}, 3).Chats {
		if len(chat.Turns) < 8 {
			continue
		}
		for k := 1; k < 4; k++ {
			if !slices.Equal(chat.Turns[k].After, []int{0}) {
				t.Fatalf("branch %d waits for %v", k, chat.Turns[k].After)
			}
		}
		if next := chat.Turns[4]; !slices.Equal(next.After, []int{1, 2, 3}) || !slices.Contains(next.Parts,
			Part{chat.Turns[3].Answer, chat.Turns[3].Output, true}) {
			t.Fatalf("the turn behind the branches: %+v", next)
		}
		return
	}
	t.Error("no tree of two turns was drawn")
}

// The samples of a group have one prompt, and go on as they are answered.
func TestSamples(t *testing.T) {
	for what, c := range map[string]Class{"chats": chats, "agents": agents} {
		c.Samples = 4
		l := drawn(t, Plan{Classes: []Class{c}, Seconds: 30, Workers: 1}, 1)
		if len(l.Chats)%4 != 0 {
			t.Fatalf("%s: %d", what, len(l.Chats))
		}
		for i := 0; i < len(l.Chats); i += 4 {
			first, answers := &l.Chats[i], map[uint64]bool{}
			for k := range 4 {
				chat := &l.Chats[i+k]
				answers[chat.Turns[0].Answer] = true
				if !slices.Equal(chat.Turns[0].Parts, first.Turns[0].Parts) || chat.Start != first.Start ||
					len(chat.Turns) > 1 && !slices.Equal(chat.Turns[1].Parts[:1], first.Turns[0].Parts[:1]) {
					t.Fatalf("%s: sample %d begins with %v; the first with %v", what, k, chat.Turns[0].Parts, first.Turns[0].Parts)
				}
			}
			if len(answers) != 4 || i > 0 && slices.Equal(first.Turns[0].Parts, l.Chats[i-1].Turns[0].Parts) {
				t.Fatalf("%s: %d answers of 4 samples; the group before has %v", what, len(answers), l.Chats[max(0, i-1)].Turns[0].Parts)
			}
		}
	}
}

var agents = Class{Rate: 1, User: 900, Output: 260, Turns: 43, MaxTurns: 200, Think: 4, Agent: &Agent{
	Products: []int{20_000, 14_000}, Shares: []float64{3, 1}, Projects: 5, Least: 3000, Most: 9000, UserSigma: 1.2,
	OutputSigma: 1, TurnsSigma: .6, ThinkSigma: 1.1, MaxThink: 90, CompactAt: 90_000, Summary: 8000, Subagents: .05,
	MaxSubagents: 3, SubagentTurns: 12, SubagentSigma: .6, Waits: .5}}

// An agent's session begins with what its product's sessions share, appends what it did, and falls back to a summary.
// Its subagents begin behind one of its turns with the product's beginning alone.
func TestAgents(t *testing.T) {
	l := drawn(t, Plan{Classes: []Class{agents}, Seconds: 400, Workers: 1}, 1)
	products, turns, compacted, waited, subs := map[Part]int{}, 0, 0, 0, 0
	for _, c := range l.Chats {
		products[c.Turns[0].Parts[0]]++
		for k := range c.Turns {
			q := &c.Turns[k]
			if len(q.Parts) < 2 || q.Parts[0] != c.Turns[0].Parts[0] {
				t.Fatalf("turn %d does not begin with its product: %v", k, q.Parts)
			}
			if q.Tokens() > 90_000+mostResult {
				t.Fatalf("turn %d has %d tokens", k, q.Tokens())
			}
			if q.Session == 0 {
				turns++
			} else if q.Parent != c.Session || q.After == nil {
				t.Fatalf("a subagent's turn %+v in session %x", q, c.Session)
			}
			if k == 0 {
				continue
			}
			switch before := &c.Turns[q.After[0]]; {
			case before.Session != q.Session:
				subs++
			case len(q.After) > 1:
				waited++
			case q.Parts[1].Tokens == 8000 && len(q.Parts) == 3:
				compacted++
			case !slices.Equal(q.Parts[:len(before.Parts)], before.Parts):
				t.Fatalf("turn %d does not continue the one before", k)
			}
		}
	}
	if n := len(l.Chats); len(products) != 2 || turns < 40*n || turns > 60*n || subs < 2*n || waited < n/2 || compacted < n/4 {
		t.Errorf("%d sessions: %d products, %d turns, %d subagents, waited for %d times, %d compactions", n, len(products), turns,
			subs, waited, compacted)
	}
	if again := drawn(t, Plan{Classes: []Class{agents}, Seconds: 400, Workers: 1}, 1); !reflect.DeepEqual(l, again) {
		t.Error("one seed gives two loads")
	}
}

// Equal parts give equal tokens, which are those that the engine's tokenizer makes of the text, and an answer's part
// those that the engine generates.
func TestText(t *testing.T) {
	parts := []Part{{ID: 1, Tokens: 33}, {ID: 2, Tokens: 7, Answer: true}, {ID: 3, Tokens: 5}}
	text := AppendText(nil, parts)
	ids := AppendTokens(nil, text)
	if !slices.Equal(ids, engine.AppendTokens(nil, string(text))) || len(ids) != 45 {
		t.Errorf("%d tokens, other than the engine's", len(ids))
	}
	for i := range 7 {
		if want := engine.NewReply(2).Token(i); ids[33+i] != want {
			t.Fatalf("token %d of the answer is %x; the engine generates %x", i, ids[33+i], want)
		}
	}
	if string(AppendText(nil, parts[:2])) != string(text[:40*4]) {
		t.Error("a common beginning has another text")
	}
	if strings.ContainsAny(string(text), "\"\\\n") {
		t.Error("the text needs escaping")
	}
}

func TestCheckPlan(t *testing.T) {
	f := func(change func(p *Plan), want string) {
		t.Helper()
		p := Plan{Classes: []Class{chats}, Seconds: 10, Workers: 1}
		change(&p)
		if _, err := p.Draw(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want one of %q", err, want)
		}
	}
	f(func(p *Plan) { p.Classes = nil }, "no class")
	f(func(p *Plan) { p.Seconds = 0 }, "give one of them")
	f(func(p *Plan) { p.Seconds = 1e9 }, "fewer seconds")
	f(func(p *Plan) { p.Clients = 3 }, "give requests")
	f(func(p *Plan) { p.Classes[0].User = 0 }, "at least 1")
	f(func(p *Plan) { p.Classes[0].Spread = 2 }, "spread")
	f(func(p *Plan) { p.Classes[0].Document = 2 << 20 }, "up to")
	f(func(p *Plan) { p.Classes[0].Shared = -1 }, "up to")
	f(func(p *Plan) { p.Classes[0].Rate = math.NaN() }, "class 1")
	f(func(p *Plan) { p.Classes[0].Think = math.Inf(1) }, "class 1")
	f(func(p *Plan) { p.Classes[0].Turns = 1e8 }, "fewer turns")
	f(func(p *Plan) { p.Classes[0].Branches = 1e7 }, "fewer turns")
	agent := func(change func(c *Class)) func(p *Plan) {
		return func(p *Plan) {
			own := *agents.Agent
			p.Classes[0] = agents
			p.Classes[0].Agent = &own
			change(&p.Classes[0])
		}
	}
	f(agent(func(c *Class) { c.Agent.Shares = nil }), "as many of both")
	f(agent(func(c *Class) { c.Agent.Shares = []float64{0, 0} }), "shares of")
	f(agent(func(c *Class) { c.Agent.UserSigma = 4 }), "sigma over 3")
	f(agent(func(c *Class) { c.Agent.Waits = 2 }), "chances from 0 to 1")
	f(agent(func(c *Class) { c.Agent.Most = 1 }), "project_least")
	f(agent(func(c *Class) { c.MaxTurns = 0 }), "max_turns")
	f(agent(func(c *Class) { c.Agent.CompactAt = 2 << 20 }), "longer than")
	f(func(p *Plan) { p.Classes[0].Groups = 1e9 }, "groups")
	f(func(p *Plan) { p.Requests, p.Clients = 10, 1e9 }, "up to")
	f(func(p *Plan) { p.Requests = 2e6 }, "up to")
	f(func(p *Plan) { p.Seconds = -1 }, "from 0 on")
	f(func(p *Plan) { p.Seconds = 1e-9 }, "no chat begins")
	f(func(p *Plan) { p.Surges = []Surge{{From: 1, Until: 9, Factor: 1e7}} }, "lower rate")
	f(func(p *Plan) { p.Surges = []Surge{{From: 1, Until: 9, Factor: math.NaN()}} }, "surge 1")
	f(func(p *Plan) { p.Surges = []Surge{{From: 9, Until: 1, Factor: 2}} }, "surge 1")
	p := Plan{Classes: []Class{chats}, Seconds: 1e9, Requests: 10, Workers: 1}
	if l, err := p.Draw(1); err != nil || l.Requests() != 10 {
		t.Errorf("ten requests of a billion seconds: %d, %v", l.Requests(), err)
	}
}

// No chat begins in a surge of factor 0, and behind it as many as before it.
func TestLull(t *testing.T) {
	p := Plan{Classes: []Class{chats}, Seconds: 300, Workers: 2, Surges: []Surge{{From: 100, Until: 200, Factor: 0}}}
	var third [3]int
	for seed := range uint64(5) {
		for _, c := range drawn(t, p, seed).Chats {
			third[c.Start/(100*time.Second)]++
		}
	}
	if near := func(n int) bool { return n > 900 && n < 1100 }; !near(third[0]) || third[1] != 0 || !near(third[2]) {
		t.Errorf("%d chats before, in and behind the lull; want about 1000, none and 1000", third)
	}
}

const chatTrace = `{"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.1, "input_length": 20, "output_length": 5, "hash_ids": [3, 9]}
{"chat_id": 9, "parent_chat_id": 7, "timestamp": 63.6, "input_length": 40, "output_length": 5, "hash_ids": [3, 9, 4]}
{"chat_id": 11, "parent_chat_id": -1, "timestamp": 63.6, "input_length": 1, "output_length": 1, "hash_ids": [5]}
`

func TestReadTrace(t *testing.T) {
	l, err := ReadTrace(strings.NewReader(chatTrace), "chats", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Chats) != 3 || l.Chats[1].Start != 2500*time.Millisecond || l.Chats[0].Session != l.Chats[1].Session ||
		l.Chats[2].Session == l.Chats[0].Session || l.Chats[1].Turns[0].Tokens() != 40 ||
		l.Chats[0].Turns[0].Parts[0] != l.Chats[1].Turns[0].Parts[0] {
		t.Errorf("read as %+v", l.Chats)
	}
	if part := l.Part(time.Second, 0, 1); len(part.Chats) != 1 || part.Chats[0].Start != 1500*time.Millisecond {
		t.Errorf("a part of it: %+v", part.Chats)
	}
	m, err := ReadTrace(strings.NewReader(`{"timestamp": 0, "input_length": 600, "output_length": 30, "hash_ids": [0, 7]}`), "m", 0)
	if err != nil || len(m.Chats) != 1 || m.Chats[0].Turns[0].Tokens() != 600 || len(m.Chats[0].Turns[0].Parts) != 2 {
		t.Errorf("Mooncake's form: %+v, %v", m, err)
	}
	closed, err := ReadTrace(strings.NewReader(`{"session_id": "a", "timestamp": 9, "input_length": 9, "output_length": 3, "hash_ids": [0]}
{"session_id": "a", "delay": 2500, "input_length": 20, "output_length": 3, "hash_ids": [0]}`), "closed", 0)
	if err != nil || len(closed.Chats) != 1 || len(closed.Chats[0].Turns) != 2 ||
		closed.Chats[0].Turns[1].Gap != 2500*time.Millisecond || closed.Chats[0].Turns[1].After[0] != 0 {
		t.Errorf("a session in closed loop: %+v, %v", closed, err)
	}
	for line, want := range map[string]string{
		`{"chat_id": 1, "timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1]}`:                        "no parent_chat_id",
		`{"chat_id": 1, "parent_chat_id": -1, "timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": [1]}`: "within a year",
		`{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1, "input_length": 17, "output_length": 1, "hash_ids": [1]}`: "want 2",
		`{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1, "input_length": 0, "output_length": 1, "hash_ids": []}`:   "leave such requests out",
		`{"chat_id": 1`: "chats:1",
	} {
		if _, err := ReadTrace(strings.NewReader(line), "chats", 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one of %q", line, err, want)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(chatTrace)
	f.Add(`{"timestamp": 0, "input_length": 600, "output_length": 30, "hash_ids": [0, 7]}`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ReadTrace(strings.NewReader(text), "trace", 100)
		if err != nil {
			return
		}
		for i := range l.Chats {
			for k := range l.Chats[i].Turns {
				if n := l.Chats[i].Turns[k].Tokens(); n < 1 {
					t.Fatal(fmt.Sprint("a prompt of ", n, " tokens"))
				}
			}
		}
	})
}
