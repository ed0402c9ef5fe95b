package main

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
)

// TestMarks: the exit status rests on them.
func TestMarks(t *testing.T) {
	f := func(grows, stillGrows, hits, unused float64, failed int, want bool) {
		t.Helper()
		l := &line{Mode: "hand-over", Before: side{Requests: 1, Hits: .9}, During: side{Requests: 1, Hits: hits}, Moved: 9,
			Grows: grows, Unused: unused, Failed: failed}
		if got := l.ok(&line{Grows: stillGrows}); got != want {
			t.Errorf("%+v beside %v: %v", l, stillGrows, got)
		}
	}
	f(1.05, .9, .89, .1, 0, true)
	f(1.2, .9, .89, .1, 0, false)
	f(1.2, 1.2, .89, .1, 0, true)
	f(1.05, 1, .87, .1, 0, false)
	f(1.05, 1, .89, .3, 0, false)
	f(1.05, 1, .89, .1, 1, false)
}

// TestSide: only requests of the time count.
func TestSide(t *testing.T) {
	c := clients{seen: []answer{{asked: time.Second, ttft: 9, prompt: 100},
		{asked: 40 * time.Second, ttft: 1, prompt: 100, cached: 50}, {asked: 90 * time.Second, ttft: 5, prompt: 100}}}
	if got := c.side(filled, first); got != (side{Requests: 1, Hits: .5, P50: 1, P90: 1}) {
		t.Errorf("%+v", got)
	}
}

// TestPrompt: a prompt repeats the answers that came, and the text of those that were not asked for.
func TestPrompt(t *testing.T) {
	turn := &traffic.Turn{Parts: []traffic.Part{{ID: 1, Tokens: 2, Answer: true}, {ID: 2, Tokens: 3, Answer: true}}}
	skipped := string(traffic.AppendText(nil, turn.Parts[:1]))
	if got := string(prompt(turn, map[uint64]string{2: "came"})); got != skipped+"came" {
		t.Errorf("%q", got)
	}
}
