package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// ask sends a chat to a model.
func (r *running) ask(model string, header ...string) seen {
	r.t.Helper()
	body, _ := json.Marshal(map[string]any{"model": model, "max_tokens": 4, "messages": []chatMessage{{"user", "hi"}}})
	return r.do("POST", "/v1/chat/completions", string(body), header...)
}

// adapters returns what the workers list beside the model itself, by worker.
func (r *running) adapters() (all [][]string) {
	for _, s := range r.shown()[0].Workers.Reachable(nil) {
		var list struct{ Data []struct{ ID, Parent string } }
		_ = json.Unmarshal([]byte(do(r.t, "GET", s.URL()+"/v1/models", "").body), &list)
		names := []string{}
		for _, m := range list.Data {
			if m.Parent != "" {
				names = append(names, m.ID)
			}
		}
		all = append(all, names)
	}
	return all
}

const adapterSource = "[pools.adapters]\nsource = \"/adapters/{name}\"\nmax = 2\n"

// withAdapters has the pool load adapters.
func withAdapters(text string) string {
	return strings.Replace(text, "[[pools.workers]]", adapterSource+"[[pools.workers]]", 1)
}

// TestAnAdapterIsLoadedForItsFirstRequest: at one worker, once however many ask at once, and a wrong name is 404.
func TestAnAdapterIsLoadedForItsFirstRequest(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{MaxLoras: 2, LoraLoad: 2})
	r := start(t, withAdapters(settings("prefixaware", f.URLs()...)), 2)
	if s := r.ask("fresh"); s.status != 200 || !strings.Contains(s.body, `"model":"fresh"`) {
		t.Fatalf("first request: %d %s", s.status, s.body)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if s := r.ask("other"); s.status != 200 {
				t.Errorf("one of many: %d %s", s.status, s.body)
			}
		})
	}
	all.Wait()
	loads := 0
	for _, names := range r.adapters() {
		loads += len(names)
	}
	if loads > 3 {
		t.Errorf("the workers list %v", r.adapters())
	}
	for _, wrong := range []string{"missing-1", "../etc", "a/b", ".hidden", "a\nb", strings.Repeat("x", 200), "%2e%2e"} {
		if s := r.ask(wrong); s.status != 404 {
			t.Errorf("%q: %d %s; want 404", wrong, s.status, s.body)
		}
	}
	if s := r.ask("sim"); s.status != 200 {
		t.Errorf("the model itself: %d %s", s.status, s.body)
	}
	if s := do(t, "GET", "http://"+r.AdminAddr()+"/metrics", ""); !strings.Contains(s.body, `warmpath_adapter_calls_total{call="load",pool="main",result="refused"} 2`) {
		t.Error("the metrics do not count that each worker has refused one load")
	}
}

// TestTheOldestIdleAdapterMakesRoom: no worker has more than max, and each request is answered all the same.
func TestTheOldestIdleAdapterMakesRoom(t *testing.T) {
	f := sims(t, 1, vllmsim.Config{MaxLoras: 2, LoraLoad: .1})
	r := start(t, withAdapters(settings("prefixaware", f.URLs()...)), 1)
	for i, name := range []string{"a", "b", "a", "c", "b"} {
		if s := r.ask(name); s.status != 200 {
			t.Fatalf("request %d for %s: %d %s", i, name, s.status, s.body)
		}
		if got := r.adapters()[0]; len(got) > 2 {
			t.Errorf("after %s it has %v", name, got)
		}
	}
	if got := fmt.Sprint(r.adapters()[0]); got != "[c b]" {
		t.Errorf("at the end it has %s; want c and b", got)
	}
}

// TestMoreAdaptersThanSlotsTakeTurns: more clients than max, each for an adapter of its own, are all served, and soon
// also one whose key comes behind many.
func TestMoreAdaptersThanSlotsTakeTurns(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{MaxLoras: 2, LoraLoad: 5})
	r := start(t, tenants(t)+withAdapters(settings("prefixaware", f.URLs()...)), 1)
	var all sync.WaitGroup
	var served atomic.Int32
	for i := range 12 {
		all.Go(func() {
			if s := r.ask(fmt.Sprint("a", i), "Authorization", "Bearer alice-secret"); s.status != 200 {
				t.Errorf("one of many: %d %s", s.status, s.body)
			}
			served.Add(1)
		})
	}
	for served.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if s := r.ask("late", "Authorization", "Bearer bob-secret"); s.status != 200 || served.Load() > 10 {
		t.Errorf("behind the many: %d %s, after %d of them", s.status, s.body, served.Load())
	}
	all.Wait()
	if got := r.adapters()[0]; len(got) != 2 {
		t.Errorf("at the end it has %v", got)
	}
}

