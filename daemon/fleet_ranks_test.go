package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// parallel is a worker of several data-parallel engines behind one port, which keeps the headers of its requests.
type parallel struct {
	url string

	mu     sync.Mutex // guards all below
	engine *vllmsim.Server
	heads  []http.Header // of the chats, in their order
	dead   atomic.Bool
}

func newParallel(t *testing.T, n int) *parallel {
	p := &parallel{}
	p.resize(t, n)
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// resize starts the worker anew with n engines.
func (p *parallel) resize(t *testing.T, n int) {
	f := sims(t, 1, vllmsim.Config{DataParallel: n})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine = f[0]
}

func (p *parallel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.dead.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.mu.Lock()
	engine := p.engine
	if r.URL.Path == "/v1/chat/completions" { // the router asks for the tokens of a prompt too
		p.heads = append(p.heads, r.Header.Clone())
	}
	p.mu.Unlock()
	engine.Handler().ServeHTTP(w, r)
}

// ranks returns the rank headers of the requests so far, each as "0" or "0,2" if it stands twice, and forgets them.
func (p *parallel) ranks() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.heads {
		all = append(all, strings.Join(h.Values("X-Data-Parallel-Rank"), ","))
	}
	p.heads = nil
	return all
}

// chat is the body of a conversation's turn.
func chat(who, turns int) string {
	var b strings.Builder
	b.WriteString(`{"model":"sim","max_tokens":4,"messages":[`)
	for i := range turns {
		if i > 0 {
			b.WriteString(`,{"role":"assistant","content":"Yes."},`)
		}
		fmt.Fprintf(&b, `{"role":"user","content":"Chat %d asks question %d. %s"}`, who, i, strings.Repeat(fmt.Sprint("word", who, " "), 80))
	}
	b.WriteString("]}")
	return b.String()
}

// TestRanksOnTheWire: the rank that was chosen stands once in what the worker gets, whatever the client sends.
func TestRanksOnTheWire(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"prefixaware", "kvaware", "session", "roundrobin"} {
		p, single := newParallel(t, 4), newParallel(t, 1)
		r := start(t, settings(strategy, p.url, single.url), 5)
		for i := range 12 {
			s := r.do("POST", "/v1/chat/completions", chat(i, 1), "X-Data-Parallel-Rank", "9", "X-Session-Id", fmt.Sprint("s", i))
			if s.status != 200 {
				t.Fatalf("%s: %d %s", strategy, s.status, s.body)
			}
		}
		used := map[string]bool{}
		for _, rank := range p.ranks() {
			used[rank] = true
			if n, err := strconv.Atoi(rank); err != nil || n > 3 {
				t.Errorf("%s: a worker of four ranks gets the rank header %q", strategy, rank)
			}
		}
		if len(used) != 4 {
			t.Errorf("%s: of 4 ranks these were used: %v", strategy, used)
		}
		for _, rank := range single.ranks() {
			if rank != "" {
				t.Errorf("%s: a worker of one rank gets the rank header %q", strategy, rank)
			}
		}
	}
}

