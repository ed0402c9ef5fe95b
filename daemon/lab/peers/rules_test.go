package peers

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

const block = 100 // tokens

// chain is the hashes of a prompt of so many blocks, of which the first shared are those of every such chain.
func chain(name uint64, blocks, shared int) []uint64 {
	c := make([]uint64, blocks)
	for i := range c {
		c[i] = uint64(i + 1)
		if i >= shared {
			c[i] += name<<32 + uint64(shared)<<16 // as what stands before it differs too
		}
	}
	return c
}

// prompt is a request of the chain.
func prompt(id int, c []uint64) *trial.Request {
	return &trial.Request{ID: id, Session: uint64(id), Prompt: len(c) * block, Chain: c, BlockTokens: block}
}

// scene is one rule with a fleet of workers that are up.
type scene struct {
	t     *testing.T
	rule  trial.Chooser
	fleet []trial.View
	now   time.Duration
	ids   int
}

func begin(t *testing.T, rule trial.Chooser, inFlight ...int) *scene {
	s := &scene{t: t, rule: rule}
	for i, n := range inFlight {
		s.fleet = append(s.fleet, trial.View{Up: true, InFlight: n, KVTokens: 1000 * block})
		rule.Up(0, i)
	}
	return s
}

// holds has workers hold a chain, by what was sent there and by their events.
func (s *scene) holds(c []uint64, workers ...int) *scene {
	for _, w := range workers {
		s.ids++
		q := prompt(s.ids, c)
		s.rule.Choose(s.now, q, s.fleet)
		s.rule.Sent(s.now, q, w)
		s.rule.First(s.now, q, w)
		s.rule.End(s.now, q, w, &trial.End{Output: 1, Cached: -1})
		if h, ok := s.rule.(trial.Hearer); ok {
			h.Stored(s.now, w, c)
		}
	}
	return s
}

func (s *scene) want(what string, worker int, c []uint64) *scene {
	s.t.Helper()
	s.ids++
	if got := s.rule.Choose(s.now, prompt(s.ids, c), s.fleet); got != worker {
		s.t.Errorf("%s: worker %d; want %d", what, got, worker)
	}
	return s
}

var (
	chat = chain(1, 10, 0)
	turn = append(chain(1, 10, 0), chain(2, 2, 0)...) // the chat's next
	cold = chain(3, 10, 0)
)

func TestRoundRobin(t *testing.T) {
	s := begin(t, new(RoundRobin), 5, 0, 9)
	s.want("first", 0, chat).want("second", 1, chat).want("third", 2, chat).want("round", 0, chat)
	s.fleet[1].Up = false
	s.want("past one that is down", 2, chat)
}

func TestLeastRequests(t *testing.T) {
	s := begin(t, new(LeastRequests), 5, 1, 1)
	s.want("the fewest", 1, chat).want("the next of equals", 2, chat).want("round", 1, chat)
}

func TestSession(t *testing.T) {
	s := begin(t, new(Session), 0, 0, 0, 0)
	count := make([]int, 4)
	home := make(map[uint64]int)
	for id := uint64(1); id <= 400; id++ {
		home[id] = s.rule.Choose(0, &trial.Request{Session: id}, s.fleet)
		count[home[id]]++
	}
	for w, n := range count {
		if n < 60 || n > 150 {
			t.Errorf("worker %d has %d of 400 sessions", w, n)
		}
	}
	s.fleet[2].Up = false
	for id := uint64(1); id <= 400; id++ {
		got := s.rule.Choose(0, &trial.Request{Session: id}, s.fleet)
		if got == 2 || home[id] != 2 && got != home[id] {
			t.Fatalf("session %d of worker %d goes to %d when worker 2 is down", id, home[id], got)
		}
	}
}

// Without a session the worker that was sent the fewest in a minute gets the request.
func TestSessionless(t *testing.T) {
	s := begin(t, new(Session), 0, 0)
	q := &trial.Request{}
	for range 3 {
		s.rule.Sent(0, q, 0)
	}
	s.rule.Sent(50*time.Second, q, 1)
	f := func(at time.Duration, want int) {
		t.Helper()
		if got := s.rule.Choose(at, q, s.fleet); got != want {
			t.Errorf("at %v worker %d; want %d", at, got, want)
		}
	}
	f(55*time.Second, 1)
	f(61*time.Second, 0)
}

