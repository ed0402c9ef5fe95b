package worker

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// engines makes a page of metrics of n engines, each of which runs as many requests as its number.
func engines(n int, process float64) Page {
	p := Page{Metrics: Metrics{Process: process, Capacity: 1000 * n}}
	for i := range n {
		p.Engines = append(p.Engines, Metrics{Running: i, Capacity: 1000})
	}
	return p
}

// shown lists the workers of a pool with their slots and states.
func shown(p *Pool, at float64) string {
	var out []string
	for _, s := range p.Stats(p.after(at)) {
		out = append(out, fmt.Sprintf("%s=%d", s.ID, s.Slot))
	}
	return strings.Join(out, " ")
}

// rankPool makes a pool of one worker of n ranks, up, and of w1 with one rank.
func rankPool(c Config, n int) *Pool {
	c.Workers = specs(2)
	c.Workers[0].DataParallel = n
	p := New(c, start)
	p.Healthy(1, start)
	p.Healthy(2, start)
	return p
}

func TestRanksAreWorkers(t *testing.T) {
	p := rankPool(Config{}, 3)
	if got := shown(p, 1); got != "w0#0=0 w0#1=1 w0#2=2 w1=3" {
		t.Fatalf("workers: %s", got)
	}
	rows, ws, standing := p.Snapshot(Query{At: p.after(1)}, nil, nil)
	if standing != Ready || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), standing)
	}
	for i, w := range ws {
		rank, endpoint, header := uint32(i), "w0", fmt.Sprint(i)
		if i == 3 {
			rank, endpoint, header = 0, "w1", ""
		}
		if w.Rank() != rank || w.Endpoint() != endpoint || w.RankHeader() != header || w.URL() != specs(2)[i/3].URL ||
			rows[i].Rank != rank || rows[i].Key != KeyOf(w.ID()) {
			t.Errorf("%s: rank %d of %s, header %q, url %s, row %+v", w.ID(), w.Rank(), w.Endpoint(), w.RankHeader(), w.URL(),
				rows[i])
		}
	}
	k := p.send(1, Dispatch{PromptTokens: 100}, 1)
	rows = p.rows(1)
	if rows[0].InFlight != 0 || rows[1].InFlight != 1 || rows[1].PendingTokens != 100 || rows[2].Sent != 0 {
		t.Errorf("one request at rank 1: %+v", rows)
	}
	k.End(p.after(2), judge.Outcome{Kind: judge.Answered})
	if n := p.InFlight()["w0#1"]; n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
}

// TestRanksShareTheirEndpoint: one health check, one breaker, one limit for all ranks.
func TestRanksShareTheirEndpoint(t *testing.T) {
	var log bytes.Buffer
	var down []uint32
	p := rankPool(Config{MaxInFlight: 2, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Caches: hooks{down: func(slot uint32) { down = append(down, slot) }}}, 3)
	a, b := p.send(0, Dispatch{}, 1), p.send(2, Dispatch{}, 1)
	if got := snap(p, "", 1); got != "w1" {
		t.Errorf("two requests at two ranks of one address that takes two: %s", got)
	}
	if s := p.Stats(p.after(1)); !s[1].Full || s[1].InFlight != 0 || s[3].Full {
		t.Errorf("full: %+v", s[1])
	}
	a.End(p.after(1), judge.Outcome{Kind: judge.Answered})
	b.End(p.after(1), judge.Outcome{Kind: judge.Answered})
	for i := range inARow[judge.Failed] { // failures of all ranks add up
		p.send(i%3, Dispatch{}, 2).End(p.after(2), judge.Outcome{Kind: judge.Failed})
	}
	if got := snap(p, "", 2); got != "w1" {
		t.Errorf("after %d failures in a row: %s", inARow[judge.Failed], got)
	}
	if got := snap(p, "", 10); got != "w0#0 w0#1 w0#2 w1" {
		t.Fatalf("after the back-off: %s", got)
	}
	trial, ok := p.TryBegin(p.fleet.workers[1], Dispatch{}, p.after(10))
	if _, second := p.TryBegin(p.fleet.workers[2], Dispatch{}, p.after(10)); !ok || second {
		t.Errorf("a trial: %v, and one more at another rank: %v; want one", ok, second)
	}
	trial.End(p.after(11), judge.Outcome{Kind: judge.Answered})
	p.Dead(1, "gone", p.after(12))
	if got := snap(p, "", 12); got != "w1" || !slices.Equal(down, []uint32{0, 1, 2}) || p.fleet.up != 1 {
		t.Errorf("after its death: %s, hooks for slots %v, %d up", got, down, p.fleet.up)
	}
	for line, n := range map[string]int{`msg="worker down" worker=w0 why=gone`: 1, `msg="worker ejected" worker=w0`: 1,
		`msg="worker up" worker=w0`: 1, `msg="worker registered" worker=w0#2`: 1} {
		if got := strings.Count(log.String(), line); got != n {
			t.Errorf("%d lines with %q; want %d:\n%s", got, line, n, log.String())
		}
	}
}

