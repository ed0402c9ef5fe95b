package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
)

// statusOf runs warmpath status against a daemon that answers o, and returns what it prints and its error.
func statusOf(t *testing.T, o *operator.Overview) (text string, err error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o)
	}))
	defer s.Close()
	var out strings.Builder
	c := statusCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs([]string{"--admin", strings.TrimPrefix(s.URL, "http://")})
	c.SetOut(&out)
	c.SetErr(&out)
	err = c.Execute()
	return out.String(), err
}

// TestStatusFailsIfNothingIsServed: the exit code is 1 as in the help, even where /ready is 200.
func TestStatusFailsIfNothingIsServed(t *testing.T) {
	pool := func(whyNot string, panics bool) operator.PoolOverview {
		return operator.PoolOverview{PoolState: operator.PoolState{Name: "p", WhyNot: whyNot, Panics: panics}}
	}
	f := func(what string, ok bool, word string, o *operator.Overview) {
		t.Helper()
		text, err := statusOf(t, o)
		if (err == nil) != ok || !strings.HasPrefix(text, word+"  warmpath") {
			t.Errorf("%s: %v, says %s; want success %v, %s", what, err, text, ok, word)
		}
	}
	serving := pool("", false)
	f("a pool that serves", true, "ready",
		&operator.Overview{Ready: true, Pools: []operator.PoolOverview{serving}})
	f("one of two pools serves", false, "POOL DOWN",
		&operator.Overview{Ready: true, Pools: []operator.PoolOverview{pool(readiness.WhyUnfit, false), serving}})
	f("workers that list other models", false, "NOT READY",
		&operator.Overview{Ready: true, Pools: []operator.PoolOverview{pool(readiness.WhyUnfit, false)}})
	f("no worker is up", false, "NOT READY",
		&operator.Overview{Pools: []operator.PoolOverview{pool(readiness.WhyEmpty, false)}})
	f("none is up, and panic = true", true, "ready",
		&operator.Overview{Ready: true, Pools: []operator.PoolOverview{pool(readiness.WhyPanics, true)}})
	f("it drains", false, "draining",
		&operator.Overview{Draining: true, Pools: []operator.PoolOverview{serving}})
}

// TestStatusTellsOfReloads: the output has the last change and the keys that wait for a restart, even if the last
// reload changed nothing.
func TestStatusTellsOfReloads(t *testing.T) {
	now := time.Now()
	o := &operator.Overview{Ready: true, Now: now, Reload: metrics.Reload{At: now, OK: true, Restart: []string{"server.admin"}},
		Change: &metrics.Reload{At: now.Add(-time.Minute), Changed: []string{"pools.main.retry_budget", "server.admin"}}}
	f := func(wants ...string) {
		t.Helper()
		text, _ := statusOf(t, o)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("status lacks %q:\n%s", want, text)
			}
		}
	}
	f("configuration read 0s ago", "last change taken 60s ago: pools.main.retry_budget, server.admin", "at the next start only: server.admin")
	o.Reload = metrics.Reload{At: now, Error: "line 3", Restart: []string{"server.admin"}}
	f("CONFIGURATION REFUSED 0s ago", "line 3", "last change taken 60s ago", "at the next start only: server.admin")
}

// TestStatusTellsOfTrials: a worker that was set aside and is tried again counts as up, and its pool says so.
func TestStatusTellsOfTrials(t *testing.T) {
	o := &operator.Overview{Ready: true, Pools: []operator.PoolOverview{{PoolState: operator.PoolState{Name: "p", Workers: []operator.WorkerState{
		{ID: "a", State: "up", Breaker: "closed"}, {ID: "b", State: "ejected", Breaker: "half-open"}, {ID: "c", State: "ejected", Breaker: "open"}}}}}}
	o.Pools[0].Up, o.Pools[0].Total = 2, 3
	if text, _ := statusOf(t, o); !strings.Contains(text, "2 of 3 up, 1 of them on trial after failures") {
		t.Errorf("%s", text)
	}
	o.Pools[0].Workers = o.Pools[0].Workers[:1]
	if text, _ := statusOf(t, o); strings.Contains(text, "trial") {
		t.Errorf("%s", text)
	}
}

