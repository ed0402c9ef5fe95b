package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// simulation drives an engine in virtual time and keeps what it reports.
type simulation struct {
	*Engine
	t      *testing.T
	clock  time.Duration
	events []Event
	view   view // of the changes taken
}

func simulate(t *testing.T, cfg Config) *simulation {
	t.Helper()
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &simulation{Engine: e, t: t, view: view{}}
	t.Cleanup(s.check)
	return s
}

// check holds an idle engine to having all its blocks back, and the events to their order.
func (s *simulation) check() {
	s.t.Helper()
	for i := 1; i < len(s.events); i++ {
		if s.events[i].At < s.events[i-1].At {
			s.t.Errorf("event %d at %v comes after one at %v", i, s.events[i].At, s.events[i-1].At)
			break
		}
	}
	if st := s.Stats(); st.Running+st.Waiting > 0 {
		return
	}
	if n := len(queueOf(s.t, s.sched.pool)); n != s.sched.pool.usable() {
		s.t.Errorf("idle with %d of %d blocks free", n, s.sched.pool.usable())
	}
}

// newAsk makes a prompt of n tokens named by label, for a reply of max tokens.
func newAsk(label uint64, n, max int) *Sequence {
	q := NewSequence(AppendTokens(nil, TextOfTokens(label, n)), "", 0, BlockTokens)
	q.MaxTokens = max
	return &q
}

// ask submits newAsk.
func (s *simulation) ask(label uint64, n, max int) *Sequence {
	q := newAsk(label, n, max)
	s.submit(q)
	return q
}

func (s *simulation) submit(q *Sequence) {
	s.t.Helper()
	if err := s.Submit(s.clock, q); err != nil {
		s.t.Fatal(err)
	}
}

// to advances to an instant in one stride.
func (s *simulation) to(at time.Duration) {
	s.events = append(s.events, s.Advance(at)...)
	s.clock = at
}

// next advances to the next event.
func (s *simulation) next() bool {
	at, ok := s.NextEvent()
	if ok {
		s.to(at)
	}
	return ok
}

// await advances from event to event until all the sequences have ended.
func (s *simulation) await(seqs ...*Sequence) {
	s.t.Helper()
	for _, q := range seqs {
		for q.Finish() == Unfinished {
			if !s.next() {
				s.t.Fatal("nothing is to come, and a sequence has not ended")
			}
		}
	}
}

// kinds lists the kinds of a sequence's events, Tokens aside.
func (s *simulation) kinds(q *Sequence) (kinds []Kind) {
	for _, ev := range s.events {
		if ev.Seq == q && ev.Kind != Tokens {
			kinds = append(kinds, ev.Kind)
		}
	}
	return kinds
}

func TestEventsTellALife(t *testing.T) {
	s := simulate(t, Config{})
	q := s.ask(1, 100, 3)
	if at, ok := s.NextEvent(); at != 0 || !ok {
		t.Fatalf("the next event of a submitted sequence is at %v, %v; want 0, true", at, ok)
	}
	s.await(q)
	if got, want := s.kinds(q), []Kind{Admitted, FirstToken, Finished}; !slices.Equal(got, want) {
		t.Errorf("kinds %v, want %v", got, want)
	}
	times := q.Times()
	want := []time.Duration{times.Admitted, times.First, times.Last}
	var got []time.Duration
	for _, ev := range s.events {
		if ev.Kind != Tokens {
			got = append(got, ev.At)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("events at %v, the sequence's own times are %v", got, want)
	}
	if q.Finish() != FinishLength || q.OutputTokens() != 3 || q.PromptTokens() != 100 {
		t.Errorf("ended by %q with %d tokens of %d", q.Finish(), q.OutputTokens(), q.PromptTokens())
	}
	if _, ok := s.NextEvent(); ok {
		t.Error("an idle engine has a next event")
	}
	if again := s.Advance(s.clock); len(again) > 0 {
		t.Errorf("told twice: %v", again)
	}
}

// load is a mixed load: turns of conversations that share heads, arriving at random.
func load(seed uint64, n int) (seqs []*Sequence, arrivals []time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 7))
	at := time.Duration(0)
	for range n {
		q := newAsk(uint64(rng.IntN(9)), 50+rng.IntN(6000), 1+rng.IntN(200))
		if rng.IntN(3) == 0 {
			q.Reply = q.Reply.EndingNear(64, 0)
		}
		seqs = append(seqs, q)
		arrivals = append(arrivals, at)
		at += time.Duration(rng.IntN(150)) * time.Millisecond
	}
	return seqs, arrivals
}

