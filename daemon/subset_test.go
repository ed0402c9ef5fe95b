package daemon

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// subsetWorker counts what it is asked.
type subsetWorker struct {
	*httptest.Server
	name           string
	model          string // that it lists beside sim; "" = none
	length         int    // of its model sim; 0 = it lists none
	asked, answers atomic.Int64
}

func startSubsetWorker(t *testing.T, i int) *subsetWorker {
	w := &subsetWorker{name: fmt.Sprintf("w%d", i+1)}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health", "/metrics":
			w.asked.Add(1)
		case "/v1/models":
			w.asked.Add(1)
			models := `{"id":"sim"}`
			if w.length > 0 {
				models = fmt.Sprintf(`{"id":"sim","max_model_len":%d}`, w.length)
			}
			if w.model != "" {
				models += fmt.Sprintf(`,{"id":%q}`, w.model)
			}
			fmt.Fprintf(rw, `{"data":[%s]}`, models)
		case "/v1/completions":
			_, _ = io.Copy(io.Discard, r.Body)
			w.answers.Add(1)
			rw.Header().Set("Worker", w.name)
			_, _ = io.WriteString(rw, completion)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

func startSubsetWorkers(t *testing.T, n int) (all []*subsetWorker, urls []string) {
	for i := range n {
		all = append(all, startSubsetWorker(t, i))
		urls = append(urls, all[i].URL)
	}
	return all, urls
}

// withSubset is a configuration whose pool has a subset of so many workers, at a router of that name.
func withSubset(text, name string, n int) string {
	return fmt.Sprintf("[history]\nname = %q\n", name) + withPool(text, fmt.Sprintf("subset = %d\n", n))
}

// stays sets how long a worker stays after the last need for it.
func stays(t *testing.T, d time.Duration) {
	before := subsetLinger
	subsetLinger = d
	t.Cleanup(func() { subsetLinger = before })
}

// used returns the workers that the router uses, by state, and the others with why.
func (r *running) used() (used, outside map[string]string) {
	used, outside = map[string]string{}, map[string]string{}
	for _, w := range r.describe()[0].Workers {
		if w.State == operator.Outside {
			outside[w.ID] = w.Why
		} else {
			used[w.ID] = w.State
		}
	}
	return used, outside
}

// reloadWith reloads the router with another file.
func (r *running) reloadWith(text string) {
	r.t.Helper()
	write(r.t, r.file, text)
	if err := r.Reload(); err != nil {
		r.t.Fatal(err)
	}
}

// TestSubset: a router uses as many workers as its subset has, and asks the others nothing. When workers of the subset
// go, others take their place, and leave when they are back.
func TestSubset(t *testing.T) {
	stays(t, time.Second)
	all, urls := startSubsetWorkers(t, 16)
	r := start(t, withSubset(settings("roundrobin", urls...), "a", 4), 4)
	used, outside := r.used()
	if len(used) != 4 || len(outside) != 12 {
		t.Fatalf("%d workers are used, %d are outside; want 4 and 12", len(used), len(outside))
	}
	for id, why := range outside {
		if why != "it is in no router's subset" {
			t.Errorf("%s is outside because %q", id, why)
		}
	}
	r.warned("12 workers of main are unused")
	for range 40 {
		r.at()
	}
	for _, w := range all {
		if _, in := used[w.name]; in != (w.asked.Load() > 0) || in != (w.answers.Load() > 0) {
			t.Errorf("%s, in the subset %v: was asked %d times, and got %d requests", w.name, in, w.asked.Load(), w.answers.Load())
		}
	}
	if n := r.count("warmpath_worker_up{"); n != 4 {
		t.Errorf("/metrics has %d workers; want 4", n)
	}
	var down []*subsetWorker
	for _, w := range all {
		if _, in := used[w.name]; in && len(down) < 2 {
			w.Listener.Close()
			w.CloseClientConnections()
			down = append(down, w)
		}
	}
	eventually(t, "three of the subset's four workers are up", func() bool {
		now, _ := r.used()
		states := slices.Sorted(maps.Values(now))
		up := len(states) - slices.Index(states, "up")
		return slices.Contains(states, "up") && up >= 3 && len(r.describe()[0].Subset.Grown) > 0
	})
	for range 40 {
		r.at()
	}
	t.Log(r.describe()[0].Subset.Text)
	for _, w := range down {
		again := httptest.NewUnstartedServer(w.Config.Handler)
		again.Listener.Close()
		l, err := net.Listen("tcp", strings.TrimPrefix(w.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		again.Listener = l
		again.Start()
		t.Cleanup(again.Close)
	}
	eventually(t, "the subset is what it was", func() bool {
		now, _ := r.used()
		return slices.Equal(slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(used)))
	})
}

// TestSubsetsOfRouters: three routers that share divide 12 workers. Each worker is in one subset, and a session that one
// router has opened stays at its worker when its requests come to another. When a router leaves, its workers are not
// lost to the others' sessions, and a router that comes back has the subset that it had.
func TestSubsetsOfRouters(t *testing.T) {
	stays(t, time.Second)
	redis := redistest.Start(t).URL()
	_, urls := startSubsetWorkers(t, 12)
	text := func(i int) string {
		return bindAlways + fmt.Sprintf("[cache]\nredis = %q\n", redis) + withSubset(settings("roundrobin", urls...), fmt.Sprint("r", i), 4)
	}
	var routers []*running
	for i := range 3 {
		routers = append(routers, start(t, text(i), 4))
	}
	subsets := func() (of map[string]int, most int) {
		of = map[string]int{}
		for _, r := range routers {
			used, _ := r.used()
			for id := range used {
				of[id]++
				most = max(most, of[id])
			}
		}
		return of, most
	}
	eventually(t, "each worker is in one subset", func() bool {
		of, most := subsets()
		return len(of) == 12 && most == 1
	})
	if s := routers[0].describe()[0].Subset; s.Unused != 0 || len(s.Routers) != 3 || len(s.Outside) != 8 {
		t.Errorf("the first router describes its subset as %+v", s)
	}
	home := routers[0].at("X-Session-Id", "one")
	for range 5 {
		if at := routers[1].at("X-Session-Id", "one"); at != home {
			t.Fatalf("the session is at %s, and at another router at %s", home, at)
		}
	}
	used, _ := routers[1].used()
	if grown := routers[1].describe()[0].Subset.Grown[home]; used[home] != "up" || !strings.Contains(grown, "a session lives there") {
		t.Errorf("the other router uses %v, and %s because %q", used, home, grown)
	}
	before := slices.Sorted(maps.Keys(used))
	for range 20 {
		if at := routers[1].at(); at == home {
			t.Error("a request without a session went to a worker outside of the subset")
		}
	}
	_ = routers[1].stop()
	routers[1] = start(t, text(1), 4)
	eventually(t, "the router has the subset that it had", func() bool {
		now, _ := routers[1].used()
		delete(now, home)
		return slices.Equal(slices.Sorted(maps.Keys(now)), slices.DeleteFunc(slices.Clone(before), func(id string) bool { return id == home }))
	})
}

// TestSubsetFindsModelsAndFences: what one worker outside of the subset alone can serve is found there.
func TestSubsetFindsModelsAndFences(t *testing.T) {
	stays(t, time.Second)
	all, urls := startSubsetWorkers(t, 64)
	probe := start(t, withSubset(settings("roundrobin", urls...), "a", 2), 2)
	used, _ := probe.used()
	_ = probe.stop()
	var apart []*subsetWorker
	for _, w := range all {
		if _, in := used[w.name]; !in {
			apart = append(apart, w)
		}
	}
	apart[40].model = "rare"
	text := withSubset(settings("roundrobin", urls...), "a", 2)
	for i, w := range apart[10:30] { // single workers: many values do not make the subset grow
		text = strings.Replace(text, fmt.Sprintf("id = %q\n", w.name), fmt.Sprintf("id = %q\nlabels = { pod = \"p%d\" }\n", w.name, i), 1)
	}
	text = strings.Replace(text, fmt.Sprintf("id = %q\n", apart[5].name), fmt.Sprintf("id = %q\nlabels = { zone = \"b\" }\n", apart[5].name), 1)
	file := t.TempDir() + "/key"
	write(t, file, "secret-of-acme\n")
	text = fmt.Sprintf("[[keys]]\nname = \"acme\"\nfile = %q\nworkers = \"pod=p7\"\n[[keys]]\nname = \"all\"\nenv = \"ALL\"\n", file) + text
	os.Setenv("ALL", "secret-of-all")
	r := start(t, text, 4)
	at := func(want, key, body string) {
		t.Helper()
		s := r.do("POST", "/v1/completions", body, "Authorization", "Bearer "+key)
		if got := s.header.Get("Worker"); s.status != 200 || want != "" && got != want {
			t.Errorf("answer %d %.200s from %q; want %q", s.status, s.body, got, want)
		}
	}
	at("", "secret-of-all", hello)
	at(apart[17].name, "secret-of-acme", hello)
	eventually(t, "a worker of each zone is used", func() bool {
		used, _ := r.used()
		return used[apart[5].name] == "up"
	})
	eventually(t, "the worker with the model is found", func() bool {
		s := r.do("POST", "/v1/completions", strings.Replace(hello, "sim", "rare", 1), "Authorization", "Bearer secret-of-all")
		return s.status == 200 && s.header.Get("Worker") == apart[40].name
	})
	eventually(t, "those that were asked for it are left again", func() bool {
		used, _ := r.used()
		return len(used) <= 5 && used[apart[40].name] == "up"
	})
	if s := r.do("GET", "/v1/models", "", "Authorization", "Bearer secret-of-all"); !strings.Contains(s.body, `"rare"`) {
		t.Errorf("the model that was asked for is not listed: %s", s.body)
	}
	eventually(t, "a model that nobody has is not found", func() bool {
		s := r.do("POST", "/v1/completions", strings.Replace(hello, "sim", "none", 1), "Authorization", "Bearer secret-of-all")
		return s.status == 404
	})
}

// TestSubsetReload: a change of the subset under load loses no request.
func TestSubsetReload(t *testing.T) {
	stays(t, time.Second)
	fleet := sims(t, 12, vllmsim.Config{})
	base := settings("prefixaware", fleet.URLs()...)
	r := start(t, base, 12)
	end := r.underLoad(8)
	for _, n := range []int{4, 8, 2, 0, 6} {
		text := base
		if n > 0 {
			text = withSubset(base, "a", n)
		}
		r.reloadWith(text)
		want := n
		if n == 0 {
			want = 12
		}
		eventually(t, fmt.Sprintf("%d workers are used", want), func() bool {
			used, _ := r.used()
			return len(used) == want
		})
		time.Sleep(200 * time.Millisecond)
	}
	if sent, failed := end(); failed > 0 || sent < 100 {
		t.Errorf("%d of %d requests failed", failed, sent)
	}
}

// TestSubsetOfPairs: a subset has prefillers and decoders in the pool's proportion. When its prefillers are gone, others
// take their place.
func TestSubsetOfPairs(t *testing.T) {
	stays(t, time.Second)
	f := startRoles(t, 6, 6)
	text, err := os.ReadFile(f.file)
	if err != nil {
		t.Fatal(err)
	}
	f.reloadWith(withSubset(string(text), "a", 4))
	roles := func() (prefill, decode []string) {
		for _, w := range f.describe()[0].Workers {
			switch {
			case w.State != "up":
			case w.Labels["role"] == "prefill":
				prefill = append(prefill, w.ID)
			default:
				decode = append(decode, w.ID)
			}
		}
		return prefill, decode
	}
	ask := func(n int) {
		t.Helper()
		for i := range n {
			if err := f.ask(context.Background(), fmt.Sprint("subset", time.Now().UnixNano(), i), 800, i%2 == 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "two of each role", func() bool {
		p, d := roles()
		return len(p) == 2 && len(d) == 2
	})
	prefillers, decoders := roles()
	sent := func(id string) (n uint64) {
		for _, s := range f.shown()[0].Workers.Stats(time.Now()) {
			if s.ID == id {
				n = s.Sent
			}
		}
		return n
	}
	ask(8)
	for _, id := range append(prefillers, decoders...) {
		if sent(id) == 0 {
			t.Errorf("%s got nothing", id)
		}
	}
	for _, id := range prefillers {
		for i, w := range f.prefill {
			if fmt.Sprintf("w%d", i+1) == id {
				_ = w.Close()
			}
		}
	}
	eventually(t, "other prefillers take their place", func() bool {
		p, _ := roles()
		return len(p) >= 2 && !slices.Contains(p, prefillers[0])
	})
	ask(8)
	p, _ := roles()
	if sent(p[0])+sent(p[1]) == 0 {
		t.Errorf("the prefillers %v got nothing", p)
	}
}
