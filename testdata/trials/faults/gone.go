package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// leave begins a request, leaves, and returns how long the worker's connection stayed.
func leave(addr string, n *node, streamed bool) (time.Duration, error) {
	query := "&hold=3000"
	mark := newMark()
	request := plain(mark, query)
	if streamed {
		request = streaming(mark, 3, 3*time.Second, "")
	}
	c, err := wire.Dial(addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	for end := time.Now().Add(3 * time.Second); n.times(mark) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return 0, fmt.Errorf("the request did not come to the worker")
		}
	}
	if streamed {
		if _, err := c.ReadHead(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	c.Close()
	for end := began.Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if at, ok := n.left(mark); ok {
			return at.Sub(began), nil
		}
	}
	return time.Since(began), nil
}

// soonGone is the mark of a client that leaves, at the 99th percentile.
const soonGone = 5 * time.Millisecond

// checkGone lets clients leave through the daemon and, in turn with them, through a plain relay in a process of its
// own. The machine stops any process now and then; the relay shows how often that alone takes more than 5 ms. At most 1
// % more of the daemon's may: on a machine with nothing else to do that is the p99. If the mark is missed after a
// round, there are more, ten at most, judged together with those before.
func checkGone(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(1, "", "")
	if err != nil {
		return verdict{}, err
	}
	relay, err := l.relayProc(nodes[0].addr)
	if err != nil {
		return verdict{}, err
	}
	figure, ok := "", true
	for _, streamed := range []bool{false, true} {
		var ours, plain []time.Duration
		passed := false
		for round := 0; round < 10 && !passed && l.ctx.Err() == nil; round++ {
			for range pick(l, 100, 200) {
				for addr, took := range map[string]*[]time.Duration{r.Addr: &ours, relay.Addr: &plain} {
					d, err := leave(addr, nodes[0], streamed)
					if err != nil {
						return verdict{}, err
					}
					*took = append(*took, d)
				}
			}
			passed = over(ours, soonGone) <= over(plain, soonGone)+.01
		}
		ok = ok && passed
		figure += fmt.Sprintf("%s: p50 %s, p99 %s, longest %s, over 5 ms %.1f %% of %d (a plain relay beside it: p99 "+
			"%s, %.1f %%); ",
			map[bool]string{false: "prefill", true: "stream"}[streamed], ms(wire.Quantile(ours, .5)), ms(wire.Quantile(ours,
				.99)),
			ms(wire.Quantile(ours, 1)), over(ours, soonGone)*100, len(ours), ms(wire.Quantile(plain, .99)), over(plain,
				soonGone)*100)
	}
	began := time.Now()
	free := rig.Eventually(250*time.Millisecond,
		func() bool { n, err := r.metric("warmpath_worker_in_flight"); return err == nil && n == 0 })
	return say(ok && free, "%sin flight 0 %v after %s", figure, free, ms(time.Since(began)))
}

// over returns the share that took longer than the mark.
func over(took []time.Duration, mark time.Duration) float64 {
	n := 0
	for _, d := range took {
		if d > mark {
			n++
		}
	}
	return float64(n) / float64(max(1, len(took)))
}

// checkPoison aborts streams at a random event, by FIN and by RST, while workers break some themselves, and reads whole
// answers in between: on whatever connection they travel, they must be their own.
func checkPoison(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(4, "", "")
	if err != nil {
		return verdict{}, err
	}
	n := pick(l, int64(10_000), 100_000)
	var aborted, whole, failed, poisoned, brokeOff atomic.Int64
	var why sync.Map
	var all sync.WaitGroup
	for range 48 {
		all.Go(func() {
			c := &wire.Client{Addr: r.Addr}
			defer c.Close()
			for i := 0; aborted.Load() < n && l.ctx.Err() == nil; i++ {
				mark := newMark()
				if i%8 != 0 {
					s := abort(r.Addr, mark)
					aborted.Add(1)
					if s.foreign != "" {
						poisoned.Add(1)
					}
					if s.errored {
						brokeOff.Add(1)
					}
					continue
				}
				a := c.Do(plain(mark, ""), true)
				whole.Add(1)
				if f := foreign(a.Body, mark); f != "" {
					poisoned.Add(1)
				} else if !good(a, mark) {
					failed.Add(1)
					why.Store(fmt.Sprintf("%d %v %.100s", a.Status, a.Err, a.Body), true)
				}
			}
		})
	}
	// Now and then a worker breaks streams, but never plain answers: those must all come.
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for i := 0; ; i++ {
		select {
		case <-done:
			var reasons []string
			why.Range(func(k, _ any) bool { reasons = append(reasons, k.(string)); return true })
			return say(poisoned.Load() == 0 && failed.Load() == 0 && aborted.Load() >= n,
				"%d poisoned of %d aborted streams (%d of them broken by the worker) and %d answers in between, %d of which "+
					"failed: %s",
				poisoned.Load(), aborted.Load(), brokeOff.Load(), whole.Load(), failed.Load(), some(reasons))
		case <-time.After(100 * time.Millisecond):
		}
		for k, d := range nodes {
			d.set("")
			if k == i%8 {
				d.set([]string{"streams-cut", "streams-cut-reset"}[i/8%2])
			}
		}
	}
}

// abort begins a stream and leaves it after 0 to 5 of its 6 events.
func abort(addr, mark string) seen {
	stop := rand.IntN(6)
	request := streaming(mark, 6, 0, "")
	if rand.IntN(2) == 0 {
		request = streaming(mark, 6, 2*time.Millisecond, "")
	}
	if stop == 0 {
		c, err := wire.Dial(addr)
		if err == nil {
			c.Write(request)
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
			c.Reset()
		}
		return seen{err: err}
	}
	return watch(addr, request, mark, func(c *wire.Conn, s *seen) {
		if s.events >= stop {
			if rand.IntN(8) == 0 {
				c.Close()
			} else {
				c.Reset() // leaves no port waiting
			}
		}
	})
}

// stale sends bursts of 16 requests, so that as many connections lie idle, for about the time after which the worker
// closes them, and counts those that failed. Clients out of step would keep a few connections too warm to be closed.
func stale(l *lab, addr string, pause time.Duration) (sent, failed int64) {
	var n, bad atomic.Int64
	wire.Closed(l.ctx, addr, 16, pick(l, 4*time.Second, 15*time.Second), func(c *wire.Client, _ int) {
		period := pause + 2*time.Millisecond
		next := time.Now().Truncate(period).Add(period)
		time.Sleep(time.Until(next) + time.Duration(rand.IntN(8000))*time.Microsecond)
		mark := newMark()
		n.Add(1)
		if a := c.Do(plain(mark, ""), true); !good(a, mark) {
			bad.Add(1)
		}
	})
	return n.Load(), bad.Load()
}

func checkStale(l *lab) (verdict, error) {
	const idle = 50 * time.Millisecond
	n, err := l.startNode(&node{Worker: wire.Worker{IdleClose: idle}})
	if err != nil {
		return verdict{}, err
	}
	r, err := l.inFrontOf("", "", n)
	if err != nil {
		return verdict{}, err
	}
	sent, failed := stale(l, r.Addr, idle)
	l.peers([]string{n.addr}, func(addr string) string {
		sent, failed := stale(l, addr, idle)
		return fmt.Sprintf("%d of %d failed", failed, sent)
	})
	return say(failed == 0, "%d of %d failed", failed, sent)
}
