package probe_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/probe"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// wire is a fleet without a network: it gives the test's answers, and hangs until the deadline where there are none.
type wire struct {
	mu      sync.Mutex
	health  map[string]any // by host, or host and path: a status, an error, or nil to hang
	asked   map[string]int // by host and path
	slow    time.Duration  // of a list of models
	models  string         // the one that is listed; default tiny
	pages   string
	sources string
	paused  bool
	weights string // the answer of /weight_info
}

func (f *wire) set(host string, v any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.health[host] = v
}

// tell makes pages and sources the answers from now on.
func (f *wire) tell(pages, sources string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages, f.sources = pages, sources
}

func (f *wire) count(key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[key]
}

func (f *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.asked[r.URL.Host+r.URL.Path]++
	v := f.health[r.URL.Host]
	if own, ok := f.health[r.URL.Host+r.URL.Path]; ok {
		v = own
	}
	pages, sources := f.pages, f.sources
	paused := f.paused
	model, slow := cmp.Or(f.models, "tiny"), f.slow
	f.mu.Unlock()
	body := ""
	switch r.URL.Path {
	case "/v1/models":
		time.Sleep(slow)
		body = `{"data":[{"id":"` + model + `"}]}`
	case "/metrics":
		body = pages
	case "/kv_event_sources":
		body = sources
	case "/weight_info":
		f.mu.Lock()
		body = f.weights
		f.mu.Unlock()
	case "/is_paused":
		body = fmt.Sprintf(`{"is_paused":%v}`, paused)
	}
	switch v := v.(type) {
	case int:
		return &http.Response{StatusCode: v, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	case error:
		return nil, v
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// fleet is a pool of workers with its prober on a wire.
type fleet struct {
	*worker.Pool
	*wire
	prober *probe.Prober
}

// play runs a fleet of n workers w0, w1, ... inside a bubble of fake time.
func play(t *testing.T, n int, body func(*fleet)) {
	playWith(t, n, worker.Config{}, body)
}

func playWith(t *testing.T, n int, c worker.Config, body func(*fleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := &wire{health: map[string]any{}, asked: map[string]int{}, pages: "vllm:num_requests_running 2\n"}
		for i := range n {
			id := fmt.Sprintf("w%d", i)
			c.Workers = append(c.Workers, worker.Spec{ID: id, URL: "http://" + id})
			f.health[id] = 200
		}
		run(t, c, probe.Config{Client: &http.Client{Transport: f}}, func(p *worker.Pool, prober *probe.Prober) {
			synctest.Wait()
			body(&fleet{p, f, prober})
		})
	})
}

// run connects a pool and its prober, and runs them while body does.
func run(t *testing.T, c worker.Config, q probe.Config, body func(*worker.Pool, *probe.Prober)) {
	t.Helper()
	prober := probe.New(q)
	c.Watcher = prober
	c.After = func(d time.Duration, f func(time.Time)) { time.AfterFunc(d, func() { f(time.Now()) }) }
	p := worker.New(c, time.Now())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { prober.Run(ctx, p); close(done) }()
	defer func() { stop(); <-done }()
	body(p, prober)
}

// configure replaces how the workers are asked.
func (f *fleet) configure(c probe.Config) {
	c.Client = &http.Client{Transport: f.wire}
	f.prober.Configure(c)
}

// begin sends a request to the worker of that id.
func (f *fleet) begin(t *testing.T, id string, d worker.Dispatch) *worker.Ticket {
	t.Helper()
	_, ws, _ := f.Snapshot(worker.Query{Bound: id, Again: true, At: time.Now()}, nil, nil)
	for _, w := range ws {
		if w.ID() == id {
			if k := new(worker.Ticket); f.Begin(k, w, d, time.Now()) {
				return k
			}
		}
	}
	t.Fatalf("%s takes no request", id)
	return nil
}

// fail sends a request to the worker of that id, which ends so.
func (f *fleet) fail(t *testing.T, id string, kind judge.Kind) {
	t.Helper()
	f.begin(t, id, worker.Dispatch{}).End(time.Now(), judge.Outcome{Kind: kind})
}

// serving names who takes a request for model now.
func (f *fleet) serving(model string) string {
	synctest.Wait()
	_, ws, standing := f.Snapshot(worker.Query{Model: model, At: time.Now()}, nil, nil)
	if standing != worker.Ready {
		return standing.String()
	}
	var ids []string
	for _, w := range ws {
		ids = append(ids, w.ID())
	}
	return strings.Join(ids, " ")
}

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if d := got - want; d > tolerance || d < -tolerance {
		t.Errorf("%s = %v; want %v within %v", what, got, want, tolerance)
	}
}

func TestRunCadence(t *testing.T) {
	play(t, 2, func(f *fleet) {
		if got := f.serving("tiny"); got != "w0 w1" { // no time has passed: the first check is made at once
			t.Fatalf("at start: %s", got)
		}
		time.Sleep(time.Minute)
		near(t, "health checks a minute", float64(f.count("w0/health")), 30, 4)
		near(t, "listings a minute", float64(f.count("w0/v1/models")), 7, 1)
		near(t, "scrapes a minute", float64(f.count("w0/metrics")), 12, 2)
		if got := f.serving("other"); got != "lacks the model" {
			t.Errorf("a model that nobody lists: %s", got)
		}
		if s := f.Stats(time.Now()); s[0].Running != 2 || s[0].MetricsAge > 6*time.Second {
			t.Errorf("stats: %+v", s[0])
		}
	})
}

// TestManyWorkersTakeTurns: 2,000 workers are asked 1,000 questions a second, be they up or down, and all of them come up.
func TestManyWorkersTakeTurns(t *testing.T) {
	const many = 2000
	play(t, many, func(f *fleet) {
		questions := func() (n int) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, asked := range f.asked {
				n += asked
			}
			return n
		}
		most := func(when string, n int) {
			t.Helper()
			if got := questions(); got > n || got < n*9/10 {
				t.Errorf("%s: %d questions, at most %d expected", when, got, n)
			}
		}
		most("at once", 1000)
		time.Sleep(4 * time.Second)
		most("after 4 s", 5000)
		time.Sleep(26 * time.Second)
		for _, s := range f.Stats(time.Now()) {
			if !s.Up {
				t.Fatalf("%s is %v after 30 s", s.ID, s.State)
			}
		}
		f.mu.Lock()
		for i := range many {
			f.health[fmt.Sprintf("w%d", i)] = syscall.ECONNREFUSED
		}
		f.mu.Unlock()
		time.Sleep(10 * time.Second)
		before := questions()
		time.Sleep(10 * time.Second)
		if got := questions() - before; got > 10_001 {
			t.Errorf("while all are down: %d questions in 10 s", got)
		}
	})
}

