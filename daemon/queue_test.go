package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// gated is a worker that answers one request for each value sent.
func gated(t *testing.T) (url string, open chan struct{}) {
	open = make(chan struct{}, 10_000)
	w := fakeWorker(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-open:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, completion)
	})
	t.Cleanup(w.CloseClientConnections)
	return w.URL, open
}

func (r *running) waiting() int { return r.state.Load().pools[0].queue.Depth() }

// many sends n requests at once and returns what they get.
func (r *running) many(n int, header ...string) <-chan seen {
	all := make(chan seen, n)
	for range n {
		go func() { all <- r.do("POST", "/v1/completions", hello, header...) }()
	}
	return all
}

func allGood(t *testing.T, n int, all <-chan seen) {
	t.Helper()
	for range n {
		if s := <-all; s.status != 200 {
			t.Errorf("%d %s", s.status, s.body)
		}
	}
}

// A full pool has requests wait; a client that hangs up is out of the queue at once; the page, top and metrics say who
// waits.
func TestQueueOverTheSocket(t *testing.T) {
	t.Parallel()
	url, open := gated(t)
	r := start(t, withPool(settings("prefixaware", url), "max_in_flight = 1"), 1)
	first := r.many(1)
	eventually(t, "the first is at the worker", func() bool { return r.inFlight() == 1 })
	all := r.many(8, "X-Session-Id", "agent-7", "X-Warmpath-Priority", "-3")
	eventually(t, "eight wait", func() bool { return r.waiting() == 8 })
	hungUp := 0.0
	waittest.AtBest(t, "the wait of a client that hung up", 100*time.Millisecond, func() time.Duration { // in the router alone: see exchange
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(hello), hello)
		eventually(t, "nine wait", func() bool { return r.waiting() == 9 })
		c.Close()
		hungUp++
		gone := time.Now()
		eventually(t, "the one that hung up is out of the queue", func() bool { return r.waiting() == 8 })
		return time.Since(gone)
	})
	if got := r.metric("warmpath_queue_depth", `class="low"`); got != 8 {
		t.Errorf("warmpath_queue_depth of class low is %v", got)
	}
	q := r.describe()[0].Queue
	if q == nil || q.Waiting != 8 || len(q.Flows) != 1 || q.Flows[0].Class != -3 || strings.Contains(q.Flows[0].Flow, "agent") {
		t.Errorf("the page shows %+v", q)
	}
	for range 9 {
		open <- struct{}{}
	}
	allGood(t, 1, first)
	allGood(t, 8, all)
	if n := r.waiting(); n != 0 {
		t.Errorf("%d wait at the end", n)
	}
	if got := r.metric("warmpath_queue_dropped_total", `reason="client_gone"`); got != hungUp {
		t.Errorf("the client that left is counted %v times", got)
	}
	if got := r.metric("warmpath_queue_wait_seconds_count", `class="low"`); got != 8 {
		t.Errorf("%v waits are counted; want 8", got)
	}
}

// The ring has a request that waits, with its place now, for `warmpath why`.
func TestWhyOfARequestThatWaits(t *testing.T) {
	t.Parallel()
	url, open := gated(t)
	r := start(t, withPool(settings("prefixaware", url), "max_in_flight = 1"), 1)
	all := r.many(4)
	eventually(t, "three wait", func() bool { return r.waiting() == 3 })
	mine := r.many(1, "X-Request-Id", "mine")
	eventually(t, "four wait", func() bool { return r.waiting() == 4 })
	f := func(behind int) {
		t.Helper()
		eventually(t, fmt.Sprint("it is behind ", behind), func() bool {
			d, ok := r.ring.Find("mine")
			return ok && d.Open && d.Queued != nil && d.Waits && d.Behind == behind && d.Waited > 0 && d.Worker == ""
		})
	}
	f(3)
	open <- struct{}{}
	f(2)
	for range 4 {
		open <- struct{}{}
	}
	allGood(t, 4, all)
	allGood(t, 1, mine)
	eventually(t, "it has been served", func() bool {
		d, _ := r.ring.Find("mine")
		return !d.Open && !d.Waits && d.Behind == 3 && d.Worker == "w1"
	})
}