func TestStackPrefix(t *testing.T) {
	s := begin(t, NewStackPrefix(1), 0, 0, 90)
	s.holds(chat, 2).want("the longest match, whatever its load", 2, turn)
	s.holds(chat, 0)
	seen := make(map[int]int)
	for range 200 {
		seen[s.rule.Choose(0, prompt(1, turn), s.fleet)]++
	}
	if seen[1] > 0 || seen[0] < 70 || seen[2] < 70 {
		t.Errorf("among two that hold as much it chose %v", seen)
	}
}

func TestStackKVAware(t *testing.T) {
	s := begin(t, &StackKVAware{Threshold: 3 * block}, 0, 0, 0)
	home := s.rule.Choose(0, &trial.Request{Session: 9}, s.fleet)
	holder := (home + 1) % 3
	ask := func(c []uint64) int {
		q := prompt(0, c)
		q.Session = 9
		return s.rule.Choose(0, q, s.fleet)
	}
	if got := ask(turn); got != home {
		t.Errorf("nobody holds it: %d; want the session's %d", got, home)
	}
	s.holds(chat, holder)
	if got := ask(turn); got != holder {
		t.Errorf("two blocks of twelve are missing: %d; want the holder %d", got, holder)
	}
	if got := ask(append(chat[:10:10], chain(7, 4, 0)...)); got != home {
		t.Errorf("four blocks are missing: %d; want the session's %d", got, home)
	}
	// Of two that hold the first chunk the first counts. If that is the session's it has but one block: by session, too.
	s.rule.(trial.Hearer).Stored(0, home, chat[:1])
	if got := ask(turn); got != min(holder, home) {
		t.Errorf("worker %d holds the first chunk, %d all: %d; want %d", home, holder, got, min(holder, home))
	}
	s.rule.(trial.Hearer).Removed(0, holder, chat)
	if got := ask(turn); got != home {
		t.Errorf("it was removed: %d; want the session's %d", got, home)
	}
}

func TestSMG(t *testing.T) {
	rule := func() trial.Chooser {
		return &SMG{remembering: remember(Memory{}), Threshold: .5, Gap: 8, Factor: 1.5}
	}
	begin(t, rule(), 3, 0, 8).holds(chat, 2).want("a match of over half", 2, turn).
		want("none", 1, cold).
		want("half is not over half", 1, append(chat[:10:10], cold...))
	begin(t, rule(), 3, 0, 9).holds(chat, 2).want("out of balance", 1, turn)
	begin(t, rule(), 20, 20, 29).holds(chat, 2).want("a gap, but no factor", 2, turn)
	begin(t, rule(), 20, 21, 31).holds(chat, 2).want("both", 0, turn)
}

func TestLLMD(t *testing.T) {
	rule := func(cap int) trial.Chooser {
		return &LLMD{remembering: remember(Memory{}), Prefix: 3, Queue: 2, KV: 2, Cap: cap}
	}
	begin(t, rule(0), 0, 0, 0).holds(chat, 1).want("a match", 1, turn)
	s := begin(t, rule(0), 0, 0, 0).holds(chat, 1)
	s.fleet[2].KVUsage = .1
	s.fleet[1].Waiting, s.fleet[1].KVUsage = 1, .4 // 3*.83 + 0 + 2*.6 = 3.7 against 4
	s.want("any queue at all is the longest", 0, turn)
	s.fleet[1].KVUsage = .2 // 4.1
	s.want("but for more free KV", 1, turn)
	s = begin(t, rule(2*block), 0, 0).holds(chat, 1)
	s.want("equal in what counts", 1, append(chat[:2:2], cold...))
	s.fleet[1].KVUsage = .9
	s.want("a whole match of what counts is still but 3", 1, turn)
	s.fleet[1].Waiting = 3
	s.want("and gives way to 2 + 1.8", 0, turn)
}

