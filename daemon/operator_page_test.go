package daemon

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

var pictures = flag.String("pictures", "", "folder for pictures of the operator's page")

// TestThePageInARealBrowser: decisions appear within a second of the request, the workers are there, a worker is drained
// and put back, the what-if box asks every strategy; nothing fails, and nobody else is asked.
func TestThePageInARealBrowser(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	r := start(t, settings("prefixaware", append(sims(t, 3, vllmsim.Config{}).URLs(), "http://127.0.0.1:1")...), 3)
	origin := "http://" + r.AdminAddr()
	b.call("Page.navigate", map[string]any{"url": origin + "/"}, nil)
	b.await("the page is ready", `document.documentElement.dataset.ready === "yes"`)
	b.await("the workers are there", `document.querySelectorAll("#fleet tr.one").length === 4`)
	b.await("the stream of decisions is open", `document.querySelector("#live").textContent === "live"`)

	const body = `{"model":"sim","stream":true,"messages":[{"role":"user","content":"%s"}],"max_tokens":3}`
	long := strings.Repeat("a prompt that is long enough to have blocks of its own ", 20)
	for i := range 12 {
		id := fmt.Sprint("request-", i)
		if got := r.do("POST", "/v1/chat/completions", fmt.Sprintf(body, long+fmt.Sprint(i%3)), "X-Request-Id", id); got.status != 200 {
			t.Fatal(got.status, got.body)
		}
	}
	seesDecisions(t, b, 13, func() {
		r.do("POST", "/v1/chat/completions", fmt.Sprintf(body, long), "X-Request-Id", "the-last")
	})
	b.eval(`document.querySelector("#log tr.one").focus()`)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}, nil)
	b.await("the candidates, by the keyboard", `document.querySelectorAll("#log tr.more table tbody tr").length === 4`)
	if text := b.eval(`document.querySelector("#log tr.more").innerText`); !strings.Contains(text, "the-last") || !strings.Contains(text, "down") {
		t.Errorf("the row says %s", text)
	}

	for _, id := range []string{"w1", "w4"} { // w4 is down: who drains it may have stopped it already
		b.unfold("main", id)
		b.eval(fmt.Sprintf(`document.querySelector("[aria-label='Drain %s']").click()`, id))
		b.await("the question", `document.querySelector("#sure").open`)
		b.eval(`document.querySelector("#sure button[value=yes]").click()`)
		b.await(id+" is drained", fmt.Sprintf(`document.querySelector("[aria-label='Undrain %s']")`, id))
		b.await(id+" says so", `document.querySelector("#fleet").innerText.includes("asked to drain")`)
		b.eval(fmt.Sprintf(`document.querySelector("[aria-label='Undrain %s']").click()`, id))
		b.await(id+" is back", fmt.Sprintf(`document.querySelector("[aria-label='Drain %s']")`, id))
	}

	b.eval(fmt.Sprintf(`document.querySelector("#body").value = JSON.stringify(%s)`, fmt.Sprintf(body, long)))
	before := b.eval(`document.querySelectorAll("#log tr.one").length`)
	b.eval(`document.querySelector("#ask").requestSubmit()`)
	b.await("every strategy's answer", `document.querySelectorAll("#answer h3").length >= 4`)
	if text := b.eval(`document.querySelector("#answer").innerText`); !strings.Contains(text, "prefixaware, which serves: w") ||
		!strings.Contains(text, "roundrobin") {
		t.Errorf("the box says %s", text)
	}
	if after := b.eval(`document.querySelectorAll("#log tr.one").length`); after != before {
		t.Errorf("the question was sent: %s decisions, then %s", before, after)
	}
	if text := b.eval(`document.querySelector("#config").innerText`); !strings.Contains(text, "[[pools]]") {
		t.Errorf("the configuration is %s", text)
	}
	for _, width := range []int{1280, 390} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
		if over := b.eval(`Math.max(0, document.documentElement.scrollWidth - innerWidth)`); over != "0" {
			t.Errorf("at %d pixels the page is %s wider than the screen", width, over)
		}
	}
	if *pictures != "" {
		b.eval(`scrollTo(0, 0)`)
		for _, p := range []struct {
			name, scheme  string
			width, height int
		}{{"page.webp", "light", 1280, 1100}, {"light.png", "light", 1280, 3300}, {"dark.png", "dark", 1280, 3300}, {"telephone.png", "light", 390, 2600}} {
			b.look(filepath.Join(*pictures, p.name), p.width, p.height, p.scheme)
		}
	}
	b.blameless(origin)
}

