package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// subsetIs waits until the router uses n workers that are in a state, and returns them.
func (r *running) subsetIs(n int, state string) (ids []string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d workers are used, and %s", n, state), func() bool {
		used, _ := r.used()
		ids = slices.Sorted(maps.Keys(used))
		return len(used) == n && !slices.ContainsFunc(ids, func(id string) bool { return used[id] != state })
	})
	return ids
}

// TestSubsetOfAFile: a pool without workers, with fewer than the subset has, with more, and without any again.
func TestSubsetOfAFile(t *testing.T) {
	stays(t, time.Second)
	_, urls := startSubsetWorkers(t, 8)
	file := filepath.Join(t.TempDir(), "workers")
	fill := func(n int) {
		text := "workers = []\n"
		if n > 0 {
			text = ""
		}
		for i, url := range urls[:n] {
			text += fmt.Sprintf("[[workers]]\nurl = %q\nid = \"w%d\"\n", url, i+1)
		}
		write(t, file, text)
	}
	fill(0)
	text, _, _ := strings.Cut(withSubset(settings("roundrobin", urls[0]), "a", 4), "[[pools.workers]]")
	r := start(t, text+fmt.Sprintf("workers_file = %q\n", file), 0)
	expect := func(n int, answer int) (ids []string) {
		t.Helper()
		ids = r.subsetIs(min(n, 4), "up")
		if got := r.metric("warmpath_pool_workers_outside"); got != float64(n-len(ids)) {
			t.Errorf("of %d workers the metrics have %v outside of the subset", n, got)
		}
		for range 8 {
			if s := r.do("POST", "/v1/completions", hello); s.status != answer {
				t.Errorf("%d workers: %d %s; want %d", n, s.status, s.body, answer)
			}
		}
		return ids
	}
	expect(0, 503)
	fill(3)
	expect(3, 200)
	fill(8)
	first := expect(8, 200)
	fill(0)
	expect(0, 503)
	fill(8)
	if again := expect(8, 200); !slices.Equal(first, again) {
		t.Errorf("the subset was %v, and is %v", first, again)
	}
}

// TestSubsetDrains: a drain at one router holds at all, whichever has the worker in its subset, and after the end of the
// router that has it.
func TestSubsetDrains(t *testing.T) {
	stays(t, time.Second)
	redis := redistest.Start(t).URL()
	_, urls := startSubsetWorkers(t, 12)
	var routers []*running
	for i := range 2 {
		routers = append(routers, start(t, fmt.Sprintf("[cache]\nredis = %q\n", redis)+
			withSubset(settings("roundrobin", urls...), fmt.Sprint("r", i), 4), 4))
	}
	var theirs string
	eventually(t, "the routers divide the workers", func() bool {
		used, outside := routers[0].used()
		for id, why := range outside {
			if why == "it is in the subset of r1" {
				theirs = id
			}
		}
		return len(used) == 4 && theirs != ""
	})
	order := func(method, worker string, status int) string {
		t.Helper()
		s := do(t, method, "http://"+routers[0].AdminAddr()+"/api/v1/pools/main/workers/"+worker+"/drain", "")
		if s.status != status {
			t.Errorf("%s the drain of %s: %d %s; want %d", method, worker, s.status, s.body, status)
		}
		return s.body
	}
	if text := order("DELETE", theirs, 404); !strings.Contains(text, "it is in the subset of r1") {
		t.Errorf("to put back a worker that is not used is answered by %s", text)
	}
	order("POST", "none", 404)
	order("POST", theirs, 200)
	drained := func(r *running) bool {
		used, _ := r.used()
		return used[theirs] == "draining"
	}
	eventually(t, "it drains at both", func() bool { return drained(routers[0]) && drained(routers[1]) })
	_ = routers[1].stop()
	time.Sleep(2 * subsetLinger)
	for range 40 {
		if at := routers[0].at(); at == theirs {
			t.Fatal("the drained worker gets requests")
		}
	}
	if !drained(routers[0]) {
		t.Error("when the router that has it has ended, it is not drained")
	}
	order("DELETE", theirs, 200)
	eventually(t, "it is put back", func() bool {
		used, _ := routers[0].used()
		return used[theirs] == "up"
	})
	own, _ := routers[0].used()
	delete(own, theirs)
	inside := slices.Sorted(maps.Keys(own))[0]
	order("POST", inside, 200)
	eventually(t, "a worker of the subset drains", func() bool {
		used, _ := routers[0].used()
		return used[inside] == "draining"
	})
	order("DELETE", inside, 200)
	eventually(t, "and is put back", func() bool {
		used, _ := routers[0].used()
		return used[inside] == "up"
	})
}

// TestSubsetOrders: an order to all workers goes to those that the router uses, and the answer has how many it left out.
func TestSubsetOrders(t *testing.T) {
	_, urls := startSubsetWorkers(t, 6)
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "sesame-sesame")
	r := start(t, withServer(withSubset(settings("roundrobin", urls...), "a", 2), fmt.Sprintf("admin_token_file = %q", token)), 2)
	s := do(t, "POST", "http://"+r.AdminAddr()+"/api/v1/pools/main/each?path=/resume", "", "Authorization", "Bearer sesame-sesame")
	var o operator.Ordered
	if err := json.Unmarshal([]byte(s.body), &o); err != nil || len(o.Workers) != 2 || o.Outside != 4 {
		t.Errorf("%v: %s", err, s.body)
	}
}