// Who waits too long is told so in the shape of its API.
func TestQueueSaysWhyItDrops(t *testing.T) {
	t.Parallel()
	url, open := gated(t)
	r := start(t, withPool(settings("prefixaware", url), "max_in_flight = 1\nqueue.wait = \"200ms\""), 1)
	first := r.many(1)
	eventually(t, "the first is at the worker", func() bool { return r.inFlight() == 1 })
	f := func(path, body, words string, status int, dropped string, header ...string) {
		t.Helper()
		s := r.do("POST", path, body, header...)
		if s.status != status || s.header.Get("X-Warmpath-Dropped") != dropped || !strings.Contains(s.body, words) ||
			s.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", path, s.status, s.header, s.body)
		}
	}
	f("/v1/completions", hello, `"code":"queue_wait"`, 429, "wait")
	f("/v1/messages", `{"model":"sim","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		`{"type":"error","error":{"type":"rate_limit_error"`, 429, "wait")
	f("/endpoints/main/invocations", hello, `{"Message":`, 429, "wait")
	f("/v1/completions", hello, `"code":"deadline"`, 429, "deadline", "X-Slo-Ttft-Ms", "50")
	open <- struct{}{}
	allGood(t, 1, first)
}

// A reload that changes every number while many wait loses none of them.
func TestReloadWhileManyWait(t *testing.T) {
	t.Parallel()
	url, open := gated(t)
	toml := settings("prefixaware", url)
	r := start(t, withPool(toml, "max_in_flight = 1"), 1)
	const n = 1000
	all := r.many(n)
	eventually(t, "all but one wait", func() bool { return r.waiting() == n-1 })
	for _, keys := range []string{
		"max_in_flight = 3\nmax_wait_seconds = 2.0\nmax_kv_use = 0.9\nqueue = { max_requests = 5, max_bytes = 65536, wait = \"2s\", wait_empty = \"3s\", order = \"deadline\", starve = \"100ms\" }",
		"max_in_flight = 0\nqueue.max_requests = 0", "max_in_flight = 2"} {
		write(t, r.file, withPool(toml, keys))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		for range n / 6 {
			open <- struct{}{}
		}
		time.Sleep(100 * time.Millisecond)
	}
	for range n {
		open <- struct{}{}
	}
	allGood(t, n, all)
	if r.waiting() != 0 || r.inFlight() != 0 {
		t.Errorf("%d wait and %d are in flight at the end", r.waiting(), r.inFlight())
	}
}

// The silence of all /metrics refuses nobody and stalls nobody, whatever bounds the room.
func TestSilentMetricsStallNothing(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	var silent atomic.Bool
	var urls []string
	for i := range f {
		inner := f[i].URL()
		urls = append(urls, proxied(t, inner, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/metrics" && silent.Load() {
				<-r.Context().Done()
				return true
			}
			return false
		}))
	}
	r := start(t, withPool(settings("prefixaware", urls...), "max_in_flight = 2\nmax_wait_seconds = 0.5\nmax_kv_use = 0.9"), 2)
	allGood(t, 20, r.many(20))
	older := func(age time.Duration) func() bool {
		return func() bool {
			for _, w := range r.state.Load().pools[0].route.Workers.Stats(time.Now()) {
				if w.MetricsAge < age {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "the metrics are read", older(0))
	silent.Store(true)
	eventually(t, "the metrics are stale", older(500*time.Millisecond))
	began := time.Now()
	allGood(t, 60, r.many(60))
	t.Logf("60 requests in %v", time.Since(began))
	if r.waiting() != 0 {
		t.Error("some still wait")
	}
}

// TestAModelThatNobodyListsIsNoDemand: a pool of any model has a worker that was never up, so that it might list any. A name that
// a client made up gets 503, and asks for no further workers.
func TestAModelThatNobodyListsIsNoDemand(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&b, "any", "prefixaware", "*", sims(t, 1, vllmsim.Config{}).URLs()[0], "http://127.0.0.1:1")
	r := start(t, b.String(), 1)
	for range 5 {
		if s := r.do("POST", "/v1/completions", strings.Replace(hello, "sim", "made-up", 1)); s.status != 503 || s.header.Get("Retry-After") == "" {
			t.Fatalf("%d %v %s", s.status, s.header, s.body)
		}
	}
	if got, wanted := r.metric("warmpath_pool_demand_seconds", `pool="any"`), r.metric("warmpath_pool_workers_wanted", `pool="any"`); got != 0 || wanted != 1 {
		t.Errorf("a demand of %v, %v workers are wanted; want 0 and 1", got, wanted)
	}
}

// A configured model whose workers are scaled to zero: requests are held, a scaler is called once, demand says so under
// the model's name, and the worker that comes up serves them all, the greater priority first.
func TestFromZeroWorkers(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 100)
	scaler := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		calls <- string(b)
	}))
	t.Cleanup(scaler.Close)
	file := filepath.Join(t.TempDir(), "workers.toml")
	other := sims(t, 1, vllmsim.Config{Models: []string{"other"}})
	write(t, file, fmt.Sprintf("[[workers]]\nurl = %q\nid = \"other\"\n", other.URLs()[0]))
	var b strings.Builder
	b.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&b, "shared", "prefixaware", "sim")
	base := strings.Replace(b.String(), `["sim"]`, `["sim", "other"]`, 1) + fmt.Sprintf("workers_file = %q\n", file)
	r := start(t, base, 1)
	if s := r.do("POST", "/v1/completions", hello); s.status != 503 || s.header.Get("Retry-After") == "" ||
		s.header.Get("X-Warmpath-Dropped") != "no_workers" {
		t.Errorf("a configured model without workers: %d %v %s", s.status, s.header, s.body)
	}
	if s := r.do("POST", "/v1/completions", strings.Replace(hello, "sim", "misspelt", 1)); s.status != 404 {
		t.Errorf("a model that nobody has: %d", s.status)
	}
	if got := r.metric("warmpath_pool_demand_seconds", `pool="shared"`); got < .5 {
		t.Errorf("the demand is %v", got)
	}
	eventually(t, "arrivals count under the model's name", func() bool {
		r.do("POST", "/v1/completions", hello)
		return r.metric("warmpath_arrivals_total", `model="sim"`) > 0
	})
	write(t, r.file, base+fmt.Sprintf("max_in_flight = 1\nqueue = { wait_empty = \"60s\", starve = \"0s\", wake_url = %q }\n", scaler.URL))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	const each = 167 // 501 in all
	var all sync.WaitGroup
	for class := range 3 {
		for range each {
			all.Go(func() {
				s := r.do("POST", "/v1/completions", hello, "X-Warmpath-Priority", fmt.Sprint(-class), "X-Class", fmt.Sprint(class))
				if s.status != 200 {
					t.Errorf("class %d: %d %s", -class, s.status, s.body)
				}
			})
		}
	}
	eventually(t, "all are held", func() bool { return r.waiting() == 3*each })
	if got := <-calls; got != `{"pool":"shared"}` || len(calls) != 0 {
		t.Errorf("the scaler got %s, and %d calls more", got, len(calls))
	}
	fresh := sims(t, 1, vllmsim.Config{Models: []string{"sim"}, Speed: 200})
	url, order := ordered(t, fresh.URLs()[0])
	write(t, file, fmt.Sprintf("[[workers]]\nurl = %q\nid = \"other\"\n[[workers]]\nurl = %q\nid = \"fresh\"\n", other.URLs()[0], url))
	all.Wait()
	late := 0
	for i, class := range *order {
		if class != i/each {
			late++
		}
	}
	if late > 0 || len(*order) != 3*each {
		t.Errorf("%d of %d out of their class's order: %v", late, len(*order), *order)
	}
}

// ordered stands in front of a worker, and notes the requests' X-Class in their order. It is read when all have their answers.
func ordered(t *testing.T, url string) (at string, order *[]int) {
	var mu sync.Mutex
	order = new([]int)
	return proxied(t, url, func(_ http.ResponseWriter, r *http.Request) bool {
		if class, err := strconv.Atoi(r.Header.Get("X-Class")); err == nil {
			mu.Lock()
			defer mu.Unlock()
			*order = append(*order, class)
		}
		return false
	}), order
}

// proxied stands in front of a worker, and lets first answer what it likes to.
func proxied(t *testing.T, url string, first func(http.ResponseWriter, *http.Request) bool) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first(w, r) {
			return
		}
		out, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path, r.Body)
		if err != nil {
			return
		}
		out.Header = r.Header
		a, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(502)
			return
		}
		defer a.Body.Close()
		for k, v := range a.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(a.StatusCode)
		_, _ = io.Copy(w, a.Body)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}