// TestRanksDrain drains all ranks of a worker, or one of them.
func TestRanksDrain(t *testing.T) {
	p := rankPool(Config{}, 3)
	f := func(id string, on, ok bool, want string) {
		t.Helper()
		if p.Drain(id, on, p.after(1)) != ok {
			t.Errorf("drain %s %v: %v; want %v", id, on, !ok, ok)
		}
		if got := snap(p, "", 1); got != want {
			t.Errorf("drain %s %v: %s; want %s", id, on, got, want)
		}
	}
	f("w0#1", true, true, "w0#0 w0#2 w1")
	f("w0#3", true, false, "w0#0 w0#2 w1")
	f("w1#0", true, false, "w0#0 w0#2 w1")
	f("w0", true, true, "w1")
	f("w0#1", false, true, "w0#1 w1")
	f("w0", false, true, "w0#0 w0#1 w0#2 w1")
	f("w0", true, true, "w1")
	next := specs(2)
	next[0].DataParallel = 4
	p.Update(next, p.after(2))
	f("w1", true, true, "none up") // rank 3 came while all of w0 drained
	f("w0", false, true, "w0#0 w0#1 w0#2 w0#3")
}

// TestRanksAreLearnt: the number comes from the worker before it is up, and from each page of its metrics.
func TestRanksAreLearnt(t *testing.T) {
	p := New(Config{Workers: specs(2)}, start)
	if s := p.Standing("w0#2", "", nil, start); s != Starting {
		t.Errorf("a rank of a worker that was never heard is %v", s)
	}
	if !p.Phase(1, p.after(0)).Counts {
		t.Error("the engines of a worker that is not up are not counted")
	}
	p.Counted(1, 3, p.after(1))
	p.Healthy(1, p.after(1))
	p.Healthy(2, p.after(1))
	if p.Phase(1, p.after(0)).Counts {
		t.Error("the engines of a worker that is up are counted")
	}
	if got := shown(p, 1); got != "w0#0=0 w1=1 w0#1=2 w0#2=3" || p.fleet.up != 4 {
		t.Fatalf("%s, %d up", got, p.fleet.up)
	}
	p.Scraped(1, engines(3, 100), p.after(2))
	for _, s := range p.Stats(p.after(2)) {
		if s.Endpoint == "w0" && (s.Running != s.Rank || s.Capacity != 1000) {
			t.Errorf("%s: %d running, capacity %d; want those of its engine", s.ID, s.Running, s.Capacity)
		}
	}
	k := p.send(3, Dispatch{}, 3) // to w0#2
	p.Scraped(1, engines(2, 100), p.after(4))
	if got := shown(p, 4); got != "w0#0=0 w1=1 w0#1=2 w0#2=3" {
		t.Errorf("after one page with fewer engines: %s", got)
	}
	p.Scraped(1, engines(2, 100), p.after(5))
	if got := shown(p, 5); got != "w0#0=0 w1=1 w0#1=2" || p.Standing("w0#2", "", nil, p.after(5)) != Gone || p.fleet.up != 3 {
		t.Errorf("after two: %s, w0#2 is %v, %d up", got, p.Standing("w0#2", "", nil, p.after(5)), p.fleet.up)
	}
	p.Scraped(1, engines(4, 100), p.after(6)) // slot 3 has a request of the removed rank
	if got := shown(p, 6); got != "w0#0=0 w1=1 w0#1=2 w0#2=4 w0#3=5" {
		t.Errorf("more engines: %s", got)
	}
	k.FirstByte(p.after(7))
	k.End(p.after(7), judge.Outcome{Kind: judge.Answered})
	if p.fleet.taken[3] != nil || p.fleet.endpoints[0].inFlight != 0 {
		t.Error("the slot of a rank that went is not given back after its last request")
	}
	p.Scraped(1, engines(1, 200), p.after(8)) // the number of a new process counts at once
	if got := shown(p, 8); got != "w0=0 w1=1" {
		t.Errorf("a new process of one engine: %s", got)
	}
	p.Scraped(1, Page{Metrics: Metrics{Process: 200}}, p.after(9))
	p.Scraped(1, Page{Metrics: Metrics{Process: 200}}, p.after(10))
	p.Dead(1, "gone", p.after(11))
	p.Counted(1, 2, p.after(12))
	p.Healthy(1, p.after(12))
	if got := shown(p, 12); got != "w0#0=0 w1=1 w0#1=2" || p.fleet.up != 3 {
		t.Errorf("back with two: %s, %d up", got, p.fleet.up)
	}
	listed := &p.fleet.workers[0]
	p.Counted(1, 2, p.after(13))
	p.Counted(2, 0, p.after(13))
	if &p.fleet.workers[0] != listed {
		t.Error("a number that is known has all workers listed anew: with 10,000 workers a start takes minutes")
	}
	p.Counted(2, MaxRanks+9, p.after(13))
	if n := len(p.fleet.workers); n != 2+MaxRanks {
		t.Errorf("%d workers; a worker has %d ranks at most", n, MaxRanks)
	}
}

