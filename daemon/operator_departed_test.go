package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// count is how many series of the process's own /metrics has that hold the text.
func (r *running) count(text string) (n int) {
	r.t.Helper()
	for line := range strings.Lines(do(r.t, "GET", "http://"+r.AdminAddr()+"/metrics", "").body) {
		if strings.HasPrefix(line, "warmpath_") && strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// TestSeriesOfGoneWorkersGo: pods that roll, 200 generations of worker ids, leave nothing behind, and what stays
// keeps its counts.
func TestSeriesOfGoneWorkersGo(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	file := filepath.Join(t.TempDir(), "workers.toml")
	pod := func(i int) string { return fmt.Sprintf("[[workers]]\nurl = %q\nid = \"pod-%d\"\n", f.URLs()[1], i) }
	write(t, file, pod(0))
	toml := strings.Replace(settings("roundrobin", f.URLs()[0]), "[[pools]]\n", fmt.Sprintf("[[pools]]\nworkers_file = %q\n", file), 1)
	staying(t, time.Hour) // all sweeps that count are the test's
	r := start(t, toml, 2)
	ask := func(n int) {
		for range n {
			if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":2,"stream":true}`); s.status != 200 || s.err != nil {
				t.Fatalf("%d %v %s", s.status, s.err, s.body)
			}
		}
	}
	p, now, most := r.state.Load().pools[0], time.Now(), 0
	ask(2)
	for i := range 200 {
		write(t, file, pod(i+1))
		if err := p.update(r.state.Load().conf.Pools[0]); err != nil {
			t.Fatal(err)
		}
		ask(2)
		now = now.Add(time.Hour)
		r.departed.Sweep(r.shown(), now)
		if i%20 == 19 {
			most = max(most, r.count(`worker="pod-`))
		}
	}
	t.Logf("after 200 generations: at most %d series of pods", most)
	if most > 200 { // some 45 a pod: a pod of before, and the one that is
		t.Errorf("%d series of pods; want those of the last ones alone", most)
	}
	if r.count(`worker="pod-200"`) == 0 {
		t.Error("the series of the pod that serves are gone")
	}
	if got := r.metric("warmpath_requests_total", `worker="w1"`); got < 100 {
		t.Errorf("the worker that stayed has counted %v of 402 requests; want what it has answered", got)
	}
}

// staying sets how long series outlive their worker, in daemons that start from now on: at most one of the tests that do
// so runs beside others.
func staying(t *testing.T, d time.Duration) {
	t.Helper()
	before := seriesStay
	seriesStay = d
	t.Cleanup(func() { seriesStay = before })
}

// TestSeriesOfARemovedPoolGo: by the daemon's own sweeps, and not before its last request has ended.
func TestSeriesOfARemovedPoolGo(t *testing.T) {
	a, b := sims(t, 1, vllmsim.Config{Models: []string{"a"}}), sims(t, 1, vllmsim.Config{Models: []string{"b"}})
	var toml strings.Builder
	toml.WriteString("[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n")
	addPool(&toml, "first", "prefixaware", "a", a.URLs()...)
	one := toml.String()
	addPool(&toml, "second", "prefixaware", "b", b.URLs()...)
	staying(t, 0)
	r := start(t, toml.String(), 2)
	for _, model := range []string{"a", "b"} {
		if s := r.do("POST", "/v1/completions", fmt.Sprintf(`{"model":%q,"prompt":"x","max_tokens":2}`, model)); s.status != 200 {
			t.Fatalf("%d %s", s.status, s.body)
		}
	}
	gone := r.state.Load().pools[1]
	end := r.hold(gone)
	write(t, r.file, one)
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i := range 3 {
		r.departed.Sweep(r.shown(), now.Add(time.Duration(i)*time.Hour))
	}
	if r.metric("warmpath_requests_total", `pool="second"`) != 1 || r.metric("warmpath_pick_seconds_count", `pool="second"`) != 1 {
		t.Error("the series of the pool are gone while a request of it is under way")
	}
	end()
	eventually(t, "no series of the pool", func() bool { return r.count(`pool="second"`) == 0 })
	if r.count(`pool="first"`) == 0 {
		t.Error("the other pool has lost its series")
	}
}

// hold begins a request at the pool's first worker and returns what ends it.
func (r *running) hold(p *pool) (end func()) {
	r.t.Helper()
	_, ws, _ := p.route.Workers.Snapshot(worker.Query{At: time.Now()}, nil, nil)
	if len(ws) == 0 {
		r.t.Fatal("no worker is up")
	}
	ticket := new(worker.Ticket)
	if !p.route.Workers.Begin(ticket, ws[0], worker.Dispatch{PromptTokens: 1}, time.Now()) {
		r.t.Fatal("the worker takes no request")
	}
	return func() { ticket.End(time.Now(), judge.Outcome{Kind: judge.Answered}) }
}