// TestSubsetFindsLonger: a request that is too long for all workers of the subset goes to one outside that is longer. One
// that is too long for all gets the answer of a worker, and makes the subset grow for a moment only.
func TestSubsetFindsLonger(t *testing.T) {
	stays(t, time.Second)
	all, urls := startSubsetWorkers(t, 48)
	for _, w := range all {
		w.length = 1000
	}
	r := start(t, withSubset(settings("roundrobin", urls...), "a", 2), 2)
	used, _ := r.used()
	longest := all[slices.IndexFunc(all, func(w *subsetWorker) bool { _, in := used[w.name]; return !in })]
	longest.length = 9000
	ask := func(tokens int) seen {
		return r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"x","max_tokens":%d}`, tokens))
	}
	eventually(t, "the longer worker is found", func() bool {
		s := ask(5000)
		return s.status == http.StatusOK && s.header.Get("Worker") == longest.name
	})
	if s := ask(100); s.status != http.StatusOK {
		t.Errorf("a short request: %d %s", s.status, s.body)
	}
	eventually(t, "the others have left", func() bool {
		used, _ := r.used()
		return len(used) == 3 && used[longest.name] == "up"
	})
	ask(50000)
	eventually(t, "no longer one is found", func() bool {
		began := time.Now()
		return ask(50000).status == http.StatusOK && time.Since(began) < firstAnswer
	})
	r.subsetIs(3, "up")
}

// firstAnswer is within what a worker has answered that was chosen at once.
const firstAnswer = time.Second

// TestSubsetWithCanaries: canaries and shadows choose among the workers of the subset, and go on as it changes.
func TestSubsetWithCanaries(t *testing.T) {
	stays(t, time.Second)
	all, urls := startSubsetWorkers(t, 12)
	text := func(n int) string {
		return strings.Replace(withSubset(settings("roundrobin", urls...), "a", n), "id = \"w1\"\n", "id = \"w1\"\nweight = 3\n", 1) +
			"[[pools.canary]]\nstrategy = \"session\"\npercent = 50\n[[pools.shadow]]\nstrategy = \"prefixaware\"\n"
	}
	r := start(t, text(4), 4)
	seen := uint64(0)
	for _, n := range []int{4, 6, 3} {
		r.reloadWith(text(n))
		ids := r.subsetIs(n, "up")
		for _, w := range all {
			w.answers.Store(0)
		}
		for i := range 60 {
			r.at("X-Session-Id", fmt.Sprint(n, "-", i)) // sessions of another subset stay where they live
			seen++
		}
		for _, w := range all {
			if in := slices.Contains(ids, w.name); in != (w.answers.Load() > 0) {
				t.Errorf("%s, in the subset %v of %d, has %d requests", w.name, in, n, w.answers.Load())
			}
		}
	}
	eventually(t, "the shadow has seen all", func() bool {
		var pools []operator.PoolShadows
		b := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/shadows", "").body
		return json.Unmarshal([]byte(b), &pools) == nil && len(pools) == 1 && uint64(pools[0].Shadows[0].Seen) == seen
	})
}

// TestSubsetKeepsConversations: a worker that leaves the subset alone keeps its conversations, as other routers use it.
func TestSubsetKeepsConversations(t *testing.T) {
	t.Parallel()
	urls := sims(t, 3, vllmsim.Config{}).URLs()
	r := start(t, withHandOver("prefixaware", urls...), 3)
	twoTurns(t, r, 9)
	p := r.state.Load().pools[0]
	moved := func() bool {
		return len(p.Moving()) > 0 || r.metric(`warmpath_conversation_moves_total{pool="main",result="moved"}`) > 0
	}
	const look = 1500 * time.Millisecond // it looks once a second
	time.Sleep(look)
	outside := *p.set.Load()
	outside.conf.Workers = outside.all[1:]
	p.set.Store(&outside)
	time.Sleep(look)
	if moved() {
		t.Error("conversations move away from a worker that has left the subset alone")
	}
	gone := outside
	gone.all = outside.all[1:]
	p.set.Store(&gone)
	eventually(t, "the conversations of the worker that has gone move", moved)
}

// TestSubsetHandsOver: of eight workers four are used. What one of them has moves to the three others, by a strategy's
// plan, and nothing to a worker outside.
func TestSubsetHandsOver(t *testing.T) {
	t.Parallel()
	f := sims(t, 8, vllmsim.Config{})
	r := start(t, withSubset(withHandOver("mine", f.URLs()...), "a", 4)+mine(t, planning(t, longFirst)), 4)
	ids := r.subsetIs(4, "up")
	all := []*chatting{{id: 1}, {id: 2}, {id: 3}}
	leaves := ""
	for _, c := range all {
		for range 3 {
			leaves, _ = c.turn(t, r)
		}
	}
	if n := drainMoving(t, r, leaves); n != len(all) {
		t.Errorf("%d conversations move; want %d", n, len(all))
	}
	for _, c := range all {
		if w, cached := c.turn(t, r); w == leaves || !slices.Contains(ids, w) || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
	for i, w := range f {
		if n := w.Stats().Finished; n > 0 && !slices.Contains(ids, fmt.Sprint("w", i+1)) {
			t.Errorf("w%d, which is outside of the subset, had %d requests", i+1, n)
		}
	}
}