// TestWhyOfAWorker: the column WHY lists each trouble once.
func TestWhyOfAWorker(t *testing.T) {
	f := func(s operator.WorkerState, want string) {
		t.Helper()
		if got := s.WhyOf(); got != want {
			t.Errorf("%+v: %q; want %q", s, got, want)
		}
	}
	f(operator.WorkerState{Breaker: "closed"}, "")
	f(operator.WorkerState{Breaker: "open", Why: "its engine is dead", LastError: "its engine is dead"}, "breaker open; its engine is dead")
	f(operator.WorkerState{Breaker: "closed", Why: "asked to drain", LastError: "/health answers 503"}, "asked to drain; /health answers 503")
	f(operator.WorkerState{Breaker: "closed", LastError: "/health answers 503", ErrorOver: true}, "")
	f(operator.WorkerState{Breaker: "closed", Events: &operator.EventsState{State: "gap"}}, "KV events gap")
}

// TestDrainOfWhatIsNotThere: the error names the pool that was looked into, and says how many names it leaves out.
func TestDrainOfWhatIsNotThere(t *testing.T) {
	pools := []operator.PoolState{{Name: "a"}, {Name: "b", Workers: []operator.WorkerState{{ID: "w", State: "up"}}}, {Name: "none"}}
	for i := range 23 {
		pools[0].Workers = append(pools[0].Workers, operator.WorkerState{ID: fmt.Sprint("a-", i), State: "up"})
	}
	f := func(args, want string) {
		t.Helper()
		if text, err := drainBy(t, "drain", pools, args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("drain %s says %s, %v; want %q", args, text, err, want)
		}
	}
	f("w --pool a", `there is no worker "w" in pool "a"; there are a-0, a-1,`)
	f("x", "a-19 and 4 more: warmpath status lists them")
	f("w --pool c", `there is no pool "c"; there are a, b, none`)
	f("w --pool none", `there is no worker in pool "none"`)
}

// TestUndrainOfAWorkerThatIsDown: a worker that is down gets no requests yet.
func TestUndrainOfAWorkerThatIsDown(t *testing.T) {
	pools := []operator.PoolState{{Name: "p", Workers: []operator.WorkerState{{ID: "good", State: "up", Breaker: "closed"},
		{ID: "bad", State: "down", Breaker: "closed", LastError: "/health answers 503"}}}}
	f := func(worker, want string) {
		t.Helper()
		if text, err := drainBy(t, "undrain", pools, worker); err != nil || strings.TrimSpace(text) != want {
			t.Errorf("undrain %s says %s, %v; want %s", worker, text, err, want)
		}
	}
	f("good", "good of pool p gets requests again")
	f("bad", "bad of pool p is put back, and gets requests once it is up; it is down: /health answers 503")
}

// drainBy runs drain or undrain against a daemon with the pools, which does as it is told.
func drainBy(t *testing.T, command string, pools []operator.PoolState, args string) (text string, err error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			_, _ = w.Write([]byte("{}"))
			return
		}
		_ = json.NewEncoder(w).Encode(pools)
	}))
	defer s.Close()
	var out strings.Builder
	c := root()
	c.SetArgs(append([]string{command, "--admin", s.URL}, strings.Fields(args)...))
	c.SetOut(&out)
	err = c.Execute()
	return out.String(), err
}

// TestStatusCounts: one connection is no "1 connections".
func TestStatusCounts(t *testing.T) {
	for n, want := range map[int]string{0: "0 in flight, 0 connections\n", 1: "0 in flight, 1 connection\n", 2: ", 2 connections\n"} {
		if text, _ := statusOf(t, &operator.Overview{Clients: n}); !strings.Contains(text, want) {
			t.Errorf("%d connections: status says %s; want %q", n, text, want)
		}
	}
}

// TestStatusNamesAliases: a pool has the aliases that lead to its models.
func TestStatusNamesAliases(t *testing.T) {
	p := operator.PoolOverview{PoolState: operator.PoolState{Aliases: []string{"chat leads to sim", "gpt-4 leads to sim"}}}
	if text, _ := statusOf(t, &operator.Overview{Pools: []operator.PoolOverview{p}}); !strings.Contains(text, "\naliases: chat leads to sim, gpt-4 leads to sim\n") {
		t.Errorf("status says %s", text)
	}
}