// TestIdleWorkersAreVisited: an idle worker of 64 is asked for health and metrics every 13 seconds, and as often as
// any other after its first request.
func TestIdleWorkersAreVisited(t *testing.T) {
	play(t, 64, func(f *fleet) {
		f.tell("vllm:num_requests_running 0\n", "")
		time.Sleep(30 * time.Second)
		asked := func(path string) (n int) {
			for i := range 64 {
				n += f.count(fmt.Sprintf("w%d%s", i, path))
			}
			return n
		}
		checks, pages := asked("/health"), asked("/metrics")
		time.Sleep(100 * time.Second)
		near(t, "checks of an idle worker in 100 s", float64(asked("/health")-checks)/64, 8, 1)
		near(t, "pages of an idle worker in 100 s", float64(asked("/metrics")-pages)/64, 8, 1)
		check, page := f.count("w0/health"), f.count("w0/metrics")
		f.begin(t, "w0", worker.Dispatch{PromptTokens: 10})
		time.Sleep(10 * time.Second)
		near(t, "checks after a request, in 10 s", float64(f.count("w0/health")-check), 6, 1)
		near(t, "pages after a request, in 10 s", float64(f.count("w0/metrics")-page), 3, 1)
	})
}

func TestRunDeathAndReturn(t *testing.T) {
	play(t, 2, func(f *fleet) {
		f.set("w0", fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		time.Sleep(2300 * time.Millisecond)
		if got := f.serving("tiny"); got != "w1" {
			t.Errorf("w0 refuses: %s; want w1", got)
		}
		scrapes := f.count("w0/metrics")
		time.Sleep(time.Minute)
		if n := f.count("w0/metrics"); n != scrapes {
			t.Errorf("a dead worker was scraped %d times", n-scrapes)
		}
		f.set("w0", 200)
		time.Sleep(2300 * time.Millisecond)
		if got := f.serving("tiny"); got != "w0 w1" {
			t.Errorf("w0 is back: %s; want both within an interval", got)
		}
		f.set("w1", 503) // the engine is dead
		time.Sleep(2300 * time.Millisecond)
		if got := f.serving("tiny"); got != "w0" {
			t.Errorf("w1 says 503: %s; want w0", got)
		}
		f.set("w1", 404) // a server without /health
		time.Sleep(2300 * time.Millisecond)
		if got := f.serving("tiny"); got != "w0 w1" {
			t.Errorf("w1 says 404: %s; want both", got)
		}
	})
}

// TestNoDescriptorSaysNothingOfAWorker: a check that this process has no descriptor for takes no worker down.
func TestNoDescriptorSaysNothingOfAWorker(t *testing.T) {
	play(t, 2, func(f *fleet) {
		f.set("w0", fmt.Errorf("dial: %w", syscall.EMFILE))
		time.Sleep(time.Minute)
		if got := f.serving("tiny"); got != "w0 w1" {
			t.Errorf("without a descriptor for a minute: %s; want both", got)
		}
	})
}

// TestBrokenRequestAsksHealth: the check that a broken request asks for finds a dead worker long before the next
// interval.
func TestBrokenRequestAsksHealth(t *testing.T) {
	play(t, 2, func(f *fleet) {
		time.Sleep(10*time.Second + 300*time.Millisecond)
		f.set("w0", fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		f.fail(t, "w0", judge.Broken)
		time.Sleep(200*time.Millisecond + time.Millisecond)
		if got := f.serving("tiny"); got != "w1" {
			t.Errorf("%v after a broken answer of a dead worker: %s; want w1", 200*time.Millisecond, got)
		}
	})
}

// TestFailuresDoNotFlood: however many requests fail, a worker gets at most five checks a second.
func TestFailuresDoNotFlood(t *testing.T) {
	play(t, 2, func(f *fleet) {
		before := f.count("w0/health")
		for range 1000 {
			f.prober.CheckSoon(1)
			time.Sleep(time.Millisecond)
		}
		if n := f.count("w0/health") - before; n > 6 {
			t.Errorf("%d health checks in a second of failures; want at most 6", n)
		}
	})
}

func TestRunHangingHealth(t *testing.T) {
	play(t, 1, func(f *fleet) {
		f.set("w0", nil)
		k := f.begin(t, "w0", worker.Dispatch{PromptTokens: 10})
		for range 60 {
			time.Sleep(time.Second)
			k.Flow(time.Now())
		}
		if got := f.serving("tiny"); got != "w0" {
			t.Errorf("/health hangs for a minute while tokens flow: %s; want w0", got)
		}
		time.Sleep(10 * time.Second)
		if got := f.Stats(time.Now())[0].State; got != worker.Silent {
			t.Errorf("10 s after the last token: %v; want silent", got)
		}
		const want = "/health: no answer within 2s" // not Go's "context deadline exceeded"
		if got := f.Stats(time.Now())[0].LastError; got != want {
			t.Errorf("the log and the page say %q; want %q", got, want)
		}
	})
}

func TestUpdateStartsAndStopsLoops(t *testing.T) {
	play(t, 1, func(f *fleet) {
		f.set("new", 200)
		f.Update([]worker.Spec{{ID: "new", URL: "http://new"}}, time.Now())
		if got := f.serving("tiny"); got != "new" {
			t.Errorf("after the update: %s; want new", got)
		}
		if s := f.Stats(time.Now())[0]; !s.SlowStart {
			t.Errorf("a worker added to a running pool does not start slowly: %+v", s)
		}
		before := f.count("w0/health")
		time.Sleep(time.Minute)
		if n := f.count("w0/health"); n != before {
			t.Errorf("the removed worker was asked %d times", n-before)
		}
		if s := f.Stats(time.Now())[0]; s.SlowStart {
			t.Errorf("slow start does not end in a minute: %+v", s)
		}
	})
}

// TestRunLeavingAndBack: a worker drains, dies and comes back; it is used within 2 s of being able to answer.
func TestRunLeavingAndBack(t *testing.T) {
	play(t, 2, func(f *fleet) {
		f.configure(probe.Config{HealthInterval: time.Minute, ScrapeInterval: time.Minute})
		for range 3 {
			f.fail(t, "w0", judge.Leaving)
		}
		if got := f.serving("tiny"); got != "w1" {
			t.Fatalf("draining: %s; want w1", got)
		}
		scrapes := f.count("w0/metrics")
		time.Sleep(10 * time.Second)
		near(t, "scrapes of a worker that is going, in 10 s", float64(f.count("w0/metrics")-scrapes), 10, 2)
		f.set("w0", fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		f.fail(t, "w0", judge.Refused)
		for range 10 { // at any phase of the loop
			time.Sleep(10*time.Second + 77*time.Millisecond)
			f.set("w0", 200)
			time.Sleep(600 * time.Millisecond)
			if got := f.serving("tiny"); got != "w0 w1" {
				t.Fatalf("600 ms after it can answer: %s; want both", got)
			}
			f.set("w0", fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
			f.fail(t, "w0", judge.Refused)
		}
	})
}

// TestConfigureIntervals: a loop that sleeps by the old interval looks at the new one at once.
func TestConfigureIntervals(t *testing.T) {
	play(t, 1, func(f *fleet) {
		f.configure(probe.Config{HealthInterval: time.Hour, ScrapeInterval: time.Hour})
		time.Sleep(time.Minute)
		health, scrapes := f.count("w0/health"), f.count("w0/metrics")
		time.Sleep(10 * time.Minute)
		if n, m := f.count("w0/health")-health, f.count("w0/metrics")-scrapes; n+m > 0 {
			t.Errorf("%d checks and %d scrapes in ten minutes; want one an hour", n, m)
		}
		f.configure(probe.Config{HealthInterval: time.Second, ScrapeInterval: time.Second})
		time.Sleep(10 * time.Second)
		near(t, "checks in ten seconds", float64(f.count("w0/health")-health), 10, 2)
		near(t, "scrapes in ten seconds", float64(f.count("w0/metrics")-scrapes), 10, 2)
	})
}

// asker is a worker.Holder that counts its calls.
type asker struct{ told atomic.Int64 }

func (a *asker) GiveUp(worker.Loss) { a.told.Add(1) }

// TestDownGraceOfARemovedWorker: its health is watched until its last request has ended, and no longer.
func TestDownGraceOfARemovedWorker(t *testing.T) {
	play(t, 2, func(f *fleet) {
		a := new(asker)
		k := f.begin(t, "w0", worker.Dispatch{Holder: a})
		f.Update([]worker.Spec{{ID: "w1", URL: "http://w1"}}, time.Now())
		time.Sleep(time.Minute)
		if n := a.told.Load(); n != 0 {
			t.Errorf("told %d times of a removed worker that is healthy", n)
		}
		f.set("w0", fmt.Errorf("dial: %w", syscall.ECONNREFUSED))
		time.Sleep(19 * time.Second)
		if n := a.told.Load(); n != 0 {
			t.Errorf("told %d times before the grace is over", n)
		}
		time.Sleep(4 * time.Second)
		if a.told.Load() == 0 {
			t.Error("not told of a removed worker that went down")
		}
		k.End(time.Now(), judge.Outcome{Kind: judge.Broken})
		synctest.Wait()
		asked := f.count("w0/health")
		time.Sleep(time.Minute)
		if n := f.count("w0/health") - asked; n != 0 {
			t.Errorf("%d health checks of a removed worker after its last request; want 0", n)
		}
		if got := f.serving("tiny"); got != "w1" {
			t.Errorf("the fleet is %s; want w1", got)
		}
	})
}