// play submits a load at its instants and lets stride choose how far each Advance goes, given the next event. It
// returns a line for each event, in which sequences stand by their number.
func play(t *testing.T, cfg Config, seed uint64, stride func(now, next time.Duration) time.Duration) ([]string, Stats) {
	t.Helper()
	s := simulate(t, cfg)
	seqs, arrivals := load(seed, 60)
	for i, q := range seqs {
		q.Owner = i
		for at, ok := s.NextEvent(); ok && at < arrivals[i]; at, ok = s.NextEvent() {
			s.to(min(arrivals[i], stride(s.clock, at)))
		}
		s.clock = arrivals[i]
		s.submit(q)
	}
	for at, ok := s.NextEvent(); ok; at, ok = s.NextEvent() {
		s.to(stride(s.clock, at))
	}
	var lines []string
	for _, ev := range s.events {
		if ev.Kind != Tokens { // these are shown when somebody looks
			lines = append(lines, fmt.Sprintf("%d %d %v", ev.Seq.Owner, ev.Kind, ev.At))
		}
	}
	for _, q := range seqs {
		lines = append(lines, fmt.Sprintf("%v %v %d %d %q", q.Times(), q.Finish(), q.OutputTokens(), q.CachedTokens(),
			q.Reply.Text(q.OutputTokens())))
	}
	return lines, s.Stats()
}

func byEvent(_, next time.Duration) time.Duration { return next }

// TestSameSeeds: the same load gives the same events, times, texts and sums; another seed does not.
func TestSameSeeds(t *testing.T) {
	cfg := Config{KVTokens: 20000}
	first, stats := play(t, cfg, 1, byEvent)
	again, same := play(t, cfg, 1, byEvent)
	if !slices.Equal(first, again) || fmt.Sprint(stats) != fmt.Sprint(same) {
		t.Error("the same seed gives another run")
	}
	if stats.Preemptions == 0 || stats.CachedTokens == 0 {
		t.Errorf("%d preemptions, %d tokens cached: the load tries too little", stats.Preemptions, stats.CachedTokens)
	}
	if other, _ := play(t, cfg, 2, byEvent); slices.Equal(first, other) {
		t.Error("another seed gives the same run")
	}
}

// TestStridesChangeNothing: whoever looks at each event, at random or only at the ends learns of the same life.
func TestStridesChangeNothing(t *testing.T) {
	t.Run("GPU alone", func(t *testing.T) { compareStrides(t, Config{KVTokens: 20000}) })
	t.Run("with a CPU tier", func(t *testing.T) { compareStrides(t, Config{KVTokens: 20000, CPUTokens: 60000}) })
}

func compareStrides(t *testing.T, cfg Config) {
	want, stats := play(t, cfg, 3, byEvent)
	if (stats.CPUTokens > 0) != (cfg.CPUTokens > 0) {
		t.Errorf("%d tokens loaded from a CPU tier of %d", stats.CPUTokens, cfg.CPUTokens)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	random := func(now, next time.Duration) time.Duration {
		return max(now, next) + time.Duration(rng.IntN(400))*time.Millisecond
	}
	f := func(what string, cfg Config, stride func(now, next time.Duration) time.Duration) {
		t.Helper()
		got, sums := play(t, cfg, 3, stride)
		if !slices.Equal(got, want) {
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s: line %d is %s, want %s", what, i, got[i], want[i])
				}
			}
		}
		if fmt.Sprint(sums) != fmt.Sprint(stats) {
			t.Errorf("%s: sums %+v, want %+v", what, sums, stats)
		}
	}
	f("random strides", cfg, random)
	cfg.ShowEvery = 200 * time.Millisecond
	f("gathered tokens", cfg, byEvent)
	cfg.ShowEvery = time.Hour
	f("first tokens and ends alone", cfg, byEvent)
	f("random strides over gathered tokens", cfg, random)
}

// TestVirtualTime runs 2,000 simulated seconds of one busy worker, which takes a fraction of a second and no socket.
func TestVirtualTime(t *testing.T) {
	s := simulate(t, Config{ShowEvery: time.Hour})
	begin := time.Now()
	const seconds = 2000
	var all []*Sequence
	for i := range seconds {
		at := time.Duration(i) * time.Second
		for next, ok := s.NextEvent(); ok && next < at; next, ok = s.NextEvent() {
			s.to(next)
		}
		s.clock = at
		all = append(all, s.ask(uint64(i%50), 1000+i%3000, 200))
	}
	s.await(all...)
	st := s.Stats()
	if st.GeneratedTokens != 200*seconds || s.clock < seconds*time.Second {
		t.Errorf("%d tokens by %v", st.GeneratedTokens, s.clock)
	}
	if calls := len(s.events); calls > 4*seconds {
		t.Errorf("%d events for %d sequences", calls, seconds)
	}
	wall := time.Since(begin)
	t.Logf("%v simulated in %v: %.0f s a second", s.clock, wall, s.clock.Seconds()/wall.Seconds())
}
