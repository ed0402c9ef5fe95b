package main

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/faults/probes"
)

// attackDoor tries what any client can send: connections, headers, framing, paths, and the operator's pages.
func attackDoor(l *lab) error {
	w, err := l.echoes("sim")
	if err != nil {
		return err
	}
	l.way("descriptors", func() (bool, string) { return descriptors(l, w) })
	d, err := l.serve(rig.Router{Server: "read_timeout = \"2s\"\n", Workers: []string{w.addr}})
	if err != nil {
		return err
	}
	l.way("framing", func() (bool, string) { return framing(d.Addr, w) })
	l.way("bare-lf", func() (bool, string) { return bareLF(d.Addr) })
	l.way("many-headers", func() (bool, string) {
		a := probes.Send(d.Addr, "GET /v1/models HTTP/1.1\r\nHost: r\r\n"+strings.Repeat("A: b\r\n", 100_000)+"\r\n",
			5*time.Second)
		return strings.HasPrefix(a, "HTTP/1.1 431"), fmt.Sprintf("100,000 headers: %.30q", a)
	})
	l.way("half-header", func() (bool, string) {
		began := time.Now()
		a := probes.Send(d.Addr, "GET /v1/models HTTP/1.1\r\nHost: r\r\nX-A", 15*time.Second)
		took := time.Since(began)
		return took < 10*time.Second, fmt.Sprintf("half a header, read_timeout 2 s: ended after %.1f s with %.30q",
			took.Seconds(), a)
	})
	l.way("worker-admin-paths", func() (bool, string) { return workerPaths(d.Addr, w) })
	attackBrowsers(l, d)
	attackAdmin(l, d)
	return nil
}

// descriptors takes all of a daemon's descriptors with idle connections while an operator looks at it.
func descriptors(l *lab, w *echo) (bool, string) {
	d, err := l.serve(rig.Router{Workers: []string{w.addr}, Files: 64})
	if err != nil {
		return false, err.Error()
	}
	var idle []net.Conn
	for range 200 {
		if c, err := net.DialTimeout("tcp", d.Addr, time.Second); err == nil {
			idle = append(idle, c)
		}
	}
	admin := 0
	for range 6 {
		if a := within(3*time.Second, d.Admin, wire.Request("GET", "/ready", "", "Host: "+d.Admin)); a.Status == 200 {
			admin++
		}
	}
	time.Sleep(300 * time.Millisecond)
	alive := !d.Exited()
	for _, c := range idle {
		c.Close()
	}
	back := alive && rig.Eventually(10*time.Second, func() bool { return answers(d.Addr) })
	seen := fmt.Sprintf("%d idle connections at ulimit -n 64: alive %v, admin answered %d of 6, served after they left %v",
		len(idle), alive, admin, back)
	if trouble := l.end(d); trouble != "" {
		seen += "; " + trouble
	}
	return alive && admin == 6 && back, seen
}

// framing sends what two parsers may read in two ways, all at once. 0 of it may come to a worker.
func framing(addr string, w *echo) (bool, string) {
	w.asked()
	var all sync.WaitGroup
	var mu sync.Mutex // guards answered
	var answered []string
	for _, p := range probes.Ambiguous {
		all.Go(func() {
			if got := probes.Send(addr, p.Raw, time.Second); strings.HasPrefix(got, "HTTP/1.1 2") {
				mu.Lock()
				answered = append(answered, p.Name)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	reached := w.asked()
	for _, p := range probes.Controls {
		probes.Send(addr, p.Raw, time.Second)
	}
	sound := len(w.asked())
	return len(reached) == 0 && len(answered) == 0 && sound == len(probes.Controls),
		fmt.Sprintf("%d ambiguous requests: %d reached a worker, answered 2xx: %q; %d of %d sound ones reached it",
			len(probes.Ambiguous), len(reached), answered, sound, len(probes.Controls))
}

// bareLF ends a header in LFs without CR. The daemon may answer or refuse it, at once: such a header is whole, as any
// client that ends lines so waits for the answer.
func bareLF(addr string) (bool, string) {
	began := time.Now()
	a := probes.Send(addr, "GET /v1/models HTTP/1.1\nHost: r\n\n", time.Second)
	b := probes.Send(addr, "GET /v1/models HTTP/1.1\r\nHost: r\r\n\n", time.Second)
	return strings.HasPrefix(a, "HTTP/1.1 ") && strings.HasPrefix(b, "HTTP/1.1 "),
		fmt.Sprintf("header lines in LF: %.20q, only the empty line in LF: %.20q, %d ms for both", a, b,
			time.Since(began).Milliseconds())
}

// workerPaths asks for what a worker serves beside inference, by spellings that a parser may fold.
func workerPaths(addr string, w *echo) (bool, string) {
	w.asked()
	var open []string
	for _, p := range []string{
		"/sleep", "/metrics", "/server_info", "/pause", "/collective_rpc", "/openapi.json", "//v1/sleep",
		"/./v1/chat/completions",
		"/v1/../sleep", "/%2e%2e/sleep", "/V1/chat/completions", "/v1/..%2fsleep", "/v1/%2e%2e%2fsleep",
		"/v1/x/..%2f..%2fsleep",
		"/v1/..%5csleep", "/v1/..\\sleep", "/v1/models%00", "/v1/x%2fy", "/v1/%2E%2E/sleep",
	} {
		a := wire.Once(addr, wire.Request("POST", p, chat("sim"), jsonType))
		g := wire.Once(addr, wire.Request("GET", p, ""))
		// Workers list nothing of warmpath's own under these names, so that a 200 can only be a worker's.
		if a.Status == 200 || g.Status == 200 {
			open = append(open, p)
		}
	}
	reached := w.asked()
	return len(open) == 0 && len(reached) == 0, fmt.Sprintf("answered 200: %q; came to a worker: %.200q", open, reached)
}

// within sends one request and waits for its answer for so long.
func within(d time.Duration, addr string, request []byte) wire.Answer {
	got := make(chan wire.Answer, 1)
	go func() { got <- wire.Once(addr, request) }()
	select {
	case a := <-got:
		return a
	case <-time.After(d):
		return wire.Answer{Err: fmt.Errorf("no answer within %v", d)}
	}
}