// TestClicksOnThePageUnderTraffic: a row and a card that would be drawn anew between the press of the mouse and its
// release get their click.
func TestClicksOnThePageUnderTraffic(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	r := start(t, settings("prefixaware", sims(t, 2, vllmsim.Config{}).URLs()...), 2)
	ask := func() { r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`) }
	ask()
	b.call("Page.navigate", map[string]any{"url": "http://" + r.AdminAddr() + "/"}, nil)
	b.await("the page is ready", `document.documentElement.dataset.ready === "yes"`)
	b.await("a decision", `document.querySelectorAll("#log tr.one").length === 1`)
	mouse := func(kind string, at []float64) {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
	click := func(what string, meanwhile func()) {
		t.Helper()
		var at []float64
		for before := ""; ; time.Sleep(100 * time.Millisecond) { // a person clicks on what stands still
			place := b.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center", behavior: "instant"});
				const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`, what))
			if place != before {
				before = place
				continue
			}
			if err := json.Unmarshal([]byte(place), &at); err != nil {
				t.Fatal(err)
			}
			break
		}
		mouse("mousePressed", at)
		meanwhile()
		mouse("mouseReleased", at)
	}
	click("#log tr.one", func() {
		ask()
		time.Sleep(time.Second)
	})
	b.await("the candidates", `document.querySelector("#log tr.more")`)
	b.await("what came meanwhile", `document.querySelectorAll("#log tr.one").length === 2`)
	b.unfold("main", "w2")
	click("[aria-label='Drain w2']", func() { time.Sleep(2100 * time.Millisecond) }) // the workers are drawn every two seconds
	b.await("the question", `document.querySelector("#sure").open`)
}

// seesDecisions sends requests until the page shows one within a second; the first is its n-th.
func seesDecisions(t *testing.T, b *tab, n int, send func()) {
	t.Helper()
	waittest.AtBest(t, "a decision on the page", time.Second, func() time.Duration {
		sent := time.Now()
		send()
		b.await("the decision", fmt.Sprintf(`document.querySelectorAll("#log tr.one").length >= %d`, n))
		n++
		return time.Since(sent)
	})
}

// TestThePageShowsWhatIsConfigured: shadows and how often they agree, the other routers, the workers' KV cache and
// LMCache's instances; without them there is nothing of it.
func TestThePageShowsWhatIsConfigured(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	f := sims(t, 2, vllmsim.Config{})
	redis := redistest.Start(t).URL()
	startRouter(t, 0, redis, "prefixaware", f)
	r := start(t, settings("prefixaware", f.URLs()...)+fmt.Sprintf("[[pools.shadow]]\nstrategy = \"roundrobin\"\n"+
		"[history]\nredis = %q\nname = \"router-1\"\n[kv_cache]\nmax_bytes = 16777216\nresp = \"127.0.0.1:0\"\n"+
		"[lmcache]\ncoordinator = \"127.0.0.1:0\"\n", redis), 2)
	origin := "http://" + r.AdminAddr()
	for i := range 8 {
		if got := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":"sim","prompt":"number %d","max_tokens":2}`, i)); got.status != 200 {
			t.Fatal(got.status, got.body)
		}
	}
	b.call("Page.navigate", map[string]any{"url": origin + "/"}, nil)
	for id, want := range map[string]string{"shadows": "roundrobin", "routers": "router-0", "kvcache": "memory", "lmcache": "LMCache"} {
		b.await(id, fmt.Sprintf(`document.querySelector("#%s")?.innerText.includes(%q)`, id, want))
	}
	b.await("how often the shadow agrees", `/[0-9]+ %/.test(document.querySelector("#shadows")?.innerText)`)
	if *pictures != "" {
		b.look(filepath.Join(*pictures, "configured.png"), 1280, 3300, "light")
		b.look(filepath.Join(*pictures, "configured-telephone.png"), 390, 4300, "dark")
	}
	for _, width := range []int{1280, 390} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
		if over := b.eval(`Math.max(0, document.documentElement.scrollWidth - innerWidth)`); over != "0" {
			t.Errorf("at %d pixels the page is %s wider than the screen", width, over)
		}
	}
	b.blameless(origin)
}

