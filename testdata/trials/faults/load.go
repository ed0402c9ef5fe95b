package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
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
	r, err := l.inFrontOf("max_in_flight = 16\n", poolKeys+"max_in_flight = 8\nqueue.max_requests = 0\n", nodes...)
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
	// Rounds at the peak and rounds above it take turns, and their medians are judged: so what else the machine does in
	// one of them does not count.
	d := pick(l, 1500*time.Millisecond, 3*time.Second)
	var early, asked int
	var peaks, unders, earlies []float64
	total := int64(0)
	for range 3 {
		began := time.Now()
		wire.Closed(l.ctx, r.Addr, 2*slots, d, func(c *wire.Client, _ int) { one(c) })
		peak := float64(goodOnes.Swap(0)) / time.Since(began).Seconds()
		refused.Store(0)
		began = time.Now()
		var beside sync.WaitGroup
		beside.Go(func() {
			time.Sleep(d / 4)
			e, t := earlyRefusals(r.Addr, began.Add(d))
			early, asked = early+e, asked+t
			earlies = append(earlies, float64(e)/float64(max(1, t)))
		})
		wire.Open(l.ctx, r.Addr, 4*peak, 512, d, func(c *wire.Client, _ int, _ time.Time) { one(c) })
		unders = append(unders, float64(goodOnes.Load())/time.Since(began).Seconds()/peak)
		peaks = append(peaks, peak)
		beside.Wait()
		goodOnes.Store(0)
		total += refused.Swap(0)
	}
	most := max(nodes[0].most.Load(), nodes[1].most.Load())
	under := wire.Quantile(unders, .5)
	return say(most <= slots && under >= .9 && wrong.Load() == 0 && total > 0 && asked >= 10 &&
		wire.Quantile(earlies, .5) >= .8,
		"goodput %.0f %% of the peak of %.0f/s (medians of 3 rounds), %d refused, %d with something else than 429 and "+
			"Retry-After; %d of %d refused before the body was sent; at most %d at a time at a worker (limit %d)",
		under*100, wire.Quantile(peaks, .5), total, wrong.Load(), early, asked, most, slots)
}

// earlyRefusals sends headers that promise a body, no body, until the overload ends. It counts the answers 429, and of
// these the early ones: a request that is not answered in 150 ms gets its body, and may be refused late. One that comes
// when a place is free is let in, which is no refusal: at four times the capacity that is every fourth.
func earlyRefusals(addr string, until time.Time) (early, refused int) {
	for refused < 30 && time.Now().Before(until) {
		c, err := wire.Dial(addr)
		if err != nil {
			continue
		}
		body := chat("late", false)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			chatPath, len(body))
		c.SetReadDeadline(time.Now().Add(150 * time.Millisecond))
		_, late := c.R.Peek(1)
		if late != nil {
			c.Write([]byte(body))
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
		}
		h, err := c.ReadHead()
		c.Close()
		if err != nil || h.Status != 429 {
			continue
		}
		refused++
		if late == nil {
			early++
		}
	}
	return early, refused
}

func checkHalfSent(l *lab) (verdict, error) {
	r, _, err := l.inFront(1, "read_timeout = \"2s\"\n", "")
	if err != nil {
		return verdict{}, err
	}
	var longest atomic.Int64
	var all sync.WaitGroup
	for _, start := range []string{"P", "POST / HTTP/1.1\r\nHost: r\r\nX-A",
		"POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 10\r\n\r\n123"} {
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
	return say(d <= 3*time.Second, "all closed after %s at most", ms(d))
}
