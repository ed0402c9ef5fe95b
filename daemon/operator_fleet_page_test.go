package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// troubledFleet is 256 workers in 16 pools with seven things wrong at once: the pool p7 is dead, a worker of p3 is down, one
// of p4 refuses its key, the Redis of sessions
// and of the history is lost, the file was refused, the strategy of p15 is set aside.
func troubledFleet(t *testing.T) *running {
	redis := redistest.Start(t)
	var b strings.Builder
	fmt.Fprintf(&b, "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n%s[cache]\nredis = %q\n", bindAlways, redis.URL())
	trap := filepath.Join(t.TempDir(), "trap.wasm")
	module(t, "trap.wat", trap)
	fmt.Fprintf(&b, "[strategies.mine]\npath = %q\n", trap)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			http.Error(w, `{"error":"Unauthorized"}`, http.StatusUnauthorized)
		}
	}))
	t.Cleanup(refuses.Close)
	pools := map[int]vllmsim.Fleet{}
	for i := range 16 {
		pools[i] = sims(t, 16, vllmsim.Config{Models: []string{fmt.Sprint("m", i)}})
		urls := pools[i].URLs()
		if i == 4 {
			urls[1] = refuses.URL
		}
		strategy := "prefixaware"
		if i == 15 {
			strategy = "mine" // traps where there are five workers
		}
		addPool(&b, fmt.Sprint("p", i), strategy, fmt.Sprint("m", i), urls...)
	}
	r := start(t, strings.ReplaceAll(b.String(), `"100ms"`, `"2s"`), 255)
	redis.Kill()
	r.do("POST", "/v1/completions", `{"model":"m0","prompt":"a","max_tokens":1}`, "X-Session-Id", "of-redis")
	for _, w := range append(slices.Clone(pools[7]), pools[3][4]) {
		if err := w.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	write(t, r.file, b.String()+"no = TOML\n")
	if r.Reload() == nil {
		t.Fatal("the file was taken")
	}
	eventually(t, "the strategy is set aside", func() bool {
		r.do("POST", "/v1/completions", `{"model":"m15","prompt":"a","max_tokens":1}`)
		return r.describe()[15].Quarantine
	})
	return r
}

// troubles are what the strip says of troubledFleet.
var troubles = []string{"pool p7 cannot serve", "w5 of p3 down", "w2 of p4 fails", "Redis of [cache] lost",
	"Redis of [history] lost", "file refused", "strategy of p15 set aside"}

