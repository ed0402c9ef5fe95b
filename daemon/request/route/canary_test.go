package route

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/host"
)

// header is a request with one field.
type header struct{ name, value string }

func (h header) Header(name string) (string, bool) { return h.value, name == h.name }

// Which requests a canary takes.
func TestCanaryTakes(t *testing.T) {
	for _, c := range []struct {
		name    string
		canary  Canary
		ask     Ask
		session string
		want    bool
	}{
		{"nobody's", Canary{}, Ask{}, "s", false},
		{"by header", Canary{Header: "x-canary", Value: "1"}, Ask{Headers: header{"x-canary", " 1"}}, "", true},
		{"another value", Canary{Header: "x-canary", Value: "1"}, Ask{Headers: header{"x-canary", "0"}}, "", false},
		{"another field", Canary{Header: "x-canary", Value: "1"}, Ask{Headers: header{"x-other", "1"}}, "", false},
		{"no fields", Canary{Header: "x-canary", Value: "1"}, Ask{}, "", false},
		{"by key", Canary{Caller: "team"}, Ask{Caller: "team"}, "", true},
		{"another key", Canary{Caller: "team"}, Ask{Caller: "other"}, "", false},
		{"all", Canary{Percent: 100}, Ask{}, "", true},
		{"all sessions", Canary{Percent: 100}, Ask{}, "s", true},
		{"none", Canary{Percent: 0}, Ask{Turn: 3}, "", false},
	} {
		if got := c.canary.takes(&c.ask, c.session, 0); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// By percent, so many take part; a session always or never, requests without one by their turn.
func TestCanaryShare(t *testing.T) {
	c := Canary{Percent: 20}
	sessions, turns := 0, 0
	for i := range 10_000 {
		name := fmt.Sprint("session-", i)
		took := c.takes(&Ask{Turn: 1}, name, 0)
		if took != c.takes(&Ask{Turn: 2}, name, 0) {
			t.Fatalf("%s is taken once, and once not", name)
		}
		if took {
			sessions++
		}
		if c.takes(&Ask{Turn: uint64(i)}, "", 0) {
			turns++
		}
	}
	if sessions < 1800 || sessions > 2200 || turns < 1800 || turns > 2200 {
		t.Errorf("%d sessions and %d requests of 10,000; want 2,000", sessions, turns)
	}
}

// Several canaries by percent each get their share, whatever stands between them, and together all of 100.
func TestCanariesAddUp(t *testing.T) {
	for _, percents := range [][]float64{{20, 20}, {20, 40}, {50, 0, 50}, {10, 20, 30, 40}} {
		var c canaries
		all := make([]Canary, len(percents))
		for i, p := range percents {
			all[i] = Canary{Strategy: new(host.Current), Percent: p}
			if p == 0 {
				all[i].Caller = "team"
			}
		}
		c.all.Store(&all)
		own, got := new(host.Current), map[*host.Current]float64{}
		for i := range 10_000 {
			got[c.serving(own, &Ask{Turn: uint64(i)}, "")] += .01
		}
		left := 100.
		for i, p := range percents {
			left -= p
			if share := got[all[i].Strategy]; share < p-2 || share > p+2 {
				t.Errorf("%v: canary %d gets %.1f %%", percents, i, share)
			}
		}
		if got[own] < left-2 || got[own] > left+2 {
			t.Errorf("%v: the pool's own strategy gets %.1f %%", percents, got[own])
		}
	}
}
