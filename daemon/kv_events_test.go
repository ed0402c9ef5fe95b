package daemon

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// events returns the state of each worker's events, by id.
func (r *running) events() map[string]feed.Stats {
	all := map[string]feed.Stats{}
	p := r.state.Load().pools[0]
	for _, w := range p.route.Workers.Stats(time.Now()) {
		if e, ok := p.feed.Of(w.ID); ok {
			all[w.ID] = e
		}
	}
	return all
}

// awaitLive waits until the events of n workers are believed.
func (r *running) awaitLive(n int) {
	r.t.Helper()
	var all map[string]feed.Stats
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		all = r.events()
		live := 0
		for _, e := range all {
			if e.Live {
				live++
			}
		}
		if live == n {
			return
		}
	}
	for id, e := range all {
		r.t.Logf("%s: %s, %+v", id, e.State, e)
	}
	r.t.Fatalf("%d workers have events; want %d live", len(all), n)
}

// held returns the blocks that the workers' reports say are held.
func (r *running) held() (n int) {
	for _, e := range r.events() {
		n += e.Held.Blocks
	}
	return n
}

// talk sends chats of one conversation after another, and returns how many prompt tokens were cached.
func (r *running) talk(n int, name string) (cached int) {
	r.t.Helper()
	for i := range n {
		said := fmt.Sprintf("%s %d. ", name, i%3) + strings.Repeat("High water follows the moon. ", 40)
		s := r.do("POST", "/v1/chat/completions", chatBody(false, []chatMessage{{"user", said}}))
		if s.status != 200 {
			r.t.Fatalf("%d %s", s.status, s.body)
		}
		var reply struct {
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal([]byte(s.body), &reply); err != nil {
			r.t.Fatal(err)
		}
		cached += reply.Usage.Details.Cached
	}
	return cached
}

func published(form events.Form) vllmsim.Config {
	return vllmsim.Config{KVEvents: vllmsim.KVEvents{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0",
		Topic: "kv@{id}@{model}", Form: form}}
}

// poolKeys puts keys into the pool of settings.
func poolKeys(toml, keys string) string {
	return strings.Replace(toml, "[[pools]]\n", "[[pools]]\n"+keys, 1)
}

// Workers are asked where they publish, in both forms of the wire, and a router that starts later knows what they hold.
func TestEventsByAuto(t *testing.T) {
	t.Parallel()
	for _, form := range []events.Form{events.Map, events.Array} {
		sim := sims(t, 2, published(form))
		toml := poolKeys(settings("kvaware", sim.URLs()...), "kv_events = \"auto\"\n")
		r := start(t, toml, 2)
		r.awaitLive(2)
		r.talk(9, "tide")
		second := start(t, toml, 2)
		second.awaitLive(2)
		for _, router := range []*running{r, second} {
			for end := time.Now().Add(10 * time.Second); router.held() == 0 && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if a, b := r.held(), second.held(); a == 0 || a != b {
			t.Errorf("%s: one router knows of %d blocks, the other of %d", form, a, b)
		}
		if cached := second.talk(3, "tide"); cached == 0 {
			t.Errorf("%s: a router without history finds nothing cached", form)
		}
		if r.metric("warmpath_kv_events_live") != 2 || r.metric("warmpath_kv_blocks_held", `tier="gpu"`) == 0 {
			t.Error("the metrics do not say that events are live")
		}
		if e := r.describe()[0].Workers[0].Events; e == nil || e.State != "live" || e.GPU == 0 && e.Batches > 0 {
			t.Errorf("the page says %+v", e)
		}
		if v := r.describe()[0].View; v != "KV events of 2 of 2 workers, else routed history" {
			t.Errorf("the view is %q", v)
		}
	}
}

// hearsEvents is a module that chooses the first row, and adds 1 to the metric "n" for each call with events.
const hearsEvents = `(module
	(import "warmpath_v1" "metric" (func $add (param i32 i32 i64)))
	(memory (export "memory") 1)
	(func (export "warmpath_abi_1_1"))
	(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
	(func (export "wp_wants") (result i32) i32.const 16)
	(data (i32.const 16) "n")
	(func (export "wp_on_kv_event") (param i32) i32.const 16 i32.const 1 i64.const 4607182418800017408 call $add)
	(func (export "wp_pick") (result i64) i64.const 0))`

// TestStrategiesHearEvents: a strategy that wants the events of the workers' KV caches gets them.
func TestStrategiesHearEvents(t *testing.T) {
	t.Parallel()
	wasm, err := wasmtest.Assemble(hearsEvents)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hears.wasm")
	write(t, file, string(wasm))
	sim := sims(t, 1, published(events.Map))
	r := start(t, poolKeys(settings("hears", sim.URLs()...), "kv_events = \"auto\"\n")+
		fmt.Sprintf("[strategies.hears]\npath = %q\n", file), 1)
	r.awaitLive(1)
	r.talk(3, "tide")
	patiently(t, "the strategy has counted events", func() bool {
		return r.metric("warmpath_strategy_metric", `name="n"`) > 0
	})
}

// The events of one worker stop and come back: its view is not believed meanwhile, and no request fails.
func TestEventsAreCut(t *testing.T) {
	t.Parallel()
	sim := sims(t, 2, published(events.Map))
	r := start(t, poolKeys(settings("kvaware", sim.URLs()...), "kv_events = \"auto\"\n"), 2)
	r.awaitLive(2)
	r.talk(6, "tide")
	if err := sim[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultEventsCut}); err != nil {
		t.Fatal(err)
	}
	r.awaitLive(1)
	r.talk(6, "ebb")
	if err := sim[0].SetFault(vllmsim.Fault{Mode: vllmsim.FaultNone}); err != nil {
		t.Fatal(err)
	}
	r.awaitLive(2)
}

// A worker that dials the router is known by its topic.
func TestEventsByListening(t *testing.T) {
	toml := strings.Replace(settings("kvaware", "http://127.0.0.1:1"), "[server]\n",
		"[server]\nkv_events_listen = \"tcp://127.0.0.1:0\"\n", 1)
	r := start(t, toml, 0)
	c := published(events.Map)
	c.KVEvents.Endpoint = r.kvEvents.Addr()
	c.KVEvents.Topic = "kv@w1@sim"
	sim := sims(t, 1, c)
	write(t, r.file, strings.Replace(toml, "http://127.0.0.1:1", sim.URLs()[0], 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(15 * time.Second)
	for n := 0; time.Now().Before(end); n++ {
		if s := r.do("POST", "/v1/chat/completions", chatBody(false, []chatMessage{{"user",
			fmt.Sprint(n) + strings.Repeat("High water follows the moon. ", 40)}})); s.status != 200 {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		live := 0
		for _, e := range r.events() {
			if e.Live && e.State == kvevents.Live && e.Held.Blocks > 0 {
				live++
			}
		}
		if live == 1 {
			return
		}
	}
	t.Errorf("the worker that dials is not live: %+v", r.events())
}

// Each rank of a worker that dials the router dials a port of its own, as far above the first as its number.
func TestRanksThatDial(t *testing.T) {
	t.Parallel()
	const ranks = 4
	first := porttest.Row(t, 2*ranks)
	at, replay := fmt.Sprintf("tcp://127.0.0.1:%d", first), fmt.Sprintf("tcp://127.0.0.1:%d", first+ranks)
	c := published(events.Map)
	c.DataParallel, c.KVEvents.Topic = ranks, "kv@w1@sim"
	c.KVEvents.Endpoint, c.KVEvents.Replay = at, replay
	sim := sims(t, 1, c)
	r := start(t, strings.Replace(poolKeys(settings("kvaware", sim.URLs()...), "kv_events_replay = \""+replay+"\"\n"),
		"[server]\n", "[server]\nkv_events_listen = \""+at+"\"\n", 1), ranks)
	var live map[string]bool
	for n, end := 0, time.Now().Add(30*time.Second); time.Now().Before(end); n++ {
		if s := r.do("POST", "/v1/chat/completions", chatBody(false, []chatMessage{{"user",
			fmt.Sprint(n) + strings.Repeat("High water follows the moon. ", 40)}})); s.status != 200 {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		live = map[string]bool{}
		for id, e := range r.events() {
			if e.Live && e.State == kvevents.Live && e.Held.Blocks > 0 && e.Endpoint == "" {
				live[id] = true
			}
		}
		if len(live) == ranks {
			return
		}
	}
	t.Errorf("of the %d ranks that dial %v are live: %+v", ranks, live, r.events())
}
