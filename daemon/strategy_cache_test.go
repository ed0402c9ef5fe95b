package daemon

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// wishing writes a module that chooses the first worker, and asks for the second one to hold the prompt after some
// milliseconds, and for it to be kept for a minute.
func wishing(t *testing.T, after int) string { return wishingFor(t, after, 60_000) }

// wishingFor is wishing with the milliseconds for which the prompt is kept.
func wishingFor(t *testing.T, after, keep int) string {
	t.Helper()
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(import "warmpath_v1" "cache" (func $cache (param i32 i32 i32 i32 i32) (result i32)))
		(memory (export "memory") 1)
		(func (export "warmpath_abi_1_3"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64)
			i32.const 2 i32.const 1 i32.const %d i32.const 0 i32.const 0 call $cache drop
			i32.const 0 i32.const 0 i32.const %d i32.const 0 i32.const 0 call $cache drop
			i64.const 0))`, after, keep))
	if err != nil {
		t.Fatal(err)
	}
	return mine(t, wasm)
}

// mine returns the table of a strategy, mine, of that module.
func mine(t *testing.T, wasm []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mine.wasm")
	write(t, file, string(wasm))
	return fmt.Sprintf("[strategies.mine]\npath = %q\n", file)
}

// TestAStrategyPrefetches: the worker that it names holds the prompt, though no request of a client went there, and the
// decision says what was asked.
func TestAStrategyPrefetches(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, withHandOver("mine", f.URLs()...)+wishing(t, 0), 2)
	c := &chatting{}
	if w, _ := c.turn(t, r, "X-Request-Id", "one"); w != "w1" {
		t.Fatalf("the turn went to %s", w)
	}
	eventually(t, "the second worker has the prompt", func() bool {
		return r.metric(`warmpath_cache_wishes_total{pool="main",result="done"}`) == 1
	})
	var d struct{ Cache []string }
	body := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/decisions/one", "").body
	if err := json.Unmarshal([]byte(body), &d); err != nil || strings.Join(d.Cache, "; ") != "prefetch at w2 in 0s; keep for 1m0s" {
		t.Errorf("%v, %q", err, d.Cache)
	}
	if n := r.metric("warmpath_requests_total"); n != 1 || f[1].Stats().Finished != 1 {
		t.Errorf("%v requests are counted, the second worker had %d", n, f[1].Stats().Finished)
	}
	s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w1/drain", "")
	if s.status != 200 {
		t.Fatal(s.status, s.body)
	}
	if w, cached := c.turn(t, r); w != "w2" || cached < .4 {
		t.Errorf("the next turn went to %s, which had %.2f of it cached", w, cached)
	}
}

// TestAStrategyPrefetchesOtherWeights: the worker that it names has another version than the session keeps to, and gets
// nothing.
func TestAStrategyPrefetchesOtherWeights(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	toml := strings.Replace(withHandOver("mine", f.URLs()...), "hand_over_bytes", "weights = \"one\"\nhand_over_bytes", 1)
	r := start(t, weighted(toml, "11", "12")+wishingFor(t, 0, 1000), 2)
	c := &chatting{}
	c.turn(t, r, "X-Request-Id", "one", "X-Session-Id", "talk")
	eventually(t, "what it has is kept", func() bool {
		return r.metric(`warmpath_cache_wishes_total{pool="main",result="done"}`) == 1
	})
	body := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/decisions/one", "").body
	if !strings.Contains(body, "keeps to other weights") || f[1].Stats().Finished != 0 {
		t.Errorf("the second worker had %d requests: %s", f[1].Stats().Finished, body)
	}
}

// TestAStrategyKeeps: the worker gets the prompt once more, as it holds it.
func TestAStrategyKeeps(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withHandOver("mine", f.URLs()...)+wishingFor(t, 0, 1000), 1)
	(&chatting{}).turn(t, r)
	eventually(t, "the prompt has been sent again", func() bool {
		return r.metric(`warmpath_cache_wishes_total{pool="main",result="done"}`) == 1
	})
	if n := f[0].Stats().Finished; n != 2 {
		t.Errorf("the worker had %d requests; want the client's and one more", n)
	}
}

// TestTheWorkerOfAWishDrains: it gets nothing any more, and the wish counts as failed.
func TestTheWorkerOfAWishDrains(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, withHandOver("mine", f.URLs()...)+wishing(t, 3000), 2)
	(&chatting{}).turn(t, r)
	if s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w2/drain", ""); s.status != 200 {
		t.Fatal(s.status, s.body)
	}
	eventually(t, "the wish has failed", func() bool {
		return r.metric(`warmpath_cache_wishes_total{pool="main",result="failed"}`) == 1
	})
	if n := f[1].Stats().Finished; n != 0 {
		t.Errorf("the worker that drains had %d requests", n)
	}
}

// TestAStrategyWantsAllKept: of 17 conversations with two wishes each, those of one key beyond 32 are refused, and why
// says so. All requests are served.
func TestAStrategyWantsAllKept(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, withHandOver("mine", f.URLs()...)+wishing(t, 300_000), 2)
	for i := range 17 {
		(&chatting{id: i}).turn(t, r, "X-Request-Id", fmt.Sprint("r", i))
	}
	body := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/decisions/r16", "").body
	if n := strings.Count(body, "not done, 32 of the same key wait already"); n != 2 ||
		r.metric(`warmpath_cache_wishes_total{pool="main",result="refused"}`) != 2 {
		t.Errorf("%d refusals in %s", n, body)
	}
}

// TestAStrategyWishesInVain: the pool keeps no conversations. Requests are served all the same.
func TestAStrategyWishesInVain(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, settings("mine", f.URLs()...)+wishing(t, 0), 2)
	(&chatting{}).turn(t, r, "X-Request-Id", "one")
	body := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/decisions/one", "").body
	if n := strings.Count(body, "hand_over_bytes"); n != 2 || r.metric(`warmpath_cache_wishes_total{pool="main",result="refused"}`) != 2 {
		t.Errorf("%d refusals in %s", n, body)
	}
}

// planning assembles a module that chooses the first worker and has this body of wp_plan, whose parameter is the number
// of conversations.
func planning(t *testing.T, body string) []byte {
	t.Helper()
	wasm, err := wasmtest.Assemble(`(module
		(memory (export "memory") 1)
		(func (export "warmpath_abi_1_3"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_plan") (param i32) ` + body + `)
		(func (export "wp_pick") (result i64) i64.const 0))`)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// longFirst values a conversation by the tokens that its prompt has beyond 800.
const longFirst = `loop
	local.get 0 i32.eqz if return end
	local.get 0 i32.const 1 i32.sub local.set 0
	local.get 0 i32.const 64 i32.mul i32.const 1024 i32.add
	local.get 0 i32.const 64 i32.mul i32.const 1064 i32.add i32.load
	i32.const 800 i32.sub f64.convert_i32_s f64.store
	br 0
	end`

// TestAStrategyPlansMoves: of two conversations at a worker that leaves, the module moves the one with the longer prompt.
// The other one has its next turn where it is. So it is beside a canary that serves both: the pool's own strategy plans,
// and no other one.
func TestAStrategyPlansMoves(t *testing.T) {
	t.Parallel()
	for _, canary := range []bool{false, true} {
		f := sims(t, 2, vllmsim.Config{})
		text := withHandOver("mine", f.URLs()...) + mine(t, planning(t, longFirst))
		var fields []string
		if canary {
			file := filepath.Join(t.TempDir(), "other.wasm")
			write(t, file, string(planning(t, "unreachable")))
			text = withPool(text, `canary = [{ strategy = "other", header = "x-canary=1" }]`) +
				fmt.Sprintf("[strategies.other]\npath = %q\n", file)
			fields = []string{"X-Canary", "1"}
		}
		r := start(t, text, 2)
		short, long := &chatting{id: 1}, &chatting{id: 2}
		short.turn(t, r, fields...)
		for range 3 {
			if w, _ := long.turn(t, r, fields...); w != "w1" {
				t.Fatalf("a turn went to %s", w)
			}
		}
		if s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/w1/drain?hand_over=30s", ""); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
		eventually(t, "one has moved", func() bool {
			return r.metric(`warmpath_conversation_moves_total{pool="main",result="moved"}`) == 1
		})
		if w, cached := long.turn(t, r, fields...); w != "w2" || cached < .6 {
			t.Errorf("the long one's next turn went to %s, which had %.2f of it cached", w, cached)
		}
		if w, _ := short.turn(t, r, fields...); w != "w1" {
			t.Errorf("the short one's next turn went to %s; want w1, from where it does not move", w)
		}
		for _, s := range r.shown()[0].Strategies() {
			if n := s.Stats(); n.LastError != "" {
				t.Errorf("%s: %s", s.Name(), n.LastError)
			}
		}
	}
}

// TestAStrategyTrapsInItsPlan: the conversations move in the router's own order, and requests are served.
func TestAStrategyTrapsInItsPlan(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	r := start(t, withHandOver("mine", f.URLs()...)+mine(t, planning(t, "unreachable")), 2)
	all := []*chatting{{id: 1}, {id: 2}}
	for _, c := range all {
		c.turn(t, r)
	}
	drainMoving(t, r, "w1")
	for _, c := range all {
		if w, cached := c.turn(t, r); w != "w2" || cached < .4 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
	if s := r.shown()[0].Strategies()[0].Stats(); !strings.Contains(s.LastError, "wp_plan") {
		t.Errorf("its last error is %q", s.LastError)
	}
}