func TestDynamo(t *testing.T) {
	rule := func(scale, credit float64) *Dynamo { return &Dynamo{Scale: scale, Credit: credit} }
	begin(t, rule(1, 1), 0, 0).holds(chat, 1).want("held there", 1, turn)
	// 15 more blocks are active on 1, the match there is 10: 2 + 27 against 12 + 12.
	busy := func(d *Dynamo) *scene {
		s := begin(t, d, 0, 0).holds(chat, 1)
		q := prompt(99, chain(8, 15, 0))
		d.look(q, s.fleet)
		d.Sent(0, q, 1)
		d.First(0, q, 1)
		return s
	}
	busy(rule(1, 1)).want("active blocks outweigh a match", 0, turn)
	busy(rule(4, 1)).want("not at four times the scale", 1, turn)
	s := busy(rule(1, 1))
	s.rule.End(0, prompt(99, chain(8, 15, 0)), 1, &trial.End{})
	s.want("they are active no more", 1, turn)
	// Waiting prefill counts at the scale: 11 blocks there against 10 matched.
	s = begin(t, rule(64, 1), 0, 0).holds(chat, 1)
	q := prompt(99, chain(8, 11, 0))
	s.rule.Choose(0, q, s.fleet)
	s.rule.Sent(0, q, 1)
	s.want("prefill waits there", 0, turn)
	s.rule.First(0, q, 1)
	s.want("and waits no more", 1, turn)
	s.rule.Down(0, 1)
	s.fleet[1].Up = false
	s.want("it is down", 0, turn)
}

func TestAIBrix(t *testing.T) {
	rule := func() trial.Chooser {
		return &AIBrix{remembering: remember(Memory{}), Deviations: 1, Factor: 2, Gap: 8}
	}
	begin(t, rule(), 2, 1, 3).holds(chat, 0).want("a match within one deviation", 0, turn).want("no match", 1, cold)
	begin(t, rule(), 2, 1, 4).holds(chat, 2).want("over mean and deviation", 1, turn)
	begin(t, rule(), 2, 2, 2).holds(chat[:5], 1).holds(chat, 2).want("the longest", 2, turn)
	begin(t, rule(), 2, 3, 1, 0).holds(chat, 0, 2).want("of equal matches the fewest requests", 2, turn)
	// The mean is 3.75: 12 is over 2*4.75 and 11 over 1. Only the idlest is looked at, match or not.
	begin(t, rule(), 1, 1, 1, 12).holds(chat, 3).want("far out of balance", 1, turn)
	begin(t, rule(), 2, 1, 2, 12).holds(chat, 0).want("a match that is not the idlest's", 1, turn)
}

func TestPreble(t *testing.T) {
	rule := func(threshold, rebalance, eviction float64) *Preble {
		return &Preble{remembering: remember(Memory{}), Threshold: threshold, Rebalance: rebalance, Eviction: eviction}
	}
	begin(t, rule(.5, 0, 0), 0, 0, 0).holds(chat, 1).want("more cached than not", 1, turn).want("none", 2, cold)
	s := begin(t, rule(.5, 0, 0), 0, 0, 0).holds(chat, 1)
	s.want("less cached than not, and a load there", 2, append(chat[:10:10], chain(5, 11, 0)...))
	s.now = prebleWindow + 1
	s.want("the load is forgotten, the prefix is not", 1, append(chat[:10:10], chain(5, 11, 0)...))
	load := func(p *Preble, seconds float64, worker int) {
		p.of(worker).sent = append(p.of(worker).sent, sending{seconds: seconds})
		p.of(worker).seconds += seconds
	}
	p := rule(.5, 3, 0)
	s = begin(t, p, 0, 0, 0).holds(chat, 1)
	load(p, 2.5, 1)
	s.want("loaded, under three times a second", 1, turn)
	load(p, 1, 1)
	s.want("over it", 2, turn)
	p = rule(1, 0, 1)
	s = begin(t, p, 0, 0).holds(chat, 1)
	load(p, .1, 0)
	s.fleet[0].KVTokens, s.fleet[1].KVTokens = 1000*block, 10*block
	s.want("it would push out ten blocks", 0, cold)
	p.Eviction = 0
	s.want("which does not count", 1, cold)
}

func TestLoadAware(t *testing.T) {
	rule := func() trial.Chooser { return &LoadAware{remembering: remember(Memory{}), Beta: .3} }
	// The mean is 10; the match is .83 of the prompt.
	begin(t, rule(), 10, 10, 10).holds(chat, 1).want("a match", 1, turn)
	begin(t, rule(), 1, 28, 1).holds(chat, 1).want("27 more, .81", 1, turn)
	begin(t, rule(), 1, 29, 0).holds(chat, 1).want("29 more, .87", 2, turn)
	begin(t, rule(), 4, 2, 3).holds(chat, 0).want("no match", 1, cold)
}