// TestARefusalIsOneWorkers: where one worker loads no adapters, another one is asked.
func TestARefusalIsOneWorkers(t *testing.T) {
	t.Parallel()
	urls := append(sims(t, 2, vllmsim.Config{}).URLs(), sims(t, 1, vllmsim.Config{MaxLoras: 2}).URLs()...)
	r := start(t, withAdapters(settings("roundrobin", urls...)), 3)
	for i := range 6 {
		if s := r.ask(fmt.Sprint("a", i)); s.status != 200 {
			t.Errorf("adapter %d: %d %s", i, s.status, s.body)
		}
	}
	if s := r.ask("missing"); s.status != 404 {
		t.Errorf("nobody has it: %d %s", s.status, s.body)
	}
}

// TestALostAdapterIsLoadedAgain: a request that finds its adapter gone is answered, with one worker and with two.
func TestALostAdapterIsLoadedAgain(t *testing.T) {
	for _, n := range []int{1, 2} {
		f := sims(t, n, vllmsim.Config{MaxLoras: 2})
		r := start(t, withAdapters(settings("prefixaware", f.URLs()...)), n)
		for range 3 {
			if s := r.ask("a"); s.status != 200 {
				t.Errorf("%d workers: %d %s", n, s.status, s.body)
			}
			for _, url := range f.URLs() {
				do(t, "POST", url+"/v1/unload_lora_adapter", `{"lora_name":"a"}`)
			}
		}
	}
}

// TestAKeyLoadsOnlyItsAdapters: what a key may not use is not loaded for it.
func TestAKeyLoadsOnlyItsAdapters(t *testing.T) {
	t.Setenv("EVE_KEY", "eve-secret")
	f := sims(t, 1, vllmsim.Config{MaxLoras: 2})
	r := start(t, "[[keys]]\nname = \"eve\"\nenv = \"EVE_KEY\"\nmodels = [\"mine\"]\n"+
		withAdapters(settings("prefixaware", f.URLs()...)), 1)
	eve := []string{"Authorization", "Bearer eve-secret"}
	if s := r.ask("hers", eve...); s.status != http.StatusForbidden && s.status != 404 || len(r.adapters()[0]) > 0 {
		t.Errorf("another's: %d %s, loaded %v", s.status, s.body, r.adapters())
	}
	if s := r.ask("mine", eve...); s.status != 200 {
		t.Errorf("its own: %d %s", s.status, s.body)
	}
}

// TestAnAdapterOfOtherHandsIsFound: where the source does not have it, a worker may still.
func TestAnAdapterOfOtherHandsIsFound(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{MaxLoras: 2})
	r := start(t, withAdapters(settings("prefixaware", f.URLs()...)), 2)
	call := `{"lora_name":"missing-there","lora_path":"/elsewhere"}`
	if s := do(t, "POST", f.URLs()[1]+"/v1/load_lora_adapter", call); s.status != 200 {
		t.Fatalf("load: %d %s", s.status, s.body)
	}
	if s := r.ask("missing-there"); s.status != 200 {
		t.Errorf("%d %s", s.status, s.body)
	}
}

// TestAnAdapterThatChangesLosesItsBlocks: after a load in place, and after an unload and a load, no worker is believed to
// hold a prompt of the adapter. What is held for the model itself, and by another adapter, stays, and so does what it
// holds where a load is refused.
func TestAnAdapterThatChangesLosesItsBlocks(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		f := sims(t, n, vllmsim.Config{MaxLoras: 2})
		r := start(t, settings("prefixaware", f.URLs()...), n)
		call := func(what, name, more string, want int) {
			t.Helper()
			body := fmt.Sprintf(`{"lora_name":%q,"lora_path":"/adapters/%s"%s}`, name, name, more)
			if s := r.do("POST", "/v1/"+what+"_lora_adapter", body); s.status != want {
				t.Fatalf("%s of %s: %d %s; want %d", what, name, s.status, s.body, want)
			}
		}
		text := strings.Repeat("some words of a long prompt ", 200)
		matched := func(model string) int {
			t.Helper()
			body, _ := json.Marshal(map[string]any{"model": model, "max_tokens": 2, "prompt": text})
			s := r.do("POST", "/v1/completions", string(body), "X-Warmpath-Explain", "1")
			if s.status != 200 {
				t.Fatalf("%s: %d %s", model, s.status, s.body)
			}
			matched, err := strconv.Atoi(s.header.Get("X-Warmpath-Matched-Blocks"))
			if err != nil {
				t.Fatal(err)
			}
			return matched
		}
		check := func(when, model string, held bool) {
			t.Helper()
			if got := matched(model); (got > 0) != held {
				t.Errorf("%d workers: %s: %d blocks of %s are believed, want some: %v", n, when, got, model, held)
			}
		}
		call("load", "ad", "", 200)
		call("load", "other", "", 200)
		for _, model := range []string{"ad", "other", "sim"} {
			matched(model)
			check("before", model, true)
		}
		call("load", "ad", "", 400)
		check("after a load that is refused", "ad", true)
		call("load", "ad", `,"load_inplace":true`, 200)
		check("after a load in place", "ad", false)
		check("then", "ad", true)
		call("unload", "ad", "", 200)
		call("load", "ad", "", 200)
		check("after an unload and a load", "ad", false)
		check("at last", "other", true)
		check("at last", "sim", true)
	}
}
