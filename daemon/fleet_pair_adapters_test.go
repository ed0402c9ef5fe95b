package daemon

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// askAdapter sends a long prompt to an adapter, and returns the status and the answer.
func (f *rolesFleet) askAdapter(name, prompt string) (int, string) {
	s := f.do("POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"max_tokens":4,"prompt":%q}`, name, longText(prompt, 1500)))
	return s.status, s.body
}

// TestAdaptersOfPairs: adapters that one side lacks, that are unloaded between the legs, and that are loaded in place while
// legs run. Each client gets its answer, and no block stays pinned.
func TestAdaptersOfPairs(t *testing.T) {
	t.Parallel()
	const loads = `adapters = { source = "/adapters/{name}", max = 2 }`
	unload := func(url string) {
		resp, err := http.Post(url+"/v1/unload_lora_adapter", "application/json", strings.NewReader(`{"lora_name":"ad"}`))
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	load := func(t *testing.T, url string) {
		t.Helper()
		if s := do(t, "POST", url+"/v1/load_lora_adapter", `{"lora_name":"ad","lora_path":"/adapters/ad"}`); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
	}
	// before stands before a worker, and calls at when a prompt is on its way to it.
	before := func(at *atomic.Pointer[func()]) func(w *vllmsim.Server) string {
		return func(w *vllmsim.Server) string {
			to, err := url.Parse(w.URL())
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(to)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if f := at.Load(); f != nil && r.URL.Path == "/v1/completions" {
					(*f)()
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(s.Close)
			return s.URL
		}
	}
	for _, x := range []struct {
		name, pool string
		play       func(t *testing.T, f *rolesFleet, prefiller, decoder *atomic.Pointer[func()])
		want       int
	}{
		{"the prefiller lacks it", "", func(t *testing.T, f *rolesFleet, _, _ *atomic.Pointer[func()]) { load(t, f.decode[0].URL()) }, 200},
		{"the decoder lacks it", "", func(t *testing.T, f *rolesFleet, _, _ *atomic.Pointer[func()]) { load(t, f.prefill[0].URL()) }, 404},
		{"the decoder lacks it, and loads it", loads,
			func(t *testing.T, f *rolesFleet, _, _ *atomic.Pointer[func()]) { load(t, f.prefill[0].URL()) }, 200},
		{"both load it", loads, func(*testing.T, *rolesFleet, *atomic.Pointer[func()], *atomic.Pointer[func()]) {}, 200},
		{"unloaded at the prefiller", loads, func(_ *testing.T, f *rolesFleet, prefiller, _ *atomic.Pointer[func()]) {
			var once sync.Once
			prefiller.Store(new(func() { once.Do(func() { unload(f.prefill[0].URL()) }) }))
		}, 200},
		{"unloaded at the decoder between the legs", loads, func(_ *testing.T, f *rolesFleet, _, decoder *atomic.Pointer[func()]) {
			var once sync.Once
			decoder.Store(new(func() { once.Do(func() { unload(f.decode[0].URL()) }) }))
		}, 200},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			var prefiller, decoder atomic.Pointer[func()]
			f := startRolesWith(t, 1, 1, rolesOptions{sim: vllmsim.Config{MaxLoras: 2}, pool: x.pool, before: before(&decoder),
				beforePrefiller: before(&prefiller)})
			x.play(t, f, &prefiller, &decoder)
			for i := range 3 {
				if status, text := f.askAdapter("ad", fmt.Sprint(x.name, i)); status != x.want {
					t.Errorf("request %d: %d %s; want %d", i, status, text, x.want)
				}
			}
			eventually(t, "no blocks are pinned", func() bool { return f.pinned() == 0 })
		})
	}
	t.Run("loaded in place while legs run", func(t *testing.T) {
		t.Parallel()
		f := startRolesWith(t, 1, 2, rolesOptions{sim: vllmsim.Config{MaxLoras: 2}, pool: loads})
		var all sync.WaitGroup
		for c := range 4 {
			all.Go(func() {
				for i := range 10 {
					if status, text := f.askAdapter("ad", fmt.Sprint(c, " of ", i)); status != 200 {
						t.Errorf("%d %s", status, text)
					}
				}
			})
		}
		for range 5 {
			s := f.do("POST", "/v1/load_lora_adapter", `{"lora_name":"ad","lora_path":"/adapters/ad","load_inplace":true}`)
			if s.status != 200 {
				t.Errorf("the load: %d %s", s.status, s.body)
			}
		}
		all.Wait()
		eventually(t, "no blocks are pinned", func() bool { return f.pinned() == 0 })
	})
}