// TestThePageAtFleetSize: of 256 workers in 16 pools, with seven things wrong at once, the head says how many, and the strip
// names each once, with a command. The first figure and the sick worker are on the first screen, on a desk and on a
// telephone, where a worker has one line. All workers can be shown, sorted and found, and under traffic the page runs
// script for less than 50 ms a second.
func TestThePageAtFleetSize(t *testing.T) {
	b := openTab(t)
	r := troubledFleet(t)
	origin := "http://" + r.AdminAddr()
	b.screen(1280, 800)
	b.call("Page.navigate", map[string]any{"url": origin + "/"}, nil)
	b.await("the page is ready", `document.documentElement.dataset.ready === "yes"`)
	for _, what := range troubles {
		b.await("once: "+what, fmt.Sprintf(`[...document.querySelectorAll("#state, #warnings b")].filter((e) => e.textContent.includes(%q)).length === 1`, what))
	}
	b.await("how many", fmt.Sprintf(`document.querySelector("#state").textContent.startsWith("%d problems · ")`, len(troubles)))
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; !over.Load(); i++ {
			r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"m%d","prompt":"%s","stream":true,"max_tokens":2}`, i%3, strings.Repeat("some words ", 200)))
			time.Sleep(50 * time.Millisecond)
		}
	}()
	defer func() { over.Store(true); <-ended }()
	const inSight = `(() => { const e = %s, r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight && r.right <= innerWidth })()`
	for _, s := range []struct{ width, height int }{{1280, 800}, {390, 844}} {
		b.screen(s.width, s.height)
		b.call("Page.navigate", map[string]any{"url": origin + "/"}, nil)                     // a telephone keeps the scale of before
		b.await("the charts", `document.querySelectorAll("#charts path.first").length === 4`) // they push the workers down
		b.await("the worker that is down", fmt.Sprintf(inSight, `document.querySelector("#fleet tr[data-key='p3 w5']")`))
		b.await("the strip", fmt.Sprintf(inSight, `document.querySelector("#strip")`))
		b.await("the first figure", fmt.Sprintf(inSight, `document.querySelector("#charts figure")`))
		if high := b.eval(`Math.max(...[...document.querySelectorAll("#warnings li, #fleet tr.one")].map((e) => e.offsetHeight)) < 40`); high != "true" {
			t.Errorf("at %d pixels a row has two lines", s.width)
		}
		if n := b.eval(fmt.Sprintf(`[...document.querySelectorAll("#warnings code")].filter((c) => c.textContent.startsWith(%q)).length`, binary+" ")); n != fmt.Sprint(len(troubles)) {
			t.Errorf("%s warnings have a command; want %d", n, len(troubles))
		}
		if wide := b.eval(`Math.max(0, document.documentElement.scrollWidth - innerWidth)`); wide != "0" {
			t.Errorf("at %d pixels the page is %s wider than the screen", s.width, wide)
		}
		if cut := b.eval(`[...document.querySelectorAll("nav, #fleet td.c-pool")].filter((e) => e.scrollWidth > e.clientWidth).length`); cut != "0" {
			t.Errorf("at %d pixels %s texts are cut", s.width, cut)
		}
		if line := b.eval(`(() => { const li = document.querySelector("#warnings li"), span = li.querySelector("span"); li.classList.add("open");
			const own = getComputedStyle(span).flexBasis; li.classList.remove("open"); return own })()`); s.width < 640 && line != `"100%"` {
			t.Errorf("on a phone the text of an open warning has a line of %s", line)
		}
		if *pictures != "" {
			time.Sleep(11 * time.Second) // the charts
			b.look(filepath.Join(*pictures, fmt.Sprintf("page-fleet-%d.png", s.width)), s.width, s.height, "light")
			b.look(filepath.Join(*pictures, fmt.Sprintf("page-fleet-%d-dark-whole.png", s.width)), s.width, 3*s.height, "dark")
		}
	}
	b.screen(1280, 800)
	b.call("Page.navigate", map[string]any{"url": origin + "/"}, nil)
	b.await("that there are more", `!document.querySelector("#every").hidden`)
	b.eval(`document.querySelector("#every").click()`)
	b.await("all workers", `document.querySelectorAll("#fleet tr.one").length === 256`)
	b.scriptIsCheap("all rows")
	b.eval(`document.querySelector("#fleet th.c-worker button").click()`)
	b.await("by name", `document.querySelector("#fleet th.c-worker").getAttribute("aria-sort") === "ascending" &&
		document.querySelector("#fleet tr.one").dataset.key === "p0 w1"`)
	b.eval(`document.querySelector("#pools button:nth-child(9)").click()`)
	b.await("one pool alone", `document.querySelectorAll("#fleet tr.one").length === 16 && document.querySelector("#pool").textContent.includes("m7")`)
	b.blameless(origin)
}

// scriptIsCheap checks that the page runs script for less than 50 ms a second. Other work on the machine only adds to
// that, so the best of some windows counts.
func (b *tab) scriptIsCheap(what string) {
	b.t.Helper()
	best := 1.0
	for range 6 {
		began, before := time.Now(), b.spent()
		time.Sleep(10 * time.Second)
		best = min(best, (b.spent()-before)/time.Since(began).Seconds())
		b.t.Logf("%s: %.1f ms of script a second at best", what, 1000*best)
		if best < .05 {
			return
		}
	}
	b.t.Errorf("%s: %.0f ms of script a second", what, 1000*best)
}

// TestThePageGreysWhileTheRouterHangs: a router that takes connections and does not answer is no router that is well.
func TestThePageGreysWhileTheRouterHangs(t *testing.T) {
	t.Parallel()
	r := start(t, settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	to, err := url.Parse("http://" + r.AdminAddr())
	if err != nil {
		t.Fatal(err)
	}
	var hangs atomic.Bool
	end := make(chan struct{})
	through := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if hangs.Load() {
			select {
			case <-end:
			case <-q.Context().Done():
			}
			return
		}
		through.ServeHTTP(w, q)
	}))
	t.Cleanup(front.Close)
	t.Cleanup(func() { close(end) })
	b := openTab(t)
	b.call("Page.navigate", map[string]any{"url": front.URL + "/"}, nil)
	b.await("the state", `document.querySelector("#state").textContent === "ready · 1 of 1 workers up"`)
	hangs.Store(true)
	took := b.await("that it does not answer", `document.querySelector("#state").textContent.includes("the router does not answer") &&
		document.querySelector("#state").className === "bad" && document.body.classList.contains("stale")`)
	if took > 15*time.Second {
		t.Errorf("that took %s", took)
	}
	hangs.Store(false)
	b.await("that it is back", `document.querySelector("#state").className === "good" && !document.body.classList.contains("stale")`)
	b.await("the decisions, too", `document.querySelector("#live").textContent === "live"`)
}
