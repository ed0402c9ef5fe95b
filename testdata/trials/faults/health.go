package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func checkStorm(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(4, "", "")
	if err != nil {
		return verdict{}, err
	}
	posts := func() (n int64) {
		for _, d := range nodes {
			n += d.posts.Load()
		}
		return n
	}
	for _, d := range nodes {
		d.set("503")
	}
	relay, err := l.relayProc(nodes[0].addr)
	if err != nil {
		return verdict{}, err
	}
	const rate, soon = 1000, 50 * time.Millisecond
	var wrong atomic.Int64
	ask := func(addr string, d time.Duration, right func(wire.Answer) bool) []time.Duration {
		took := make([]time.Duration, int(rate*d.Seconds()))
		wire.Open(l.ctx, addr, rate, 128, d, func(c *wire.Client, i int, due time.Time) {
			a := c.Do(plain(newMark(), ""), false)
			took[i] = time.Since(due)
			if !right(a) {
				wrong.Add(1)
			}
		})
		return took
	}
	// A plain relay is asked before and after: how often the machine alone takes over 50 ms. At most 1 % more of the
	// daemon's answers may. If they are more, it is all done again, three times at most, and judged together.
	d := pick(l, 2*time.Second, 4*time.Second)
	var ours, plain []time.Duration
	attempts, limit, passed := int64(0), 0.0, false
	for round := 0; round < 3 && !passed && l.ctx.Err() == nil; round++ {
		refused := func(a wire.Answer) bool { return a.Err == nil && a.Status == 503 }
		plain = append(plain, ask(relay.Addr, d/2, refused)...)
		before := posts()
		ours = append(ours, ask(r.Addr, d, func(a wire.Answer) bool { return refused(a) && a.RetryAfter })...)
		attempts += posts() - before
		limit += 1.2*rate*d.Seconds() + 10*d.Seconds()
		plain = append(plain, ask(relay.Addr, d/2, refused)...)
		passed = over(ours, soon) <= over(plain, soon)+.01
	}
	return say(float64(attempts) <= limit && wrong.Load() == 0 && passed,
		"%d attempts for %d requests (limit %.0f), %d without 503 and Retry-After, p99 %s, longest %s, over 50 ms %.1f "+
			"%% (a plain relay beside it: p99 %s, %.1f %%)",
		attempts, len(ours), limit, wrong.Load(), ms(wire.Quantile(ours, .99)), ms(wire.Quantile(ours, 1)), over(ours,
			soon)*100,
		ms(wire.Quantile(plain, .99)), over(plain, soon)*100)
}

// steady sends rate requests a second until the returned function is called, which returns how many failed.
func steady(l *lab, addr string, rate float64, query string) (stop func() (sent, failed int64)) {
	var sent, failed atomic.Int64
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			wire.Open(l.ctx, addr, rate, 64, 500*time.Millisecond, func(c *wire.Client, _ int, _ time.Time) {
				mark := newMark()
				sent.Add(1)
				if a := c.Do(plain(mark, query), true); !good(a, mark) {
					if failed.Add(1) <= 3 {
						fmt.Fprintf(os.Stderr, "faults: a steady request failed: %d %v %.200s\n", a.Status, a.Err, a.Body)
					}
				}
			})
		}
	}()
	return func() (int64, int64) {
		close(quit)
		<-done
		return sent.Load(), failed.Load()
	}
}

func checkEject(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(10, "", "slow_start = \"4s\"\n")
	if err != nil {
		return verdict{}, err
	}
	const rate = 300
	stop := steady(l, r.Addr, rate, "&hold=5")
	defer stop()
	ill := nodes[3]
	time.Sleep(time.Second)
	before := ill.posts.Load()
	ill.set("500")
	time.Sleep(3 * time.Second)
	asked := ill.posts.Load() - before
	ill.set("")
	began, at := time.Now(), ill.posts.Load()
	// The first request after a back-off is a probe; used again means more than that.
	back := rig.Eventually(10*time.Second, func() bool { return ill.posts.Load() > at+1 })
	again := time.Since(began)
	burst := int64(0)
	for range 8 {
		was := ill.posts.Load()
		time.Sleep(500 * time.Millisecond)
		burst = max(burst, ill.posts.Load()-was)
	}
	share := int64(rate / 10 / 2)
	// 5 in a row, those in flight beside them, and one probe a back-off.
	return say(asked <= 25 && back && again <= 2*time.Second && burst <= 2*share,
		"asked %d times in 3 s of illness; used again after %s; at most %d requests in half a second, its share is %d",
		asked, ms(again), burst, share)
}

func checkHalf(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(10, "", "")
	if err != nil {
		return verdict{}, err
	}
	stop := steady(l, r.Addr, 300, "")
	defer stop()
	for _, d := range nodes[:8] {
		d.set("500")
	}
	time.Sleep(2 * time.Second)
	var before [10]int64
	for i, d := range nodes {
		before[i] = d.posts.Load()
	}
	time.Sleep(time.Second)
	used := 0
	for i, d := range nodes {
		if d.posts.Load()-before[i] >= 3 { // more than a probe
			used++
		}
	}
	return say(used >= 5, "%d of 10 still get requests", used)
}

func checkPanic(l *lab) (verdict, error) {
	var answered, refused int
	for _, on := range []bool{true, false} {
		keys := "panic = false\n"
		if on {
			keys = "panic = true\n"
		}
		r, nodes, err := l.inFront(2, "", keys)
		if err != nil {
			return verdict{}, err
		}
		for _, d := range nodes {
			d.setHealth("503")
		}
		down := rig.Eventually(5*time.Second, func() bool {
			n, err := r.metric("warmpath_worker_up")
			return err == nil && n == 0
		})
		for range 20 {
			mark := newMark()
			a := wire.Once(r.Addr, plain(mark, ""))
			if on && good(a, mark) {
				answered++
			}
			if !on && a.Status == 503 && a.RetryAfter && down {
				refused++
			}
		}
	}
	return say(answered == 20 && refused == 20,
		"with panic %d of 20 answered, without it %d of 20 got 503 and Retry-After", answered, refused)
}

func checkSlowHealth(l *lab) (verdict, error) {
	r, nodes, err := l.inFront(2, "", "")
	if err != nil {
		return verdict{}, err
	}
	stop := steady(l, r.Addr, 40, "&chunks=20&gap=20")
	d := pick(l, 10*time.Second, 60*time.Second)
	nodes[0].setHealth("slow")
	down := 0
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if up, err := r.metric("warmpath_worker_up"); err != nil || up < 2 {
			down++
		}
	}
	before := nodes[0].posts.Load()
	time.Sleep(time.Second)
	used := nodes[0].posts.Load() - before
	nodes[0].setHealth("")
	sent, failed := stop()
	return say(down == 0 && used > 0 && failed == 0,
		"%v of slow /health: seen down %d times; %d requests in the last second; %d of %d failed",
		d, down, used, failed, sent)
}
