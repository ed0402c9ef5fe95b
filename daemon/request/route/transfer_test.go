package route

import (
	"math"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestTransferRate: the mean of the first samples, then a running one that a stall moves little, and that is forgotten.
func TestTransferRate(t *testing.T) {
	now := start
	var tr transfer
	want := func(what string, rate, off float64) {
		t.Helper()
		if got := tr.rate(now); math.Abs(got-rate) > off*rate {
			t.Errorf("%s: %.0f tokens a second; want %.0f", what, got, rate)
		}
	}
	want("nothing known", 0, 0)
	tr.learn(1, 10_000, now)
	want("one sample", 0, 0)
	tr.learn(3, 10_000, now)
	want("two", 5_000, 1e-9)
	tr.learn(1, minHanded-1, now)
	want("too short a prompt", 5_000, 1e-9)
	for range 500 {
		now = now.Add(time.Second)
		tr.learn(.02, 8000, now)
	}
	want("many", 400_000, .01)
	tr.learn(1e6, 8000, now)
	want("one stall", 400_000, .1)
	tr.learn(-5, 8000, now)
	want("less than nothing", 400_000, .1)
	now = now.Add(10 * time.Minute)
	want("ten minutes later", 400_000, .1)
	now = now.Add(20 * time.Minute)
	want("half an hour later", 0, 0)
	tr.learn(.04, 8000, now)
	tr.learn(.04, 8000, now)
	want("new ones", 200_000, .35)
	fast := transfer{}
	fast.learn(-1, 8000, now)
	fast.learn(-1, 8000, now)
	if r := fast.rate(now); math.Abs(r*leastSeconds-1) > 1e-9 {
		t.Errorf("%g tokens a second", r)
	}
}

// TestHanded: a stream whose prompt was handed over teaches the rate, less what the worker had to do itself.
func TestHanded(t *testing.T) {
	f := func(what string, stream, told bool, want float64) {
		t.Helper()
		s := newScene(t, "a")
		for range 3 {
			a := s.asking(completion(first, text("q", 2000)), Claim{})
			a.Prompt.Stream = stream
			c := s.chosen(a)
			to, _ := c.Next(s.now)
			to.Handed = true
			row := &c.fleet.frame.Rows[to.row]
			row.Wait, row.Slow = 1, 1
			var trip Trip
			c.Send(&trip, to, nil, s.now)
			s.now = s.now.Add(400 * time.Millisecond) // the prefill, by which what is queued got shorter
			lacks := Lacking(c, to)
			if told {
				trip.Handed(to, s.now)
			}
			s.now = s.now.Add(600*time.Millisecond + time.Duration(float64(lacks)/20_000*1e9))
			trip.FirstByte(s.now)
			trip.FirstByte(s.now.Add(time.Hour)) // only the first counts
			trip.End(&judge.Outcome{Kind: judge.Answered}, End{At: s.now})
			s.Index.Clear()
		}
		if got := s.TransferRate(s.now); math.Abs(got-want) > .02*want {
			t.Errorf("%s: %.0f tokens a second; want %.0f", what, got, want)
		}
	}
	f("a stream", true, true, 20_000)
	f("an answer in one piece", false, true, 0)
	f("a prompt of its own", true, false, 0)
}

// TestGivenPromptsSayNothingOfACache: what a prefiller held is no sign of how much the worker that answers can keep.
func TestGivenPromptsSayNothingOfACache(t *testing.T) {
	f := func(given, want bool) {
		t.Helper()
		s := newScene(t, "a")
		c := s.chosen(s.asking(completion(first, text("q", 500)), Claim{}))
		to, _ := c.Next(s.now)
		to.Handed = given
		var trip Trip
		c.Send(&trip, to, nil, s.now)
		before, _ := s.caps.tokens(to.Worker.Slot())
		trip.End(&judge.Outcome{Kind: judge.Answered}, End{Reply: answer("", 512, 256), Whole: true, At: s.now})
		if after, _ := s.caps.tokens(to.Worker.Slot()); (after != before) != want {
			t.Errorf("given %v: the cache was taken to hold %d tokens, and now %d", given, before, after)
		}
	}
	f(false, true)
	f(true, false)
}

// TestLearntRateDecides: the rule goes by what was learnt, unless a rate is configured or the threshold alone decides.
func TestLearntRateDecides(t *testing.T) {
	f := func(what string, learnt float64, rule SplitRule, want bool) {
		t.Helper()
		s := newScene(t, "d p")
		s.label("d p")
		if learnt > 0 {
			s.transfer.learn(1000/learnt, 1000, s.now)
			s.transfer.learn(1000/learnt, 1000, s.now)
		}
		a := s.fenced(first, Claim{}, "for=d")
		a.Prompt = completion(first, text("q", 50))
		c := s.chosen(a)
		to, _ := c.Next(s.now)
		row := &c.fleet.frame.Rows[to.row]
		row.InFlight, row.Running, row.MetricsAge = 60, 50, 1
		rule.Fence = worker.Fence{"for=p"}
		if got := rule.Splits(c, to); got != want {
			t.Errorf("%s: splits %v; want %v", what, got, want)
		}
	}
	f("nothing learnt", 0, SplitRule{}, true)
	f("a fast network", 1e8, SplitRule{}, true)
	f("a slow one", 100, SplitRule{}, false)
	f("a slow one, and a threshold", 100, SplitRule{Always: true}, true)
	f("a slow one, configured as fast", 100, SplitRule{Rate: 1e9}, true)
	f("a fast one, configured as slow", 1e8, SplitRule{Rate: 100}, false)
}
