package main

import (
	"strings"
	"testing"
	"time"
)

func TestContents(t *testing.T) {
	root := func(tokens []uint32, hashes ...string) event {
		return event{Kind: "stored", Hashes: hashes, Tokens: tokens, Size: 2}
	}
	child := func(parent string, tokens []uint32, hashes ...string) event {
		return event{Kind: "stored", Hashes: hashes, Parent: &parent, Tokens: tokens, Size: 2}
	}
	removed := func(hashes ...string) event { return event{Kind: "removed", Hashes: hashes} }
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name   string
		events []event
		ids    []uint32
		want   int
	}{
		{"nothing", nil, prompt, 0},
		{"in one event", []event{root(prompt[:6], "a", "b", "c")}, prompt, 6},
		{"piece by piece", []event{root(prompt[:2], "a"), child("a", prompt[2:6], "b", "c")}, prompt, 6},
		{"never the whole prompt", []event{root(prompt[:6], "a", "b", "c")}, prompt[:6], 4},
		{"another start", []event{root([]uint32{9, 2, 3, 4}, "a", "b")}, prompt, 0},
		{"a hole", []event{root(prompt[:6], "a", "b", "c"), removed("b")}, prompt, 2},
		{"one of two copies is gone", []event{root(prompt[:2], "a"), root(prompt[:2], "a"), removed("a")}, prompt, 2},
		{"both are", []event{root(prompt[:2], "a"), root(prompt[:2], "a"), removed("a"), removed("a")}, prompt, 0},
		{"after a block that is not known", []event{child("x", prompt[:2], "a")}, prompt, 0},
		{"cleared", []event{root(prompt[:6], "a", "b", "c"), {Kind: "cleared"}, root(prompt[:2], "a")}, prompt, 2},
	} {
		if got := heldAfter([]*batch{{Events: c.events}}, c.ids); got != c.want {
			t.Errorf("%s: %d tokens, want %d", c.name, got, c.want)
		}
	}
}

// A miss is put down to lateness only if the figure is that of an earlier state of the same worker.
func TestExcuse(t *testing.T) {
	prompt := []uint32{1, 2, 3, 4, 5, 6, 7}
	a := "a"
	at := time.Unix(1000, 0)
	made := []*batch{
		{Made: 999.0, Events: []event{{Kind: "stored", Hashes: []string{"a"}, Tokens: prompt[:2], Size: 2}}},
		{Made: 999.9, Events: []event{{Kind: "stored", Hashes: []string{"b"}, Parent: &a, Tokens: prompt[2:4], Size: 2}}},
	}
	for _, c := range []struct {
		believed, cached int
		explained        bool
		words            string
	}{
		{2, 4, true, "lacked 1 batches; the first was made 100 ms before"},
		{0, 4, false, "lacked 2"}, // a whole second is no lateness
		{6, 4, false, "no lateness"},
		{2, 6, false, "give 4"},
	} {
		p := &played{sent: at, believed: c.believed, cached: c.cached, decision: decision{InTokens: true, Live: true}}
		line, explained := excuse(p, prompt, made, heldAfter(made, prompt))
		if explained != c.explained || !strings.Contains(line, c.words) {
			t.Errorf("believed %d, cached %d: %v, %q", c.believed, c.cached, explained, line)
		}
	}
}
