package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func checkSigterm(l *lab) (verdict, error) {
	r, _, err := l.inFront(4, "", "")
	if err != nil {
		return verdict{}, err
	}
	l.exits = true
	var whole, begun atomic.Int64
	var why atomic.Pointer[string]
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			mark := newMark()
			first := true
			s := watch(r.Addr, streaming(mark, 60, 50*time.Millisecond, ""), mark, func(*wire.Conn, *seen) {
				if first {
					begun.Add(1)
					first = false
				}
			})
			if s.fine() {
				whole.Add(1)
				return
			}
			text := s.String()
			why.Store(&text)
		})
	}
	rig.Eventually(5*time.Second, func() bool { return begun.Load() == 200 })
	r.Signal(syscall.SIGTERM)
	// A load balancer asks on either listener; it must get 503 before connections are refused.
	told := rig.Eventually(2*time.Second, func() bool {
		return wire.Once(r.Addr, wire.Get("/ready")).Status == 503 || wire.GetFrom(r.Admin, "/ready").Status == 503
	})
	all.Wait()
	code, ended := r.WaitExit(15 * time.Second)
	text := ""
	if w := why.Load(); w != nil {
		text = "; one: " + *w
	}
	return say(whole.Load() == 200 && told && ended && code == 0, "%d of 200 whole, /ready 503 %v, ended %v with %d%s",
		whole.Load(), told, ended, code, text)
}

func checkReload(l *lab) (verdict, error) {
	nodes, err := l.startNodes(4)
	if err != nil {
		return verdict{}, err
	}
	swap := func(name string) (string, error) {
		b, err := plugins.Builtin(name)
		if err != nil {
			return "", err
		}
		path := filepath.Join(l.dir, "mine.wasm")
		return fmt.Sprintf("[strategies.mine]\npath = %q\n", path), rig.Replace(path, string(b))
	}
	table, err := swap("roundrobin")
	if err != nil {
		return verdict{}, err
	}
	keys := "strategy = \"mine\"\nhealth_interval = \"300ms\"\n"
	conf := rig.Router{Pool: keys, Strategies: table, Workers: addrs(nodes[:2])}
	r, err := l.serve(conf)
	if err != nil {
		return verdict{}, err
	}
	stop := steady(l, r.Addr, 500, "&hold=10")
	sum := func() string {
		a := wire.GetFrom(r.Admin, "/metrics")
		for line := range linesOf(string(a.Body)) {
			if containsAll(line, []string{"warmpath_module_info{", "mine"}) {
				return line
			}
		}
		return ""
	}
	first := sum()
	steps := []func() error{
		func() error { conf.Workers = addrs(nodes); return conf.Rewrite(r.Proc) },
		func() error { _, err := swap("prefixaware"); r.Signal(syscall.SIGHUP); return err },
		func() error { conf.Workers = addrs(nodes[1:3]); return conf.Rewrite(r.Proc) },
		func() error { _, err := swap("roundrobin"); r.Signal(syscall.SIGHUP); return err },
		func() error { return rig.Replace(r.Conf, "[server]\nlisten = 7\n[[pools]]\nno_such_key = 1\n") },
	}
	swapped := false
	for _, step := range steps {
		if err := step(); err != nil {
			return verdict{}, err
		}
		time.Sleep(1500 * time.Millisecond)
		swapped = swapped || sum() != first
	}
	ok, err := r.metric("warmpath_config_last_reload_successful")
	used := nodes[2].posts.Load() > 0
	sent, failed := stop()
	return say(failed == 0 && swapped && used && err == nil && ok == 0,
		"%d of %d failed; module swapped %v, new worker used %v, bad file refused %v", failed, sent, swapped, used, ok == 0)
}

func checkWorkersFile(l *lab) (verdict, error) {
	nodes, err := l.startNodes(3)
	if err != nil {
		return verdict{}, err
	}
	path := filepath.Join(l.dir, "workers.toml")
	put := func(n []*node) error { return rig.Replace(path, rig.Tables("workers", addrs(n))) }
	if err := put(nodes[:2]); err != nil {
		return verdict{}, err
	}
	r, err := l.serve(rig.Router{Pool: poolKeys + fmt.Sprintf("workers_file = %q\n", path)})
	if err != nil {
		return verdict{}, err
	}
	stop := steady(l, r.Addr, 300, "&hold=20")
	time.Sleep(time.Second)
	if err := put(nodes); err != nil {
		return verdict{}, err
	}
	began := time.Now()
	used := rig.Eventually(6*time.Second, func() bool { return nodes[2].posts.Load() > 0 })
	soon := time.Since(began)
	if err := put(nodes[2:]); err != nil {
		return verdict{}, err
	}
	time.Sleep(3 * time.Second)
	before := nodes[0].posts.Load() + nodes[1].posts.Load()
	time.Sleep(time.Second)
	after := nodes[0].posts.Load() + nodes[1].posts.Load() - before
	if err := put(nodes[:2]); err != nil {
		return verdict{}, err
	}
	time.Sleep(3 * time.Second)
	sent, failed := stop()
	return say(failed == 0 && used && soon <= 2*time.Second && after == 0,
		"%d of %d failed; new worker used %v after %s; removed ones got %d", failed, sent, used, ms(soon), after)
}
