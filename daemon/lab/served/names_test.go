package served

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

func TestClaims(t *testing.T) {
	child := trial.Request{Session: 37, Parent: 36}
	key := session.Name{Kind: session.Key, ID: "11"}
	for _, c := range []struct {
		name  string
		names Names
		q     trial.Request
		want  route.Claim
	}{
		{"no name", Binding, trial.Request{Parent: 36}, route.Claim{}},
		{"not read", Unread, child, route.Claim{}},
		{"a hint", Hints, child, route.Claim{Key: key, Parent: "10"}},
		{"bound", Binding, child, route.Claim{Key: key, Parent: "10", Binds: true}},
		{"no parent", Hints, trial.Request{Session: 37}, route.Claim{Key: key}},
	} {
		if got := c.names.claim(&c.q); got != c.want {
			t.Errorf("%s: %+v; want %+v", c.name, got, c.want)
		}
	}
}

// TestStrategiesSeeTheParent: a subagent's request says which worker its parent's last one went to.
func TestStrategiesSeeTheParent(t *testing.T) {
	var seen []abi.Header
	to := int32(2)
	strategy := host.Native("watch", 0, func(h *abi.Header, rows []abi.Row, _ []uint32) uint64 {
		seen = append(seen, *h)
		return abi.Pack(to, 0, 0)
	})
	r := New(t.Context(), Config{Strategy: strategy, Block: 16, Scrape: time.Second, Seed: 1})
	defer r.Close()
	for i := range 4 {
		r.Up(0, i)
	}
	// Minutes apart, past the workers' slow start.
	for i, q := range []trial.Request{{Session: 36}, {Session: 37, Parent: 36}, {Session: 36}} {
		q.Prompt, q.MaxTokens = 4, 8
		if _, p := r.Choose(time.Duration(i+5)*time.Minute, &world.Request{Request: q, Chat: &traffic.Chat{}}, []byte("a prompt")); p != world.Sent {
			t.Fatalf("request %d was not sent", i)
		}
		to = 1
	}
	if h := seen[1]; h.Parent != seen[0].Session || h.ParentRow != 2 || h.Turn != 1 {
		t.Errorf("the subagent's request has parent %x at row %d, turn %d; want %x at row 2, turn 1", h.Parent, h.ParentRow, h.Turn,
			seen[0].Session)
	}
	if h := seen[2]; h.Parent != 0 || h.ParentRow != -1 || h.Turn != 2 || h.Last != 2 {
		t.Errorf("its parent's next request has parent %x at row %d, turn %d, last %d; want none, turn 2, last 2", h.Parent,
			h.ParentRow, h.Turn, h.Last)
	}
}
