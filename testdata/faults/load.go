package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/databench/wire"
)

func checkOverload(l *lab) (verdict, error) {
	const slots, hold = 8, 50 // of a node; two of them give 320 requests/s
	var nodes []*node
	for range 2 {
		n, err := l.startNode(&node{slots: make(chan struct{}, slots)})
		if err != nil {
			return verdict{}, err
		}
		nodes = append(nodes, n)
	}
	r, err := l.inFrontOf("max_in_flight = 16\n", poolKeys+"max_in_flight = 8\n", nodes...)
	if err != nil {
		return verdict{}, err
	}
	query := fmt.Sprintf("&hold=%d", hold)
	var goodOnes, refused, wrong atomic.Int64
	one := func(c *wire.Client) {
		mark := newMark()
		switch a := c.Do(plain(mark, query), true); {
		case good(a, mark):
			goodOnes.Add(1)
		case a.Err == nil && a.Status == 429 && a.RetryAfter:
			refused.Add(1)
		default:
			wrong.Add(1)
		}
	}
	d := pick(l, 3*time.Second, 6*time.Second)
	began := time.Now()
	wire.Closed(l.ctx, r.Addr, 2*slots, d, func(c *wire.Client, _ int) { one(c) })
	peak := float64(goodOnes.Swap(0)) / time.Since(began).Seconds()
	refused.Store(0)
	bodies := make(chan [2]int, 1)
	go func() {
		time.Sleep(d / 4)
		early, tried := earlyRefusals(r.Addr)
		bodies <- [2]int{early, tried}
	}()
	began = time.Now()
	wire.Open(l.ctx, r.Addr, 4*peak, 512, d, func(c *wire.Client, _ int, _ time.Time) { one(c) })
	under := float64(goodOnes.Load()) / time.Since(began).Seconds()
	b := <-bodies
	most := max(nodes[0].most.Load(), nodes[1].most.Load())
	return say(most <= slots && under >= .9*peak && wrong.Load() == 0 && refused.Load() > 0 && b[0]*10 >= b[1]*8,
		"goodput %.0f/s of %.0f/s at the peak (%.0f %%), %d refused, %d with something else than 429 and Retry-After; %d of %d refused before the body was sent; at most %d at a time at a worker (limit %d)",
		under, peak, under/peak*100, refused.Load(), wrong.Load(), b[0], b[1], most, slots)
}

// earlyRefusals sends headers that promise a body, no body, and counts the answers 429. One that is let in after all gets
// its body late.
func earlyRefusals(addr string) (early, tried int) {
	for tried = range 30 {
		c, err := wire.Dial(addr)
		if err != nil {
			continue
		}
		body := chat("late", false)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", chatPath, len(body))
		c.SetReadDeadline(time.Now().Add(150 * time.Millisecond))
		if _, err := c.R.Peek(1); err == nil {
			if h, err := c.ReadHead(); err == nil && h.Status == 429 {
				early++
			}
		} else {
			c.Write([]byte(body))
			c.ReadHead()
		}
		c.Close()
	}
	return early, tried + 1
}

// honest is the p99 of a client that does nothing wrong.
func honest(l *lab, addr string, d time.Duration) (p99 time.Duration, failed int64) {
	const rate = 100
	took := make([]time.Duration, int(rate*d.Seconds()))
	var bad atomic.Int64
	wire.Open(l.ctx, addr, rate, 32, d, func(c *wire.Client, i int, due time.Time) {
		mark := newMark()
		if a := c.Do(plain(mark, ""), true); !good(a, mark) {
			bad.Add(1)
		}
		took[i] = time.Since(due)
	})
	return wire.Quantile(took, .99), bad.Load()
}

func checkSlowloris(l *lab) (verdict, error) {
	r, _, err := l.inFront(2, "read_timeout = \"20s\"\n", "")
	if err != nil {
		return verdict{}, err
	}
	d := pick(l, 4*time.Second, 8*time.Second)
	before, _ := honest(l, r.Addr, d)
	quit := make(chan struct{})
	var all sync.WaitGroup
	defer func() { close(quit); all.Wait() }()

	rss := r.RSS()
	readers := pick(l, 50, 200)
	for range readers {
		all.Go(func() { slowReader(r.Addr, quit) })
	}
	quiet := func() bool { // the kernel's buffers are full: some MB a stream
		used := r.CPU()
		time.Sleep(500 * time.Millisecond)
		return r.CPU()-used < 30*time.Millisecond
	}
	eventually(20*time.Second, quiet)
	stuck := float64(r.RSS()-rss) / 1024 / float64(readers)

	n := pick(l, 2000, 5000)
	for i := range n {
		all.Go(func() { slowSender(r.Addr, i%20 == 0, quit) })
		if i%100 == 99 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	eventually(10*time.Second, quiet)
	during, failed := honest(l, r.Addr, d)
	ratio := float64(during) / float64(before)
	return say(ratio <= 3 && failed == 0 && stuck <= 128, "%d slow headers and bodies, %d slow readers: honest p99 %s before, %s during (%.2fx), %d failed; %.0f KiB a stuck stream",
		n, readers, ms(before), ms(during), ratio, failed, stuck)
}

// slowReader asks for a stream as fast as it goes and does not read.
func slowReader(addr string, quit chan struct{}) {
	c, err := wire.Dial(addr)
	if err != nil {
		return
	}
	defer c.Reset()
	c.Write(streaming(newMark(), 1_000_000, 0, "&pad=16000"))
	<-quit
}

// slowSender sends a byte of a header, or of a body, every two seconds.
func slowSender(addr string, body bool, quit chan struct{}) {
	c, err := wire.Dial(addr)
	if err != nil {
		return
	}
	defer c.Reset()
	c.Write([]byte("POST " + chatPath + " HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\n"))
	if body {
		c.Write([]byte("Content-Length: 1000000\r\n\r\n{"))
	}
	for {
		select {
		case <-quit:
			return
		case <-time.After(2 * time.Second):
		}
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
	}
}

func checkHalfSent(l *lab) (verdict, error) {
	r, _, err := l.inFront(1, "read_timeout = \"2s\"\n", "")
	if err != nil {
		return verdict{}, err
	}
	var longest atomic.Int64
	var all sync.WaitGroup
	for _, start := range []string{"P", "POST / HTTP/1.1\r\nHost: r\r\nX-A", "POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 10\r\n\r\n123"} {
		for _, drip := range []bool{false, true} { // a byte a second must not put it off for ever
			all.Go(func() {
				c, err := wire.Dial(r.Addr)
				if err != nil {
					return
				}
				defer c.Close()
				began := time.Now()
				c.Write([]byte(start))
				for time.Since(began) < 12*time.Second {
					c.SetReadDeadline(time.Now().Add(time.Second))
					_, err := c.R.ReadByte()
					if err != nil && !isNet(err) { // EOF
						break
					}
					if drip && err != nil && start != "P" && start[len(start)-1] == 'A' {
						c.Write([]byte("x"))
					}
				}
				for v := int64(time.Since(began)); ; {
					old := longest.Load()
					if v <= old || longest.CompareAndSwap(old, v) {
						break
					}
				}
			})
		}
	}
	all.Wait()
	d := time.Duration(longest.Load())
	return say(d <= 8*time.Second, "all closed after %s at most", ms(d))
}
