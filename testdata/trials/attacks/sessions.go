package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// redis starts a Redis on loopback that keeps nothing.
func (l *lab) redis() (*rig.Proc, error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w: apt-get install redis-server", err)
	}
	addr := rig.FreeAddr()
	_, port, _ := net.SplitHostPort(addr)
	p, err := rig.Start(l.dir, "redis", addr, bin, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly",
		"no", "--dir", l.dir)
	if err != nil {
		return nil, err
	}
	l.others = append(l.others, p)
	up := rig.Eventually(15*time.Second, func() bool {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if !up {
		return nil, fmt.Errorf("redis-server does not listen: %s", p.Log(300))
	}
	return p, nil
}

// pair is two routers that share a Redis, in front of the same workers.
type pair struct {
	a, b  *rig.Proc
	redis *rig.Proc
}

// routers starts a pair in front of four workers, all of which stay up all the time.
func (l *lab) routers(strategy string) (pair, error) {
	var p pair
	var err error
	p.redis, err = l.redis()
	if err != nil {
		return p, err
	}
	at, err := l.fleet("sim")
	if err != nil {
		return p, err
	}
	conf := rig.Router{
		Pool:       fmt.Sprintf("name = \"p\"\nstrategy = %q\nworker_sessions = \"off\"\n", strategy),
		Workers:    at,
		Strategies: fmt.Sprintf("[sessions]\nbind = \"always\"\n[cache]\nredis = \"redis://%s\"\n", p.redis.Addr),
	}
	p.a, err = l.serve(conf)
	if err != nil {
		return p, err
	}
	p.b, err = l.serve(conf)
	return p, err
}

// worker asks with a session and returns who answered.
func worker(addr, path string, fields ...string) (at string, a wire.Answer) {
	a = wire.Once(addr, wire.Request("POST", path, chat("sim"), append(fields, jsonType)...))
	var said struct{ Worker string }
	if a.Status == 200 {
		json.Unmarshal(a.Body, &said)
	}
	return said.Worker, a
}

// attackSessions stops the store that routers share, and sends what is no session.
func attackSessions(l *lab) error {
	for _, strategy := range []string{"prefixaware", "roundrobin"} {
		l.way("paused-store-"+strategy, func() (bool, string) { return pausedStore(l, strategy) })
	}
	if l.wants("blank-id", "guessed-ids", "huge-reply") {
		w, err := l.echoes("sim")
		if err != nil {
			return err
		}
		d, err := l.serve(rig.Router{Pool: "name = \"p\"\n", Workers: []string{w.addr}})
		if err != nil {
			return err
		}
		l.way("blank-id", func() (bool, string) {
			a := wire.Once(d.Addr, wire.Request("POST", "/endpoints/p/invocations", chat("sim"), jsonType,
				"X-Amzn-SageMaker-Session-Id:"))
			b := wire.Once(d.Addr, wire.Request("POST", "/endpoints/p/invocations", chat("sim"), jsonType,
				"X-Amzn-SageMaker-Session-Id:   "))
			return a.Status == 400 && b.Status == 400, "an empty id: " + a.String() + "; blanks: " + b.String()
		})
		l.way("guessed-ids", func() (bool, string) {
			open := 0
			for i := range 200 {
				if a := wire.Once(d.Addr, wire.Request("GET", fmt.Sprintf("/sessions/%032x", i), "")); a.Status != 404 {
					open++
				}
			}
			return open == 0, fmt.Sprintf("%d of 200 guessed ids told of something", open)
		})
	}
	l.way("huge-reply", func() (bool, string) { return hugeReply(l) })
	return nil
}

// bind binds keys and opens sessions. home is the worker of each by its field; ids are the fields of those opened.
func bind(addr string, keys, opened int) (home map[string]string, ids []string, trouble string) {
	home = map[string]string{}
	for i := range keys {
		k := fmt.Sprintf("X-Session-Id: key-%d", i)
		home[k], _ = worker(addr, chatPath, k)
	}
	for range opened {
		var made struct{ ID string }
		json.Unmarshal(wire.Once(addr, wire.Request("POST", "/sessions", `{"model":"sim"}`, jsonType)).Body, &made)
		k := "X-Session-Id: " + made.ID
		home[k], _ = worker(addr, chatPath, k)
		ids = append(ids, k)
	}
	for k, at := range home {
		if at == "" {
			return nil, nil, "not served before the pause: " + k
		}
	}
	return home, ids, ""
}

// pausedStore binds keys and opens sessions at one router, stops Redis for 3 s, and uses them at the other one. With
// the limits that users have by default: no session is served by a worker that is not its own, nor told that it is
// none, and none lives elsewhere afterwards.
func pausedStore(l *lab, strategy string) (bool, string) {
	const keys, opened = 60, 30
	p, err := l.routers(strategy)
	if err != nil {
		return false, err.Error()
	}
	home, ids, trouble := bind(p.a.Addr, keys, opened)
	if trouble != "" {
		return false, trouble
	}
	time.Sleep(500 * time.Millisecond) // what is written behind has been written
	p.redis.Signal(syscall.SIGSTOP)
	began := time.Now()
	wrong, unknown, refused, kept, split := 0, 0, 0, 0, 0
	for _, k := range ids {
		at, a := worker(p.b.Addr, chatPath, k)
		switch {
		case a.Status == 200 && at != home[k]:
			wrong++
		case a.Status == 503 && a.RetryAfter:
			refused++
		case a.Status == 200:
			kept++
		default:
			unknown++
		}
	}
	strange := func(i int) string { return fmt.Sprintf("X-Session-Id: new-%d", i) }
	for i := range 20 { // a key that neither router has seen: both choose alike
		atA, a := worker(p.a.Addr, chatPath, strange(i))
		atB, b := worker(p.b.Addr, chatPath, strange(i))
		if a.Status != 200 || b.Status != 200 || atA != atB {
			split++
		}
	}
	moved := 0
	for i := range keys {
		k := fmt.Sprintf("X-Session-Id: key-%d", i)
		if _, a := worker(p.b.Addr, chatPath, k); a.Status != 200 {
			unknown++
		}
	}
	time.Sleep(time.Until(began.Add(3 * time.Second)))
	p.redis.Signal(syscall.SIGCONT)
	time.Sleep(2 * time.Second) // the breaker closes, debts are paid
	for k, at := range home {
		for _, d := range []*rig.Proc{p.a, p.b} {
			if now, _ := worker(d.Addr, chatPath, k); now != at {
				moved++
				break
			}
		}
	}
	trouble = l.end(p.a) + l.end(p.b)
	return wrong == 0 && unknown == 0 && moved == 0 && split == 0 && trouble == "",
		fmt.Sprintf("Redis stopped for 3 s under 2 routers: of %d opened sessions %d at a wrong worker, %d got 503 and "+
			"Retry-After, %d served at home; "+
			"%d answers of another kind; of 20 new keys %d chosen differently; of %d sessions %d live elsewhere afterwards %s",
			opened, wrong, refused, kept, unknown, split, len(home), moved, trouble)
}

// hugeReply is a Redis that announces a billion values, also while the daemon starts.
func hugeReply(l *lab) (bool, string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false, err.Error()
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer listener.Close()
	all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				c.SetDeadline(time.Now().Add(15 * time.Second))
				buf := make([]byte, 4096)
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					c.Write([]byte("*1000000000\r\n" + strings.Repeat("$1\r\nx\r\n", 10_000)))
				}
			})
		}
	})
	at, err := l.fleet("sim")
	if err != nil {
		return false, err.Error()
	}
	began := time.Now()
	d, err := l.serve(rig.Router{Workers: at,
		Strategies: fmt.Sprintf("[cache]\nredis = \"redis://%s\"\n", listener.Addr())})
	if err != nil {
		return false, fmt.Sprintf("after %.1f s: %v", time.Since(began).Seconds(), err)
	}
	ready := time.Since(began)
	most := watchRSS(d, 2*time.Second)
	served := answers(d.Addr)
	trouble := l.end(d)
	return served && most < 200<<20 && trouble == "", fmt.Sprintf("ready after %.1f s, memory %s at most, served %v %s",
		ready.Seconds(), mb(most), served, trouble)
}