// TestThePageOfAFleetInTrouble: the head says how much is wrong, and a strip which pool cannot serve, as one without
// workers, which worker is down, why, and what to do; Escape in the question gives the focus back to the button, though its card was drawn meanwhile;
// the names of models and workers leave the end of a request on the screen.
func TestThePageOfAFleetInTrouble(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	empty := filepath.Join(t.TempDir(), "workers.toml")
	write(t, empty, "workers = []\n")
	long := strings.Repeat("a-model-with-a-long-name-", 8)
	worker := sims(t, 1, vllmsim.Config{Models: []string{long}}).URLs()[0]
	main := strings.Replace(settings("prefixaware", worker, "http://127.0.0.1:1"), `"*"`, strconv.Quote(long), 1)
	r := start(t, main+fmt.Sprintf("[[pools]]\nname = \"second\"\nmodels = [\"other\"]\nworkers_file = %q\n", empty), 1)
	if got := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"a","max_tokens":2}`, long)); got.status != 200 {
		t.Fatal(got.status, got.body)
	}
	b.call("Page.navigate", map[string]any{"url": "http://" + r.AdminAddr() + "/"}, nil)
	b.await("the state", `document.querySelector("#state")?.textContent ===
		"2 problems · 1 of 2 workers up" && document.querySelector("#warnings b").textContent === "pool second cannot serve"`)
	b.await("its colour", `document.querySelector("#state").className === "bad"`)
	b.await("its reason and what to do", `/w2 of main down.*connection refused.* check --probe --config \//s.test(document.querySelector("#warnings").innerText)`)
	b.await("the sick one first", `document.querySelector("#fleet tr.one").dataset.key === "main w2"`)
	b.eval(`document.querySelector("[aria-label='Show w2 of main']").click()`)
	b.await("its card", `document.querySelector("#fleet tr.more").innerText.includes("connection refused")`)
	b.await("the decision", `document.querySelectorAll("#log tr.one").length === 1`)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": false}, nil)
	if at := b.eval(`document.querySelector("#log tr.one > td:last-child").getBoundingClientRect().right < innerWidth`); at != "true" {
		t.Error("the end of a request whose model has a long name is beside the screen")
	}

	b.unfold("main", "w1")
	b.eval(`document.querySelector("[aria-label='Drain w1']").focus()`)
	b.eval(`document.activeElement.click()`)
	b.await("the question", `document.querySelector("#sure").open`)
	time.Sleep(2100 * time.Millisecond) // the workers are drawn every two seconds
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Escape", "code": "Escape", "windowsVirtualKeyCode": 27}, nil)
	b.await("the focus is back", `!document.querySelector("#sure").open &&
		document.activeElement.getAttribute("aria-label") === "Drain w1"`)

	b.eval(`document.querySelector("#body").value = '{"model": "other", "prompt": "a"}'; document.querySelector("#ask").requestSubmit()`)
	b.await("the refusal, once", `document.querySelector("#answer").innerText.includes("no worker that is up") &&
		document.querySelectorAll("#answer h3").length === 1`)
	b.blameless("http://" + r.AdminAddr())
}

