package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/request/record"
)

// An unknown value is a dash, and not a time of 0.
func TestTopOfWhatIsNotKnown(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got = strings.ReplaceAll(got, "\t", " "); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	var none, some metrics.Span
	none.Arrived, none.Refused = 2, 1
	some.Streams, some.TTFT50, some.TTFT90 = 1, .25, .5
	f(lastMinute(&operator.PoolHour{Pool: "p", Spans: []metrics.Span{none}}), "p 2 1 0 - - - - 0")
	f(lastMinute(&operator.PoolHour{Pool: "p", Spans: []metrics.Span{none, some}}), "p 2 1 0 0.250s 0.500s - - 0")
	var d decisions.Decision
	d.At, d.Status, d.End = time.Now(), 503, "no_worker"
	f(lineOf(&d)[len("15:04:05\t"):], "- none named - 0 ~0 - 0.000s 503 no_worker ")
	d = decisions.Decision{At: time.Now(), Open: true, Seconds: 7.5}
	d.Worker, d.Reason = "w1", "least cost"
	f(lineOf(&d)[len("15:04:05\t"):], "- none named w1 0 ~0 - 7.500s open least cost")
	d.Worker, d.Queued = "", &record.Queued{Waits: true}
	f(lineOf(&d)[len("15:04:05\t"):], "- none named - 0 ~0 - 7.500s waits for a worker with room")
	d.Limit = "requests_per_minute"
	f(lineOf(&d)[len("15:04:05\t"):], "- none named - 0 ~0 - 7.500s waits for its key's requests_per_minute")
}

// TestTopAsJSON: each look is a line with all that top shows, and the requests that are under way.
func TestTopAsJSON(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path + "?" + r.URL.RawQuery {
		case "/api/v1/overview?":
			io.WriteString(w, `{"version":"v1"}`)
		case "/api/v1/recent?":
			io.WriteString(w, `[{"pool":"main","spans":[]}]`)
		case "/api/v1/decisions?limit=12":
			io.WriteString(w, `[{"id":"the-last"}]`)
		case "/api/v1/decisions?open=1&limit=1000":
			io.WriteString(w, `[{"id":"hung","open":true,"worker":"gpu-2","seconds":77.5}]`)
		}
	}))
	defer admin.Close()
	text := warmpath(t, workplace(t), "top --json -n 2 --every 100ms --admin "+admin.URL).succeed()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), text)
	}
	var look struct {
		Overview  operator.Overview
		Recent    []operator.PoolHour
		Decisions []decisions.Decision
		Open      []decisions.Decision
	}
	if err := json.Unmarshal([]byte(lines[1]), &look); err != nil {
		t.Fatal(err)
	}
	if look.Overview.Version != "v1" || look.Recent[0].Pool != "main" || look.Decisions[0].ID != "the-last" ||
		look.Open[0].Worker != "gpu-2" || look.Open[0].Seconds != 77.5 {
		t.Errorf("%+v", look)
	}
}

// TestTopOfRestarts: the column is there if a worker has restarted, with how often and when for the last time.
func TestTopOfRestarts(t *testing.T) {
	now := time.Now()
	o := operator.Overview{Ready: true, Now: now, Pools: []operator.PoolOverview{{PoolState: operator.PoolState{Name: "p",
		Workers: []operator.WorkerState{{ID: "a", State: "up", Breaker: "closed", Since: now}, {ID: "b", State: "up", Breaker: "closed", Since: now}}}}}}
	f := func(want ...string) {
		t.Helper()
		page := strings.Join(strings.Fields(strings.Join(workerRows(&o, false).lines, " | ")), " ")
		if want := strings.Join(want, " | "); !strings.HasSuffix(page, want) {
			t.Errorf("%s; want %s", page, want)
		}
	}
	f("SLOWNESS FIRST WHY", "a p up 0s 0 0 0.00s 0% 0% 0.00 -", "b p up 0s 0 0 0.00s 0% 0% 0.00 -")
	o.Pools[0].Workers[1].Restarts, o.Pools[0].Workers[1].Restarted = 3, now.Add(-12*time.Second)
	f("SLOWNESS FIRST RESTARTS WHY", "a p up 0s 0 0 0.00s 0% 0% 0.00 -", "b p up 0s 0 0 0.00s 0% 0% 0.00 - 3, 12s ago")
}

