package worker

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestAnnounce: each kind of event has its line and its hook.
func TestAnnounce(t *testing.T) {
	of := []*Worker{{identity: identity{id: "w", slot: 3}, endpoint: &endpoint{address: address{shown: "http://h:1"}}}}
	f := func(e event, line string, calls ...string) {
		t.Helper()
		var log bytes.Buffer
		var got []string
		slot := func(name string) func(uint32) {
			return func(n uint32) { got = append(got, fmt.Sprint(name, n)) }
		}
		a := announcer{log: slog.New(slog.NewTextHandler(&log, nil)), onChange: func() { got = append(got, "change") },
			caches: hooks{down: slot("down"), restarted: slot("restart"),
				resized: func(n uint32, tokens int) { got = append(got, fmt.Sprintf("capacity%d=%d", n, tokens)) }}}
		a.announce([]event{e})
		if !strings.Contains(log.String(), line) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("kind %d logs %q; want one line with %q", e.kind, log.String(), line)
		}
		if want := append(calls, "change"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("kind %d calls %v; want %v", e.kind, got, want)
		}
	}
	f(event{kind: rejected, why: "two"}, `level=ERROR msg="worker rejected" why=two`)
	f(event{kind: inPanic}, `level=ERROR msg="no worker is up`)
	f(event{of: of, kind: removed, tokens: 2},
		`msg="worker draining" worker=w why="no longer configured" in_flight=2`, "down3")
	f(event{of: of, kind: released}, `msg="worker removed" worker=w`, "down3")
	f(event{of: of, kind: registered, tokens: 9},
		`msg="worker registered" worker=w url=http://h:1 slot=3`, "capacity3=9")
	f(event{of: of, kind: resized, tokens: 9}, `msg="worker capacity" worker=w tokens=9`, "capacity3=9")
	f(event{of: of, kind: drained, tokens: 1}, `msg="worker draining" worker=w why="asked to" in_flight=1`)
	f(event{of: of, kind: undrained}, `msg="worker no longer draining"`)
	f(event{of: of, kind: raised}, `level=INFO msg="worker up" worker=w`)
	f(event{of: of, kind: dropped, why: "gone"}, `level=WARN msg="worker down" worker=w why=gone`, "down3")
	f(event{of: of, kind: ejected, why: "503", wait: 2 * time.Second}, `msg="worker ejected" worker=w why=503 for=2s`)
	f(event{of: of, kind: wentLeaving, why: "abort", tokens: 4, wait: time.Second},
		`msg="worker taken for draining" worker=w why=abort in_flight=4 tried_again_in=1s`)
	f(event{of: of, kind: closed}, `msg="worker answers again"`)
	f(event{of: of, kind: restarted}, `msg="worker restarted: its cache is empty"`, "restart3")
}

// TestHooksMayCallThePool: they run without its lock.
func TestHooksMayCallThePool(t *testing.T) {
	var p *Pool
	calls := 0
	look := func() {
		if p != nil {
			calls++
			p.Stats(start)
			p.Snapshot(Query{At: start}, nil, nil)
		}
	}
	p = New(Config{Workers: specs(2), OnChange: look, Caches: hooks{down: func(uint32) { look() },
		restarted: func(uint32) { look() }, resized: func(uint32, int) { look() }}}, start)
	p.heal(0, 1)
	p.scrape(0, Metrics{Process: 100, Capacity: 10}, 2)
	p.scrape(0, Metrics{Process: 200, Capacity: 20}, 3)
	p.kill(0, 4)
	p.Update(specs(3)[1:], p.after(5))
	if calls < 9 {
		t.Errorf("%d calls of hooks; want one for each change and for what it changes", calls)
	}
}

// TestSinceIsOfTheLastChange: the shown time is that of the last change of the shown state.
func TestSinceIsOfTheLastChange(t *testing.T) {
	p := New(Config{Workers: specs(1)}, start)
	f := func(what string, want float64) {
		t.Helper()
		s := p.Stats(p.after(100))[0]
		near(t, what, s.Since.Sub(start).Seconds(), want, 1e-6)
	}
	f("registered", 0)
	p.heal(0, 2)
	f("up", 2)
	p.heal(0, 3)
	p.scrape(0, Metrics{Capacity: 10}, 4) // logged, and no other state
	f("still up", 2)
	p.Drain("w0", true, p.after(5))
	f("draining", 5)
	p.kill(0, 6)
	f("down", 6)
	p.kill(0, 7)
	f("still down", 6)
}

// The first page of metrics shows that a worker has restarted while the router was away.
func TestRestartSinceAnEarlierLife(t *testing.T) {
	f := func(name string, expected, page float64, want string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			got := ""
			p := New(Config{Workers: []Spec{{ID: "w0", URL: "http://w0"}},
				Caches: hooks{restarted: func(slot uint32) { got += fmt.Sprint("restart", slot) }}}, start)
			p.ExpectProcess(KeyOf("w0"), expected)
			p.ExpectProcess(KeyOf("unknown"), expected)
			p.scrape(0, Metrics{Process: page}, 1)
			p.ExpectProcess(KeyOf("w0"), 5)
			if now := p.Process(KeyOf("w0")); got != want || now != page {
				t.Errorf("%q, process of %v; want %q, %v", got, now, want, page)
			}
		})
	}
	f("the same", 1000, 1000.4, "")
	f("another", 1000, 1060, "restart0")
	f("not known", 0, 1060, "")
}