// TestThePageOutlivesTheRouter: while the router is away, the page says since when it knows nothing; what another process
// decides then, whose numbers begin anew, is shown, and what the first one decided is gone.
func TestThePageOutlivesTheRouter(t *testing.T) {
	t.Parallel()
	toml := settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...)
	first := start(t, toml, 1)
	var admin atomic.Pointer[url.URL]
	admin.Store(&url.URL{Scheme: "http", Host: first.AdminAddr()})
	door := httptest.NewServer(&httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(admin.Load()) }})
	t.Cleanup(door.Close)
	b := openTab(t) // ends before the door does, which waits for its stream
	ask := func(r *running, id string) {
		t.Helper()
		if got := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"a","max_tokens":2}`, "X-Request-Id", id); got.status != 200 {
			t.Fatal(got.status, got.body)
		}
	}
	for range 3 {
		ask(first, "of-the-first")
	}
	b.call("Page.navigate", map[string]any{"url": door.URL + "/"}, nil)
	b.await("the decisions", `document.querySelectorAll("#log tr.one").length === 3`)
	b.await("the state", `document.querySelector("#state").textContent === "ready · 1 of 1 workers up"`)

	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	b.await("that it is away", `document.querySelector("#state").textContent.includes("the router does not answer") &&
		document.body.classList.contains("stale")`)
	second := start(t, toml, 1)
	ask(second, "of-the-second")
	admin.Store(&url.URL{Scheme: "http", Host: second.AdminAddr()})
	b.await("the other's decision alone", `document.querySelectorAll("#log tr.one").length === 1`)
	b.await("that it is back", `document.querySelector("#state").className === "good" && !document.body.classList.contains("stale")`)
	b.eval(`document.querySelector("#log tr.one").click()`)
	b.await("its id", `document.querySelector("#log tr.more").innerText.includes("of-the-second")`)
}

// TestThePageAsksForTheToken: with a token the page shows nothing before it is given, keeps it in the tab, and not in
// the address.
func TestThePageAsksForTheToken(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "a-token-of-the-admin\n")
	r := start(t, withServer(settings("prefixaware", sims(t, 1, vllmsim.Config{}).URLs()...), fmt.Sprintf("admin_token_file = %q", file)), -1)
	origin := "http://" + r.AdminAddr()
	b.call("Page.navigate", map[string]any{"url": origin + "/"}, nil)
	give := func(token string) {
		t.Helper()
		b.await("the login", `document.querySelector("#login")?.open`)
		b.eval(fmt.Sprintf(`document.querySelector("#token").value = %q; document.querySelector("#login button").click()`, token))
	}
	give("a-wrong-token")
	b.await("the refusal", `document.querySelector("#login").open && document.querySelector("#refused").textContent !== ""`)
	if got := b.eval(`document.querySelectorAll("#fleet tr.one").length`); got != "0" {
		t.Errorf("without the token %s workers are shown", got)
	}
	give("a-token-of-the-admin")
	b.await("the workers", `document.querySelectorAll("#fleet tr.one").length === 1`)
	if got := b.eval(`location.href + document.cookie + JSON.stringify(localStorage)`); strings.Contains(got, "a-token") {
		t.Errorf("the token is in %s", got)
	}
	for _, u := range b.asked() {
		if strings.Contains(u, "a-token") {
			t.Errorf("the token is in %s", u)
		}
	}
}

// TestThePageOfRolesAndWaits: the workers have their roles and restarts, a name leads to its model, pool and workers, what
// waits in the router says for what and how long, and the charts have the time range that is chosen.
func TestThePageOfRolesAndWaits(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	prefill := sims(t, 1, vllmsim.Config{Connector: vllmsim.ConnectorNIXL, Role: vllmsim.RolePrefill})
	decode := sims(t, 1, vllmsim.Config{Connector: vllmsim.ConnectorNIXL, Role: vllmsim.RoleDecode})
	toml := withPool(settings("prefixaware", prefill[0].URL(), decode[0].URL()), "max_in_flight = 8\ndisaggregation = { connector = \"nixl\" }")
	toml = strings.NewReplacer("id = \"w1\"\n", "id = \"w1\"\nrole = \"prefill\"\n", "id = \"w2\"\n", "id = \"w2\"\nrole = \"decode\"\n").Replace(toml)
	f := start(t, limited(t, "tenant", "requests_per_minute = 20")+"[[models]]\nname = \"chat\"\nto = [{ model = \"sim\" }]\n"+toml, 2)
	origin := "http://" + f.AdminAddr()
	b.call("Page.navigate", map[string]any{"url": origin + "/"}, nil)
	const texts = `[...document.querySelectorAll("%s")].map((e) => e.innerText.trim()).join("|")`
	b.await("the roles", fmt.Sprintf(texts, "#fleet td.c-role")+` === "prefill|decode"`)
	b.await("the route", fmt.Sprintf(texts, "#names tbody tr:first-child td")+` === "chat|→ sim|main|prefill 1 of 1 up, decode 1 of 1 up|"`)
	for range 9 {
		go f.as("tenant", "POST", "/v1/completions", `{"model":"chat","prompt":"x","max_tokens":1}`)
	}
	b.await("who waits", `[...document.querySelectorAll("#log tr.one")].some((tr) =>
		/chat → sim\s+none\s+waits for its key's requests_per_minute\s+[0-9.]+ m?s\s+waits/.test(tr.innerText))`)
	time.Sleep(1100 * time.Millisecond) // start times that differ by less are one process
	if err := decode[0].Restart(); err != nil {
		t.Fatal(err)
	}
	b.await("the restart", fmt.Sprintf(texts, "#fleet td.c-restarts")+`.match(/(^|[|])1, \d+ s ago/)`)
	b.await("a range that fits the age", fmt.Sprintf(texts, "#range [aria-pressed=true]")+` === "5m" &&
		document.querySelector("#charts").innerHTML.includes("5 min ago")`)
	b.eval(`document.querySelector("#range button:last-child").click()`)
	b.await("the hour", fmt.Sprintf(texts, "#range [aria-pressed=true]")+` === "1h" &&
		document.querySelector("#charts").innerHTML.includes("1 h ago")`)
	b.blameless(origin)
}

var pictureOf = flag.String("picture-of", "", "URL of the admin listener of a daemon that runs: -pictures are of that")

// TestPictureOfADaemon is how the picture in the README was made.
func TestPictureOfADaemon(t *testing.T) {
	if *pictureOf == "" {
		t.Skip("SKIPPED: it draws a daemon that runs, by hand: -picture-of URL -pictures FOLDER")
	}
	b := openTab(t)
	for _, p := range []struct {
		name, scheme  string
		width, height int
	}{{"page.webp", "light", 1280, 1000}, {"all.png", "light", 1280, 3300}, {"dark.png", "dark", 1280, 1000}, {"telephone.png", "dark", 390, 1700}} {
		b.screen(p.width, p.height)
		b.call("Page.navigate", map[string]any{"url": *pictureOf + "/"}, nil)
		b.await("the decisions", `document.querySelectorAll("#log tr.one").length > 5`)
		b.eval(`document.querySelector("#pause").click(); document.querySelectorAll("#log tr.one")[2].click()`)
		time.Sleep(12 * time.Second) // the curves of the workers, and the keys
		b.look(filepath.Join(*pictures, p.name), p.width, p.height, p.scheme)
	}
}