// TestClientRank: with client_rank the client's own choice holds, and stands once.
func TestClientRank(t *testing.T) {
	p := newParallel(t, 4)
	r := start(t, strings.Replace(settings("prefixaware", p.url), "strategy =", "client_rank = true\nstrategy =", 1), 4)
	f := func(client string, status int, want string) {
		t.Helper()
		p.ranks()
		s := r.do("POST", "/v1/chat/completions", chat(1, 1), "X-Data-Parallel-Rank", client, "X-Warmpath-Explain", "1")
		if s.status != status || fmt.Sprint(p.ranks()) != fmt.Sprint([]string{want}) {
			t.Errorf("rank %q: %d %s; want %d", client, s.status, s.body, status)
		}
		if w := s.header.Get("X-Warmpath-Worker"); status == 200 && w != "w1#"+want {
			t.Errorf("rank %q is counted at %s; want w1#%s", client, w, want)
		}
	}
	f("2", 200, "2")
	f("0", 200, "0")
	f("3", 200, "3")
	f("4", 400, "4") // the worker's answer is the honest one
	f("-1", 400, "-1")
	resp, text, _ := r.raw("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		"x-data-parallel-rank: 1\r\nX-Data-Parallel-Rank: 3\r\nContent-Length: " + fmt.Sprint(len(chat(1, 1))) + "\r\n\r\n" + chat(1, 1))
	if got := p.ranks(); resp.StatusCode != 200 || fmt.Sprint(got) != "[1]" {
		t.Errorf("two headers: %d %s, on the wire %q", resp.StatusCode, text, got)
	}
}

// TestRanksComeAndGo: a worker that comes back with another number of ranks is used with that, and what is in flight
// elsewhere goes on.
func TestRanksComeAndGo(t *testing.T) {
	t.Parallel()
	p, other := newParallel(t, 4), newParallel(t, 2)
	r := start(t, settings("session", p.url, other.url), 6)
	bound := map[string]string{}
	for i := range 24 {
		s := r.do("POST", "/v1/chat/completions", chat(i, 1), "X-Session-Id", fmt.Sprint("s", i), "X-Warmpath-Explain", "1")
		bound[fmt.Sprint("s", i)] = s.header.Get("X-Warmpath-Worker")
	}
	p.dead.Store(true)
	eventually(t, "down", func() bool {
		return slices.ContainsFunc(r.describe()[0].Workers, func(w operator.WorkerState) bool { return w.ID == "w1#3" && w.State == "down" })
	})
	p.resize(t, 2)
	p.dead.Store(false)
	r.waitUp(4)
	p.ranks()
	var ids []string
	for _, w := range r.describe()[0].Workers {
		ids = append(ids, w.ID)
	}
	slices.Sort(ids)
	if fmt.Sprint(ids) != "[w1#0 w1#1 w2#0 w2#1]" {
		t.Errorf("workers: %v", ids)
	}
	for id, was := range bound {
		s := r.do("POST", "/v1/chat/completions", chat(1, 1), "X-Session-Id", id, "X-Warmpath-Explain", "1")
		now := s.header.Get("X-Warmpath-Worker")
		stays := was != "w1#2" && was != "w1#3"
		if s.status != 200 || stays != (now == was) {
			t.Errorf("%s lived at %s and is served by %s with %d: %s", id, was, now, s.status, s.body)
		}
	}
	for _, rank := range p.ranks() {
		if rank != "0" && rank != "1" {
			t.Errorf("a worker of two ranks gets the rank header %q", rank)
		}
	}
}

// TestDrainOfARank: over /api/v1, all of a worker and one rank of it, by either spelling.
func TestDrainOfARank(t *testing.T) {
	p := newParallel(t, 3)
	r := start(t, settings("prefixaware", p.url), 3)
	f := func(method, path string, status int, up ...string) {
		t.Helper()
		s := do(t, method, "http://"+r.AdminAddr()+"/api/v1/pools/main/workers/"+path, "")
		var got []string
		for _, w := range r.describe()[0].Workers {
			if w.State == "up" {
				got = append(got, w.ID)
			}
		}
		if s.status != status || !slices.Equal(got, up) {
			t.Errorf("%s %s: %d %s, up are %v; want %d, %v", method, path, s.status, s.body, got, status, up)
		}
	}
	f("POST", "w1%231/drain", 200, "w1#0", "w1#2")
	f("POST", "w1/drain?rank=2", 200, "w1#0")
	f("POST", "w1/drain?rank=3", 404, "w1#0")
	f("DELETE", "w1/drain?rank=1", 200, "w1#0", "w1#1")
	f("POST", "w1/drain", 200)
	f("DELETE", "w1/drain", 200, "w1#0", "w1#1", "w1#2")
	page := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/pools", "").body
	if !strings.Contains(page, `"id":"w1#2","endpoint":"w1","data_parallel_rank":2`) {
		t.Errorf("/api/v1/pools: %s", page)
	}
	if n := r.count(`warmpath_worker_up{pool="main",worker="w1#`); n != 3 {
		t.Errorf("%d series of workers; want 3", n)
	}
}

// TestASingleRankIsShownAsEver: nothing is said of ranks where there is one.
func TestASingleRankIsShownAsEver(t *testing.T) {
	p := newParallel(t, 1)
	r := start(t, settings("prefixaware", p.url), 1)
	page := do(t, "GET", "http://"+r.AdminAddr()+"/api/v1/pools", "").body
	if strings.Contains(page, "rank") || strings.Contains(page, "endpoint") || !strings.Contains(page, `"id":"w1","state"`) {
		t.Errorf("/api/v1/pools: %s", page)
	}
}

// TestDataParallelIsReloaded: another data_parallel makes other workers of one address. The stream that runs there ends
// whole, and sessions of the worker that was go on at one of its ranks.
func TestDataParallelIsReloaded(t *testing.T) {
	t.Parallel()
	f := sims(t, 1, vllmsim.Config{DataParallel: 4, Speed: 5})
	text := settings("session", f.URLs()...)
	r := start(t, strings.Replace(text, "url =", "data_parallel = 1\nurl =", 1), 1)
	ask := func(what, worker string) {
		t.Helper()
		s := r.do("POST", "/v1/completions", aCompletion, "X-Session-Id", "s", "X-Warmpath-Explain", "1")
		if at := s.header.Get("X-Warmpath-Worker"); s.status != 200 || !strings.HasPrefix(at, worker) {
			t.Errorf("%s: %d %s, served by %q; want %s", what, s.status, s.body, at, worker)
		}
	}
	ask("one worker by configuration", "w1")
	ended := make(chan seen, 1)
	go func() {
		ended <- r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":400,"ignore_eos":true,"stream":true}`)
	}()
	eventually(t, "a stream", func() bool { return r.inFlight() == 1 })
	pool := r.state.Load().pools[0]
	release := r.hold(pool) // one more request there, that outlives all of this
	write(t, r.file, text)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.waitUp(4)
	if n := pool.route.Workers.InFlight()["w1"]; n < 1 {
		t.Error("no request at the worker that was")
	}
	ask("four ranks, learnt", "w1#")
	write(t, r.file, strings.Replace(text, "url =", "data_parallel = 2\nurl =", 1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	r.waitUp(2)
	ask("two ranks by configuration", "w1#")
	if s := <-ended; s.status != 200 || s.err != nil || !strings.Contains(s.body, "[DONE]") {
		t.Errorf("the stream: %d, %v", s.status, s.err)
	}
	release()
	if _, there := pool.route.Workers.InFlight()["w1"]; there {
		t.Error("the worker that was stays after its last request")
	}
}
