package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// askedWorker is a worker that counts how often it is checked and scraped.
type askedWorker struct {
	*httptest.Server
	checks, scrapes atomic.Int64
}

func startAsked(t *testing.T, running int) *askedWorker {
	p := new(askedWorker)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health":
			p.checks.Add(1)
		case "/metrics":
			p.scrapes.Add(1)
			fmt.Fprintf(w, "vllm:num_requests_running %d\n", running)
		case "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"sim"}]}`)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// TestRoutersShareTheirProbes: two routers ask each worker as often as one does, and both know what one has seen. A
// worker that dies is down at both at once. When one router has left, the other asks all workers.
func TestRoutersShareTheirProbes(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t).URL()
	var urls []string
	var all []*askedWorker
	for i := range 6 {
		all = append(all, startAsked(t, 1+i))
		urls = append(urls, all[i].URL)
	}
	var routers []*running
	for i := range 2 {
		toml := settings("prefixaware", urls...) + fmt.Sprintf("[history]\nredis = %q\nname = \"router-%d\"\n", redis, i)
		routers = append(routers, start(t, toml, len(all)))
	}
	eventually(t, "each worker is asked as often as by one router, at 100 ms", func() bool {
		for _, w := range all {
			w.checks.Store(0)
			w.scrapes.Store(0)
		}
		began := time.Now()
		time.Sleep(2 * time.Second)
		most := int64(time.Since(began) / (75 * time.Millisecond))
		for _, w := range all {
			if c, s := w.checks.Load(), w.scrapes.Load(); c < 2 || s < 2 || c > most || s > most {
				return false
			}
		}
		return true
	})
	for i, r := range routers {
		for j, s := range r.shown()[0].Workers.Stats(time.Now()) {
			if s.Running != 1+j || s.MetricsAge > 3*time.Second {
				t.Errorf("router %d, worker %d: %d requests run, read %v ago; want %d", i, j, s.Running, s.MetricsAge, 1+j)
			}
		}
	}
	dies := func(i int, at []*running) {
		t.Helper()
		died := time.Now()
		all[i].Listener.Close()
		for n, r := range at {
			eventually(t, fmt.Sprintf("router %d knows that worker %d is down", n, i), func() bool {
				return !r.shown()[0].Workers.Stats(time.Now())[i].Up
			})
		}
		t.Logf("worker %d: down everywhere after %v", i, time.Since(died))
	}
	for i := range 3 {
		dies(i, routers)
	}
	_ = routers[1].stop()
	for i := 3; i < 6; i++ {
		checks := all[i].checks.Load()
		eventually(t, "the router that is left asks the worker", func() bool { return all[i].checks.Load() > checks+5 })
		dies(i, routers[:1])
	}
}