// TestTopFitsTheTerminal: no page is larger than its terminal, which would scroll the head away; a worker that is down
// is on it with its reason, however many are up.
func TestTopFitsTheTerminal(t *testing.T) {
	o := operator.Overview{Ready: true, Pools: make([]operator.PoolOverview, 2)}
	for i := range o.Pools {
		p := &o.Pools[i]
		p.Name = fmt.Sprint("pool", i)
		for k := range 60 {
			p.Workers = append(p.Workers, operator.WorkerState{ID: fmt.Sprint("worker-", k), State: "up", Breaker: "closed"})
		}
	}
	o.Pools[0].Workers[59] = operator.WorkerState{ID: "broken", State: "down", Breaker: "open", LastError: "no answer within 2s"}
	o.Warnings = []operator.Warning{{Grade: "bad", Title: "pool pool1 cannot serve", Text: "no worker is up", Command: "warmpath check"}}
	for i := range o.Pools {
		o.Pools[i].Summarize()
	}
	hours, last := []operator.PoolHour{{Pool: "pool0"}, {Pool: "pool1"}}, make([]decisions.Decision, 12)
	f := func(s screen, wants ...string) {
		t.Helper()
		page, err := s.draw(&o, hours, last)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(page), "\n"), "\n")
		if len(lines) > s.rows && s.rows > 0 {
			t.Errorf("%v: %d lines:\n%s", s, len(lines), page)
		}
		for _, line := range lines {
			if len(line) > s.columns && s.rows > 0 {
				t.Errorf("%v: a line of %d:\n%s", s, len(line), line)
			}
		}
		for _, want := range wants {
			if !strings.Contains(string(page), want) {
				t.Errorf("%v: it lacks %q:\n%s", s, want, page)
			}
		}
	}
	f(screen{60, 10}, "broken", "pool pool1 cannot serve")
	f(screen{120, 24}, "broken", "no answer within 2s", "pool1 ", "LAST MINUTE", "... and", "warmpath check")
	f(screen{200, 60}, "broken", "no answer within 2s", "LAST MINUTE", "TIME ")
	f(screen{200, 200}, "worker-58", "TIME ", "LAST MINUTE")
	f(screen{}, "worker-58", "TIME ")
	f(screen{1, 1})
}

// TestTopAtFleetSize: with 256 workers in 16 pools and five things wrong, a usual terminal shows each of these, the sick
// worker, the dead pool and the last decision.
func TestTopAtFleetSize(t *testing.T) {
	o := operator.Overview{Ready: true}
	for i := range 16 {
		p := operator.PoolOverview{PoolState: operator.PoolState{Name: fmt.Sprint("pool", i), Up: 16}}
		for k := range 16 {
			p.Workers = append(p.Workers, operator.WorkerState{ID: fmt.Sprint("w", k), State: "up", Breaker: "closed"})
		}
		p.Summarize()
		o.Pools = append(o.Pools, p)
	}
	o.Pools[15].WhyNot, o.Pools[15].Up = readiness.WhyEmpty, 0
	for k := range o.Pools[15].Workers {
		o.Pools[15].Workers[k].State = "down"
	}
	o.Pools[9].Workers[3].State, o.Pools[9].Workers[3].Why = "ejected", "refuses what others accept"
	for i := range 5 {
		o.Warnings = append(o.Warnings, operator.Warning{Grade: "warn", Title: fmt.Sprint("trouble ", i), Text: strings.Repeat("why ", 100), Command: "warmpath check"})
	}
	last := make([]decisions.Decision, 12)
	last[0].Model = "the-last"
	for _, s := range []screen{{80, 24}, {120, 40}, {200, 60}} {
		page, err := s.draw(&o, nil, last)
		if err != nil {
			t.Fatal(err)
		}
		text := string(page)
		if n := strings.Count(text, "\n"); n > s.rows {
			t.Errorf("%v: %d lines", s, n)
		}
		for _, want := range []string{"trouble 0", "trouble 4", "warmpath check", "pool15 ", "w3 ", "ejected", "the-last"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: it lacks %q:\n%s", s, want, text)
			}
		}
		if strings.Index(text, "ejected") > strings.Index(text, " down ") && strings.Contains(text, " down ") {
			t.Errorf("%v: the workers of the dead pool hide the sick one:\n%s", s, text)
		}
	}
}

// TestWhyBelowItsWorker: the table has one width for all workers; what is wrong with one stands beside the rest where the
// screen has room for it, and else below.
func TestWhyBelowItsWorker(t *testing.T) {
	workers := []operator.WorkerState{
		{ID: "a", State: "up", Breaker: "closed"},
		{ID: "WORKER WHY", State: "down", Breaker: "closed", Why: "no answer within 2s"},
	}
	now := time.Now()
	workers[0].Since = now
	workers[1].Since = now
	const head = "WORKER      STATE  SINCE  IN FLIGHT  RUNNING  WAITING  QUEUE  KV  HITS  SLOWNESS  FIRST  TPOT  WHY\n" +
		"a           up     0s     0          0        0        0.00s  0%  0%    0.00      -      -\n" +
		"WORKER WHY  down   0s     0          0        0        0.00s  0%  0%    0.00      -      -"
	f := func(columns int, want string) {
		t.Helper()
		var b strings.Builder
		if err := writeWorkers(&b, &operator.PoolState{Workers: workers}, now, columns); err != nil || b.String() != head+want {
			t.Errorf("%d columns: %v:\n%s\nwant\n%s", columns, err, b.String(), head+want)
		}
	}
	f(0, "     no answer within 2s\n")
	f(114, "     no answer within 2s\n")
	f(113, "\n  no answer within 2s\n")
	f(20, "\n  no answer within 2s\n")
}