// TestConfiguredRanksStay: another number in the metrics is only logged, once.
func TestConfiguredRanksStay(t *testing.T) {
	var log bytes.Buffer
	p := rankPool(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, 2)
	if p.Phase(1, p.after(0)).Counts {
		t.Error("configured engines are counted")
	}
	for i := range 3 {
		p.Scraped(1, engines(4, 100), p.after(float64(i)))
	}
	if got := shown(p, 3); got != "w0#0=0 w0#1=1 w1=2" {
		t.Errorf("%s", got)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "ranks=2 engines=4") {
		t.Errorf("%d warnings; want one:\n%s", n, log.String())
	}
	if s := p.Stats(p.after(3))[0]; s.MetricsAge >= 0 {
		t.Error("a page that does not fit the ranks is read for one of them")
	}
	p.Scraped(1, engines(2, 100), p.after(4))
	p.Scraped(1, engines(4, 100), p.after(5))
	if n := strings.Count(log.String(), "level=WARN"); n != 2 {
		t.Errorf("%d warnings after it was right and wrong again; want two", n)
	}
	p.Scraped(2, engines(3, 100), p.after(5)) // not configured: learnt
	next := specs(2)
	next[0].DataParallel, next[1].DataParallel = 2, 1
	p.Update(next, p.after(6))
	p.Scraped(2, engines(3, 100), p.after(7))
	if s := p.Stats(p.after(7)); len(s) != 3 || s[2].ID != "w1" || s[2].Capacity != 3000 {
		t.Errorf("one rank by configuration has the sums of all engines: %+v", s)
	}
}

// TestQueryRank: a client's own choice of a rank leaves out the other ranks of an address.
func TestQueryRank(t *testing.T) {
	p := rankPool(Config{}, 3)
	f := func(rank int, want string) {
		t.Helper()
		_, ws, _ := p.Snapshot(Query{At: p.after(1), Rank: rank}, nil, nil)
		var got []string
		for _, w := range ws {
			got = append(got, w.ID())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("rank %d: %v; want %s", rank-1, got, want)
		}
	}
	f(0, "w0#0 w0#1 w0#2 w1")
	f(1, "w0#0 w1")
	f(3, "w0#2 w1")
	f(4, "w0#0 w0#1 w0#2 w1") // no worker has this rank: the worker answers so
}

