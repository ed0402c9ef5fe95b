package worker

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// specs names n workers w0, w1, ...
func specs(n int) []Spec {
	s := make([]Spec, n)
	for i := range s {
		s[i] = Spec{ID: fmt.Sprintf("w%d", i), URL: fmt.Sprintf("http://127.0.0.1:%d", 9000+i)}
	}
	return s
}

// start is when the pools of tests begin.
var start = time.Unix(1_000_000, 0)

// upPool makes a pool of n workers that are all up and that no Watcher probes: the test passes the time in.
func upPool(t testing.TB, n int) *Pool {
	t.Helper()
	return upPoolOf(Config{Workers: specs(n)})
}

func upPoolOf(c Config) *Pool {
	p := New(c, start)
	for i := range p.fleet.workers {
		p.heal(i, 0)
	}
	return p
}

// heal, hush and kill report a health check of worker i at second at: good, without an answer, proof of death.
func (p *Pool) heal(i int, at float64) { p.Healthy(p.fleet.workers[i].number, p.after(at)) }
func (p *Pool) hush(i int, at float64) { p.Silent(p.fleet.workers[i].number, "timeout", p.after(at)) }
func (p *Pool) kill(i int, at float64) { p.Dead(p.fleet.workers[i].number, "gone", p.after(at)) }

func (p *Pool) scrape(i int, m Metrics, at float64) {
	p.Scraped(p.fleet.workers[i].number, Page{Metrics: m}, p.after(at))
}

// force sends a request to a worker whether or not it takes requests.
func (p *Pool) force(w *Worker, d Dispatch, at float64) *Ticket {
	t := new(Ticket)
	t.fill(p, w, d, p.after(at))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fleet.requests++
	t.request.Number = p.fleet.requests
	t.request.adapts = isAdapter(&p.fleet, d.Model)
	p.fleet.begin(w, &t.request)
	return t
}

// send is force for worker i.
func (p *Pool) send(i int, d Dispatch, at float64) *Ticket { return p.force(p.fleet.workers[i], d, at) }

// rows returns the rows for a request that any worker may take.
func (p *Pool) rows(at float64) []abi.Row {
	rows, _, _ := p.Snapshot(Query{At: p.after(at)}, nil, nil)
	return rows
}

// after returns the time s seconds after the pool began.
func (p *Pool) after(s float64) time.Time {
	return p.fleet.began.Add(time.Duration(math.Round(s * 1e9)))
}

// watcher records the calls to a pool's Watcher.
type watcher struct{ calls []string }

func (w *watcher) note(what string, id uint64) {
	w.calls = append(w.calls, fmt.Sprintf("%s %d", what, id))
}

func (w *watcher) Watch(id uint64, _, _ string) { w.note("watch", id) }
func (w *watcher) WatchHealth(id uint64)        { w.note("health", id) }
func (w *watcher) Unwatch(id uint64)            { w.note("unwatch", id) }
func (w *watcher) CheckSoon(id uint64)          { w.note("check", id) }
func (w *watcher) ScrapeSoon(id uint64)         { w.note("scrape", id) }
func (w *watcher) ListSoon(id uint64)           { w.note("list", id) }

// want compares the calls since the last want.
func (w *watcher) want(t *testing.T, calls ...string) {
	t.Helper()
	if !slices.Equal(w.calls, calls) {
		t.Errorf("the watcher was told %q; want %q", w.calls, calls)
	}
	w.calls = nil
}

// sec returns s seconds.
func sec(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// requestAt is a request that was sent at a second.
func requestAt(at, est float64) *request {
	return &request{Request: judge.Request{Sent: sec(at)}, est: est}
}

// inARow is how many signs of a kind in a row set a worker aside.
var inARow = map[judge.Kind]int{judge.Failed: 5, judge.Broken: 5, judge.Leaving: 3}

// trialAt returns when the breaker of worker i, which is open at that second, lets a trial through.
func (p *Pool) trialAt(i int, open float64) float64 {
	shut, last := open, open+1000
	for last-shut > 1e-8 {
		if middle := (shut + last) / 2; p.fleet.workers[i].health.Breaker(sec(middle)) == judge.Open {
			shut = middle
		} else {
			last = middle
		}
	}
	return last
}

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if d := got - want; d > tolerance || d < -tolerance {
		t.Errorf("%s = %v; want %v within %v", what, got, want, tolerance)
	}
}
