package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestHandOverOfAnAdapter: conversations with an adapter move to a worker that has it. The model without the adapter finds
// nothing of them there.
func TestHandOverOfAnAdapter(t *testing.T) {
	t.Parallel()
	with := sims(t, 2, vllmsim.Config{MaxLoras: 2, Loras: []string{"ad"}})
	urls := append(with.URLs(), sims(t, 1, vllmsim.Config{}).URLs()...)
	r := start(t, withHandOver("prefixaware", urls...), 3)
	at := map[string][]*chatting{}
	for i := range 8 {
		c := &chatting{id: i, model: "ad"}
		c.turn(t, r)
		w, _ := c.turn(t, r)
		at[w] = append(at[w], c)
	}
	moveApart(t, r, at, func(c *chatting) (*chatting, []string) { return &chatting{id: c.id}, nil })
}

// TestHandOverOfASalt: conversations of a key with a cache salt move with it. Another key finds nothing of them.
func TestHandOverOfASalt(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{})
	r := start(t, limited(t, "one", "cache_salt = true\nexplain = true\n", "two", "cache_salt = true\nexplain = true\n")+
		withHandOver("prefixaware", f.URLs()...), 3)
	at := map[string][]*chatting{}
	for i := range 9 {
		c := &chatting{id: i}
		c.turn(t, r, "X-Api-Key", "one-secret")
		w, _ := c.turn(t, r, "X-Api-Key", "one-secret")
		at[w] = append(at[w], c)
	}
	moveApart(t, r, at, func(c *chatting) (*chatting, []string) {
		return &chatting{id: c.id}, []string{"X-Api-Key", "two-secret"}
	},
		"X-Api-Key", "one-secret")
}

// moveApart drains a worker that has conversations. The next turn of each finds its prompt cached elsewhere, and another
// conversation with the same text, which has nothing in common with it, finds nothing there.
func moveApart(t *testing.T, r *running, at map[string][]*chatting, other func(*chatting) (*chatting, []string),
	fields ...string) {
	t.Helper()
	leaves := "w1"
	if len(at[leaves]) == 0 {
		leaves = "w2"
	}
	if n := drainMoving(t, r, leaves); n != len(at[leaves]) || n == 0 {
		t.Errorf("%d conversations move; want %d", n, len(at[leaves]))
	}
	for _, c := range at[leaves] {
		twin, theirs := other(c)
		if w, cached := twin.turn(t, r, theirs...); cached > .1 {
			t.Errorf("conversation %d: %s had %.2f cached of a prompt that is apart from it", c.id, w, cached)
		}
		if w, cached := c.turn(t, r, fields...); w == leaves || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
}

// TestHandOverThroughAFullTier: the tier that the workers share has no room for a conversation. What it does not keep is
// computed at the new home, and counts as loaded for no more than was.
func TestHandOverThroughAFullTier(t *testing.T) {
	t.Parallel()
	c := vllmsim.Config{}
	const room = 256 // tokens; a conversation has a thousand
	c.Shared = vllmsim.NewTier(room, c)
	f := sims(t, 3, c)
	text := strings.Replace(withHandOver("prefixaware", f.URLs()...), "[[pools.workers]]",
		"shared_kv_tokens = 256\n[[pools.workers]]", 1)
	r := start(t, text, 3)
	at := twoTurns(t, r, 9)
	leaves := "w1"
	if len(at[leaves]) == 0 {
		leaves = "w2"
	}
	n := drainMoving(t, r, leaves)
	theirs := 0.
	for _, w := range f {
		theirs += float64(w.Stats().SharedTokens)
	}
	if loaded := r.metric(`warmpath_conversation_move_tokens_total{pool="main",result="loaded"}`); n == 0 || loaded > theirs {
		t.Errorf("%d conversations have moved, %v tokens count as loaded; the workers loaded %v", n, loaded, theirs)
	}
	for _, c := range at[leaves] {
		if w, cached := c.turn(t, r); w == leaves || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
}

// TestHandOverKeepsTheWeights: in a pool whose sessions keep their weights, conversations move to workers with the version
// that answered them, and to none that has come with another one. What no other worker has goes on where it is.
func TestHandOverKeepsTheWeights(t *testing.T) {
	t.Parallel()
	f := sims(t, 4, vllmsim.Config{})
	toml := strings.Replace(withHandOver("prefixaware", f.URLs()...), "hand_over_bytes", "weights = \"one\"\nhand_over_bytes", 1)
	r := start(t, weighted(toml, "11", "11", "12", "13"), 4)
	workers := r.shown()[0].Workers
	workers.Drain("w3", true, time.Now())
	workers.Drain("w4", true, time.Now())
	at := map[string][]*chatting{}
	name := func(c *chatting) []string { return []string{"X-Session-Id", fmt.Sprint("talk-", c.id)} }
	for i := range 9 {
		c := &chatting{id: i}
		c.turn(t, r, name(c)...)
		w, _ := c.turn(t, r, name(c)...)
		at[w] = append(at[w], c)
	}
	workers.Drain("w3", false, time.Now())
	workers.Drain("w4", false, time.Now())
	time.Sleep(2500 * time.Millisecond) // they have come, and get no share
	if n := drainMoving(t, r, "w1"); n != len(at["w1"]) || n == 0 {
		t.Errorf("%d conversations move; want %d", n, len(at["w1"]))
	}
	for _, c := range at["w1"] {
		if w, cached := c.turn(t, r, name(c)...); w != "w2" || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
	if s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w2/drain?hand_over=2s", ""); s.status != 200 {
		t.Fatal(s.status, s.body)
	}
	if w, _ := at["w1"][0].turn(t, r, name(at["w1"][0])...); w != "w2" {
		t.Errorf("the next turn of one for whose weights there is no other worker went to %s", w)
	}
	eventually(t, "the time for moves is over", func() bool { return len(r.state.Load().pools[0].Moving()) == 0 })
	for i, w := range f[2:] {
		if n := w.Stats().Finished; n != 0 {
			t.Errorf("%d requests went to w%d, which has other weights", n, i+3)
		}
	}
	if w, _ := at["w1"][0].turn(t, r, name(at["w1"][0])...); w == "w1" || w == "w2" {
		t.Errorf("after that it went to %s, which drains", w)
	}
}
