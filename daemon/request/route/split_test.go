package route

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestSplits: the threshold is the floor, and above it the sooner of the two for all clients.
func TestSplits(t *testing.T) {
	f := func(what, fleet string, running uint32, threshold int, rate float64, want bool) {
		t.Helper()
		s := newScene(t, fleet)
		s.label("d p")
		a := s.fenced(first, Claim{}, "for=d")
		a.Prompt = completion(first, text("q", 50))
		c := s.chosen(a)
		to, _ := c.Next(s.now)
		row := &c.fleet.frame.Rows[to.row]
		row.InFlight, row.Running, row.MetricsAge = 60, running, 1
		rule := &SplitRule{Threshold: threshold, Fence: worker.Fence{"for=p"}, Rate: rate}
		if got := rule.Splits(c, to); got != want {
			t.Errorf("%s: splits %v; want %v, of %d tokens", what, got, want, Lacking(c, to))
		}
	}
	f("below the threshold", "d p", 50, 1_000_000, 1e9, false)
	f("no rate", "d p", 0, 1, 0, true)
	f("nobody is disturbed", "d p", 0, 1, 1e4, false)
	f("answers are disturbed", "d p", 50, 1, 1e9, true)
	f("the transfer takes too long", "d p", 50, 1, 100, false)
	f("the prefiller is busy", "d p:queued", 2, 1, 1e9, false)
	f("no prefiller is up, which is counted", "d p:down", 50, 1, 1e9, true)
}

// TestSplitsByInput: rule = "threshold" is that of HyperPod's routingThreshold: it counts the prompt, whatever of it the
// worker that answers holds, and 0 splits each.
func TestSplitsByInput(t *testing.T) {
	s := newScene(t, "d p")
	s.label("d p")
	ask := func() *Choice {
		a := s.fenced(first, Claim{}, "for=d")
		a.Prompt = completion(first, text("q", 50))
		return s.chosen(a)
	}
	c := ask()
	to, _ := c.Next(s.now)
	s.end(&s.send(c, to).ticket, judge.Answered)
	c = ask()
	to, _ = c.Next(s.now)
	size := Expect(c).Tokens
	if held := size - Lacking(c, to); held < size/2 {
		t.Fatalf("the case is off: d is believed to hold %d of %d tokens", held, size)
	}
	for threshold, want := range map[int]bool{0: true, 1: true, size: true, size + 1: false} {
		rule := &SplitRule{Threshold: threshold, Fence: worker.Fence{"for=p"}, Rate: 100, Always: true}
		if got := rule.Splits(c, to); got != want {
			t.Errorf("a threshold of %d of %d tokens: splits %v", threshold, size, got)
		}
		rule.Always = false
		if rule.Splits(c, to) {
			t.Errorf("a threshold of %d, and a transfer that is slow: it is not sooner", threshold)
		}
	}
}

// TestAPrefillAloneIsQueuedUntilItsEnd: its answer comes in one piece, whose first byte shows when the prefill ended.
func TestAPrefillAloneIsQueuedUntilItsEnd(t *testing.T) {
	f := func(leg Leg, want bool) {
		t.Helper()
		s := newScene(t, "a")
		a := s.asking(completion(first, text("q", 500)), Claim{})
		a.Leg = leg
		c := s.chosen(a)
		to, _ := c.Next(s.now)
		trip := s.send(c, to)
		s.now = s.now.Add(time.Hour)
		if got := s.chosen(s.ask(first, Claim{})).fleet.frame.Rows[0].PendingTokens > 0; got != want {
			t.Errorf("leg %d: queued after an hour %v; want %v", leg, got, want)
		}
		s.end(&trip.ticket, judge.Answered)
	}
	f(Prefill, true)
	f(Answer, false)
}

// TestNoPrefillOfASilentPrefiller: the worker that answers computes what the only prefiller, which hangs, would not. An
// answer is asked of a worker that hangs, if there is no other.
func TestNoPrefillOfASilentPrefiller(t *testing.T) {
	f := func(leg Leg, want Verdict) {
		t.Helper()
		s := newScene(t, "a:silent")
		a := s.asking(completion(first, text("q", 500)), Claim{})
		a.Leg = leg
		if _, got := s.choose(a); got != want {
			t.Errorf("leg %d: %v; want %v", leg, got, want)
		}
	}
	f(Prefill, NoWorker)
	f(Answer, Chosen)
	f(Whole, Chosen)
}

// BenchmarkSplits is the rule beside a decision: it fills and matches the prefillers once more.
func BenchmarkSplits(b *testing.B) {
	s := newScene(b, "d e f g p q r s")
	s.label("d e f g p q r s")
	r := completion(first, text("system ", 50))
	a := s.asking(r, Claim{})
	var c Choice
	s.Choose(&c, &a)
	to, _ := c.Next(s.now)
	rule := &SplitRule{Threshold: 1, Rate: 4e5}
	b.ReportAllocs()
	for b.Loop() {
		rule.Splits(&c, to)
	}
}
