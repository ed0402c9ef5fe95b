package worker

import (
	"context"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestReturnOnSocket lets a worker die and come back on its port, at the default intervals, and tells how soon it is used.
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
	a, addr := serve("127.0.0.1:0")
	b, other := serve("127.0.0.1:0")
	defer b.Close()
	p := New(Config{Workers: []Spec{{ID: "a", URL: "http://" + addr}, {ID: "b", URL: "http://" + other}}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()
	until := func(what string, used bool) time.Duration {
		t.Helper()
		began := time.Now()
		for time.Since(began) < 30*time.Second {
			_, ws, _ := p.Snapshot("", time.Now(), nil, nil)
			if slices.ContainsFunc(ws, func(w *Worker) bool { return w.id == "a" }) == used {
				return time.Since(began)
			}
			time.Sleep(2 * time.Millisecond)
		}
		t.Fatalf("not in 30 s: %s", what)
		return 0
	}
	until("up", true)
	a.Close()
	w := p.workers[0]
	p.Begin(w, Dispatch{}, time.Now()).End(time.Now(), Outcome{Kind: Broken}) // what a request there meets
	t.Logf("out of use %v after its death", until("down", false).Round(time.Millisecond))
	a, _ = serve(addr)
	defer a.Close()
	t.Logf("in use %v after it could answer (target 2 s)", until("back", true).Round(time.Millisecond))
}