// TestTrialOfARankThatGoes: its endpoint does not wait for the end of another endpoint's request.
func TestTrialOfARankThatGoes(t *testing.T) {
	p := rankPool(Config{}, 2)
	for range inARow[judge.Failed] {
		p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Failed})
	}
	trial, ok := p.TryBegin(p.fleet.workers[1], Dispatch{}, p.after(10))
	if !ok {
		t.Fatal("no trial")
	}
	next := specs(2)
	next[0].DataParallel = 1
	p.Update(next, p.after(11))
	if _, late := p.TryBegin(trial.worker, Dispatch{}, p.after(11)); late {
		t.Error("a rank that is gone takes a request")
	}
	trial.End(p.after(12), judge.Outcome{Kind: judge.Answered})
	if got := snap(p, "", 12); got != "w0 w1" && got != "w1 w0" {
		t.Errorf("after the trial at a rank that went: %s", got)
	}
}

// TestHammerRanks: ranks come and go under requests; at the end every counter is zero. It is made for -race.
func TestHammerRanks(t *testing.T) {
	p := rankPool(Config{DownGrace: time.Millisecond}, 4)
	var all sync.Map
	var requests, changes sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		requests.Go(func() { hammerRequests(p, uint64(g), &all) })
	}
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := specs(3)
			next[0].DataParallel, next[1].DataParallel = i%5, i%3
			p.Update(next[:2+i%2], time.Now())
			for id := range uint64(4) {
				p.Counted(id, i%6, time.Now())
				p.Healthy(id, time.Now())
				p.Scraped(id, engines(i%4, float64(100*(i%7))), time.Now())
				if i%11 == 0 {
					p.Dead(id, "gone", time.Now())
				}
			}
			p.Drain("w0", i%2 == 0, time.Now())
			p.Drain("w0#1", i%3 == 0, time.Now())
			for _, s := range p.Stats(time.Now()) {
				if s.InFlight < 0 || s.Pending < 0 {
					t.Errorf("negative counters: %+v", s)
				}
			}
		}
	})
	requests.Wait()
	close(stop)
	changes.Wait()
	restsAtZero(t, p, &all)
	for _, e := range p.fleet.endpoints {
		if e.inFlight != 0 || !e.health.IsTrial(nil) {
			t.Errorf("%s at the end: %d in flight, no trial %v", e.name, e.inFlight, e.health.IsTrial(nil))
		}
	}
	if len(p.fleet.watched) != len(p.fleet.endpoints) {
		t.Errorf("%d endpoints are watched; there are %d", len(p.fleet.watched), len(p.fleet.endpoints))
	}
}

// BenchmarkSnapshotRanks is BenchmarkSnapshot/256 for 64 workers of four ranks.
func BenchmarkSnapshotRanks(b *testing.B) {
	s := specs(64)
	for i := range s {
		s[i].DataParallel = 4
	}
	p := New(Config{Workers: s}, start)
	for _, e := range p.fleet.endpoints {
		p.Healthy(e.number, start)
		p.Listed(e.number, []string{"tiny"}, nil)
	}
	rows, ws := make([]abi.Row, 0, 256), make([]*Worker, 0, 256)
	at := p.after(2)
	b.ReportAllocs()
	for b.Loop() {
		p.Snapshot(Query{Model: "tiny", At: at}, rows, ws)
	}
}

// TestUnreadMetrics: a worker that is up and has no page of metrics for some looks in a row is logged, once each time.
func TestUnreadMetrics(t *testing.T) {
	var log bytes.Buffer
	p := rankPool(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, 1)
	f := func(what string, looks, want int) {
		t.Helper()
		for range looks {
			p.Unscraped(1, "/metrics: the page is longer than 8 MiB", p.after(1))
		}
		if unread := p.Stats(p.after(0))[0].Unread; looks > 0 && unread != (looks >= unreadLooks && p.Stats(p.after(0))[0].Up) {
			t.Errorf("%s: unread: %v", what, unread)
		}
		if n := strings.Count(log.String(), "metrics cannot be read"); n != want {
			t.Errorf("%s: %d lines; want %d:\n%s", what, n, want, log.String())
		}
	}
	f("a few", unreadLooks-1, 0)
	p.Scraped(1, engines(1, 100), p.after(1))
	f("a few once more", unreadLooks-1, 0)
	f("many", 20, 1)
	p.Scraped(1, engines(1, 100), p.after(1))
	f("again", unreadLooks, 2)
	p.Scraped(1, engines(1, 100), p.after(1))
	p.Dead(1, "nothing listens", p.after(2))
	f("of a worker that is down", 20, 2)
}
