package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// waits are how long requests took, while Redis was well and while it was not.
type waits struct {
	ill  atomic.Bool
	mu   sync.Mutex // guards took
	took [2][]time.Duration
}

// ask sends 100 requests a second to a router until quit is closed, and counts those that failed.
func (w *waits) ask(l *lab, addr string, quit chan struct{}) (sent, failed int64) {
	var bad, all atomic.Int64
	for {
		select {
		case <-quit:
			return all.Load(), bad.Load()
		default:
		}
		wire.Open(l.ctx, addr, 100, 16, 500*time.Millisecond, func(c *wire.Client, _ int, _ time.Time) {
			mark, at, ill := newMark(), time.Now(), w.ill.Load()
			all.Add(1)
			if !good(c.Do(plain(mark, ""), true), mark) {
				bad.Add(1)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			k := 0
			if ill || w.ill.Load() {
				k = 1
			}
			w.took[k] = append(w.took[k], time.Since(at))
		})
	}
}

// part returns the duration that a part of the requests did not exceed.
func (w *waits) part(k int, part float64) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.took[k]
	slices.Sort(all)
	return all[int(float64(len(all)-1)*part)]
}

// checkHistory stops and kills the Redis over which two routers share their history.
func checkHistory(l *lab) (verdict, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return say(true, "not tried: there is no redis-server")
	}
	socket := filepath.Join(l.dir, "history.sock")
	redis, err := l.redisProc(socket)
	if err != nil {
		return verdict{}, err
	}
	nodes, err := l.startNodes(4)
	if err != nil {
		return verdict{}, err
	}
	var all []*router
	for i := range 2 {
		history := fmt.Sprintf("[history]\nredis = \"unix://%s\"\nname = \"router-%d\"\n", socket, i)
		r, err := l.serve(rig.Router{Workers: addrs(nodes), Pool: "strategy = \"prefixaware\"\n", Strategies: history})
		if err != nil {
			return verdict{}, err
		}
		all = append(all, r)
	}
	if _, heard := l.heard(all); !heard {
		return say(false, "the routers do not hear each other")
	}
	var w waits
	quit := make(chan struct{})
	var sent, failed atomic.Int64
	var asking sync.WaitGroup
	for _, r := range all {
		asking.Go(func() {
			n, bad := w.ask(l, r.Addr, quit)
			sent.Add(n)
			failed.Add(bad)
		})
	}
	time.Sleep(time.Second)
	w.ill.Store(true)
	redis.Signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	redis.Signal(syscall.SIGCONT)
	w.ill.Store(false)
	thawed, heard := l.heard(all)
	w.ill.Store(true)
	redis.Stop()
	time.Sleep(1500 * time.Millisecond)
	_, err = l.redisProc(socket)
	w.ill.Store(false)
	anew, again := l.heard(all)
	close(quit)
	asking.Wait()
	if err != nil {
		return verdict{}, err
	}
	for _, r := range all {
		if n, err := r.metric("warmpath_history_losses_total"); err != nil || n < 2 {
			return say(false, "a router lost its Redis %v times of 2 %v", n, err)
		}
	}
	more := w.part(1, .5) - w.part(0, .5)
	return say(failed.Load() == 0 && heard && again && more <= 5*time.Millisecond,
		"%d of %d failed; the median request took %s more meanwhile (p99 %s and %s); the routers heard each other "+
			"%.1f s after it went on, %.1f s after another took over", failed.Load(), sent.Load(), ms(more),
		ms(w.part(0, .99)), ms(w.part(1, .99)), thawed.Seconds(), anew.Seconds())
}

// heard waits up to 5 s until each of two routers has its Redis and receives from the other, and returns how long it
// took.
func (l *lab) heard(all []*router) (took time.Duration, ok bool) {
	began := time.Now()
	ok = rig.Eventually(5*time.Second, func() bool {
		for _, r := range all {
			for _, name := range []string{"warmpath_history_connected", "warmpath_history_routers"} {
				if v, err := r.metric(name); err != nil || v != 1 {
					return false
				}
			}
		}
		return true
	})
	return time.Since(began), ok
}

// redisProc starts a redis-server that keeps nothing.
func (l *lab) redisProc(socket string) (*rig.Proc, error) {
	p, err := rig.Start(l.dir, "redis", "", "redis-server", "--port", "0", "--unixsocket", socket, "--save", "")
	if err != nil {
		return nil, err
	}
	l.procs = append(l.procs, p)
	up := rig.Eventually(15*time.Second, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if !up {
		return nil, fmt.Errorf("redis-server does not listen; its log ends %s", p.Log(300))
	}
	return p, nil
}
