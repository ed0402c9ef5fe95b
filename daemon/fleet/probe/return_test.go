package probe_test

import (
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/probe"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// TestReturnOnSocket lets a worker die and come back on its port, at the default intervals, and logs how soon it is
// used.
func TestReturnOnSocket(t *testing.T) {
	serve := func(at string) (*http.Server, string) {
		t.Helper()
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		go func() { _ = s.Serve(l) }()
		return s, l.Addr().String()
	}
	a, addr := serve(porttest.Address(t))
	b, other := serve("127.0.0.1:0")
	defer b.Close()
	c := worker.Config{Workers: []worker.Spec{{ID: "a", URL: "http://" + addr}, {ID: "b", URL: "http://" + other}}}
	run(t, c, probe.Config{}, func(p *worker.Pool, _ *probe.Prober) {
		until := func(what string, used bool) time.Duration {
			t.Helper()
			began := time.Now()
			for time.Since(began) < 30*time.Second {
				_, ws, _ := p.Snapshot(worker.Query{At: time.Now()}, nil, nil)
				if slices.ContainsFunc(ws, func(w *worker.Worker) bool { return w.ID() == "a" }) == used {
					return time.Since(began)
				}
				time.Sleep(2 * time.Millisecond)
			}
			t.Fatalf("not in 30 s: %s", what)
			return 0
		}
		until("up", true)
		_, ws, _ := p.Snapshot(worker.Query{At: time.Now()}, nil, nil)
		k := new(worker.Ticket)
		if !p.Begin(k, ws[0], worker.Dispatch{}, time.Now()) || ws[0].ID() != "a" {
			t.Fatal("a takes no request")
		}
		a.Close()
		k.End(time.Now(), judge.Outcome{Kind: judge.Broken}) // what a request there meets
		t.Logf("out of use %v after its death", until("down", false).Round(time.Millisecond))
		a, _ = serve(addr)
		defer a.Close()
		t.Logf("in use %v after it could answer (target 2 s)", until("back", true).Round(time.Millisecond))
	})
}
