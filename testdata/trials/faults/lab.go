package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// lab is what one check works with.
type lab struct {
	ctx      context.Context
	dir, bin string
	quick    bool
	report   *report
	what     string

	nodes   []*node
	procs   []*rig.Proc
	routers []*router
	bad     atomic.Int64 // upstream requests that had not exactly one length
	badHead atomic.Pointer[string]
	exits   bool // the check ends the router itself

	successor int // pid of the daemon that took the router's place; 0 = there is none
}

// router is a running daemon and what it held before the fault.
type router struct {
	*rig.Proc
	base held
}

// held is what a daemon holds.
type held struct{ goroutines, fds, inFlight int }

// poolKeys are the lines of [[pools]] for a fleet whose faults are to be seen soon.
const poolKeys = "strategy = \"roundrobin\"\nhealth_interval = \"300ms\"\nscrape_interval = \"1s\"\n"

// pick returns one of two by -quick.
func pick[T any](l *lab, quick, full T) T {
	if l.quick {
		return quick
	}
	return full
}

// serve starts a daemon. Its baseline is taken after some requests, when what is made once is made.
func (l *lab) serve(r rig.Router) (*router, error) {
	p, err := r.Start(l.dir, l.bin)
	if err != nil {
		return nil, err
	}
	l.procs = append(l.procs, p)
	for range 8 {
		wire.Once(p.Addr, wire.Post(chatPath, chat("warm", false)))
	}
	time.Sleep(100 * time.Millisecond)
	rt := &router{Proc: p}
	rt.base, err = rt.held()
	if err != nil {
		return nil, err
	}
	l.routers = append(l.routers, rt)
	return rt, nil
}

// inFront starts nodes and a daemon with poolKeys and more in front of them.
func (l *lab) inFront(nodes int, server, pool string) (*router, []*node, error) {
	all, err := l.startNodes(nodes)
	if err != nil {
		return nil, nil, err
	}
	r, err := l.inFrontOf(server, poolKeys+pool, all...)
	return r, all, err
}

// inFrontOf starts a daemon in front of nodes.
func (l *lab) inFrontOf(server, pool string, nodes ...*node) (*router, error) {
	return l.serve(rig.Router{Server: server, Pool: pool, Workers: addrs(nodes)})
}

// peers runs the same on nginx and haproxy and prints what came of it. The short form has no time for them.
func (l *lab) peers(workers []string, try func(addr string) string) {
	if l.quick {
		return
	}
	for name, start := range map[string]func(string, ...string) (*rig.Proc, error){"nginx": rig.Nginx,
		"haproxy": rig.Haproxy} {
		p, err := start(l.dir, workers...)
		if err != nil {
			l.report.print(line{Fault: l.what, Peer: name, Figure: "not tried: " + err.Error()})
			continue
		}
		l.report.print(line{Fault: l.what, Peer: name, Figure: try(p.Addr)})
		p.Stop()
	}
}

// workerProc starts a worker as a process of its own.
func (l *lab) workerProc() (*rig.Proc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := rig.FreeAddr()
	p, err := rig.Start(l.dir, "worker", addr, self, "-role", "worker", "-listen", addr)
	if err != nil {
		return nil, err
	}
	l.procs = append(l.procs, p)
	return p, p.Await("/health")
}

// relayProc starts a plain relay as a process of its own.
func (l *lab) relayProc(to string) (*rig.Proc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := rig.FreeAddr()
	p, err := rig.Start(l.dir, "relay", addr, self, "-role", "relay", "-listen", addr, "-to", to)
	if err != nil {
		return nil, err
	}
	l.procs = append(l.procs, p)
	return p, p.Await("/health")
}

// metric sums the series of a metric whose labels contain all of with.
func (r *router) metric(name string, with ...string) (sum float64, err error) {
	a := wire.GetFrom(r.Admin, "/metrics")
	if a.Err != nil || a.Status != 200 {
		return 0, fmt.Errorf("metrics: %d %w", a.Status, a.Err)
	}
	found := false
	for s := bufio.NewScanner(strings.NewReader(string(a.Body))); s.Scan(); {
		series, value, _ := strings.Cut(s.Text(), " ")
		rest, ok := strings.CutPrefix(series, name)
		if !ok || rest != "" && rest[0] != '{' || !containsAll(rest, with) {
			continue
		}
		found = true
		v, _ := strconv.ParseFloat(value, 64)
		sum += v
	}
	if !found && len(with) == 0 && name != "warmpath_requests_total" {
		return 0, fmt.Errorf("metrics: no %s", name)
	}
	return sum, nil
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func (r *router) held() (h held, err error) {
	g, err := r.metric("go_goroutines")
	if err != nil {
		return h, err
	}
	n, err := r.metric("warmpath_worker_in_flight")
	return held{int(g), r.FDs(), int(n)}, err
}

// settle waits until all daemons are back at their baseline, and returns what is wrong.
func (l *lab) settle() string {
	if n := l.bad.Load(); n > 0 {
		return fmt.Sprintf("%d upstream requests without exactly one length: %.300q", n, *l.badHead.Load())
	}
	for _, r := range l.routers {
		if r.Logged("panic: ") || r.Logged("fatal error: ") || r.Logged("BUG:") {
			return "the log tells of a panic: " + r.Log(400)
		}
		if l.exits {
			continue
		}
		if r.Exited() {
			return "the daemon is dead: " + r.Log(400)
		}
		var h held
		var err error
		back := rig.Eventually(40*time.Second, func() bool {
			h, err = r.held()
			return err == nil && h.inFlight == 0 && h.fds <= r.base.fds+8 && h.goroutines <= r.base.goroutines+16
		})
		if !back {
			return fmt.Sprintf("not back at the baseline: %+v, before %+v %v", h, r.base, err)
		}
	}
	return ""
}

func (l *lab) close() {
	for _, p := range l.procs {
		p.Stop()
	}
	for _, n := range l.nodes {
		n.Close()
	}
}
