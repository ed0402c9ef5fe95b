package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/databench/wire"
)

// soakFaults are what befalls a worker for a second at a time.
var soakFaults = append([]string{"500", "503", "silent", "drain", "die", "ill"}, brokenAnswers...)

// The soak's fleet: 4 workers with 8 slots of 40 ms are 800 requests/s; streams take 8 x 5 ms, too.
const (
	soakSlots = 8
	soakRate  = .7 * 4 * soakSlots / .040
)

func soakCheck(d time.Duration) check {
	return check{"soak", fmt.Sprintf("%v at 70 %% load with random faults", d),
		fmt.Sprintf("memory flat (second half grows by less than %.0f %% or %.0f MB), in flight 0, requests in = answered + aborted", 100*flatShare(d), flatMB(d)),
		func(l *lab) (verdict, error) { return soak(l, d) }}
}

// In a few minutes the index and the pools of buffers are still filling: what may grow in the second half is more.
func flatShare(d time.Duration) float64 {
	return map[bool]float64{true: .2, false: .05}[d < 10*time.Minute]
}
func flatMB(d time.Duration) float64 { return map[bool]float64{true: 24, false: 8}[d < 10*time.Minute] }

func soak(l *lab, d time.Duration) (verdict, error) {
	var nodes []*node
	for range 4 {
		n, err := l.startNode(&node{slots: make(chan struct{}, soakSlots)})
		if err != nil {
			return verdict{}, err
		}
		nodes = append(nodes, n)
	}
	r, err := l.inFrontOf("", "strategy = \"prefixaware\"\nhealth_interval = \"300ms\"\nfirst_byte_retry = \"1s\"\nstream_timeout = \"1s\"\n", nodes...)
	if err != nil {
		return verdict{}, err
	}
	counted, err := r.metric("warmpath_requests_total")
	if err != nil {
		return verdict{}, err
	}
	quit := make(chan struct{})
	faultsOver := make(chan struct{})
	go func() { defer close(faultsOver); harass(nodes, quit) }()
	var samples []float64 // RSS in MB, one a second
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Second):
				samples = append(samples, float64(r.RSS())/(1<<20))
			}
		}
	}()
	t := play(l, r.Addr, d)
	close(quit)
	<-sampled
	<-faultsOver
	free := eventually(15*time.Second, func() bool { n, err := r.metric("warmpath_worker_in_flight"); return err == nil && n == 0 })
	now, err := r.metric("warmpath_requests_total")
	if err != nil {
		return verdict{}, err
	}
	half := samples[len(samples)/2:]
	growth := slope(half) * float64(len(half))
	mean := 0.0
	for _, s := range half {
		mean += s / float64(len(half))
	}
	in := t.sent.Load()
	balanced := int64(now-counted) == in
	return say(free && balanced && growth <= max(flatMB(d), flatShare(d)*mean) && t.foreign.Load() == 0,
		"%d requests in, %.0f counted by the router; client saw %d answered, %d refused or broken, %d aborted by itself, %d foreign; memory %.0f MB after a quarter, %.0f a half, %.0f three, %.0f at the end, second half grew by %.2f MB; in flight 0 %v",
		in, now-counted, t.good.Load(), t.bad.Load(), t.left.Load(), t.foreign.Load(),
		samples[len(samples)/4], half[0], half[len(half)/2], half[len(half)-1], growth, free)
}

// tally is what the soak's clients saw.
type tally struct{ sent, good, bad, left, foreign atomic.Int64 }

// play sends plain requests, streams and streams that are left half-way.
func play(l *lab, addr string, d time.Duration) *tally {
	t := &tally{}
	wire.Open(l.ctx, addr, soakRate, 512, d, func(c *wire.Client, i int, _ time.Time) {
		mark := newMark()
		t.sent.Add(1)
		switch i % 10 {
		case 0, 1, 2, 3:
			s := watch(addr, streaming(mark, 8, 5*time.Millisecond, ""), mark, nil)
			t.count(s.fine(), s.foreign != "")
		case 4:
			watch(addr, streaming(mark, 8, 5*time.Millisecond, ""), mark, func(c *wire.Conn, s *seen) {
				if s.events > 2 {
					c.Reset()
				}
			})
			t.left.Add(1)
		default:
			a := c.Do(plain(mark, "&hold=40"), true)
			t.count(good(a, mark), foreign(a.Body, mark) != "")
		}
	})
	return t
}

func (t *tally) count(good, foreign bool) {
	if good {
		t.good.Add(1)
	} else {
		t.bad.Add(1)
	}
	if foreign {
		t.foreign.Add(1)
	}
}

// harass lets one worker after the other fail for a second.
func harass(nodes []*node, quit chan struct{}) {
	for {
		n, fault := nodes[rand.IntN(len(nodes))], soakFaults[rand.IntN(len(soakFaults))]
		switch fault {
		case "die":
			n.Close()
		case "ill":
			n.setHealth("503")
		default:
			n.set(fault)
		}
		over := false
		select {
		case <-quit:
			over = true
		case <-time.After(time.Second):
		}
		n.set("")
		n.setHealth("")
		if fault == "die" {
			n.Start(n.addr)
		}
		if over {
			return
		}
		time.Sleep(time.Second)
	}
}

// slope is the least-squares slope of v, a step between two.
func slope(v []float64) float64 {
	n := float64(len(v))
	var sx, sy, sxx, sxy float64
	for i, y := range v {
		x := float64(i)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 2 {
		return 0
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

func linesOf(s string) iter.Seq[string] { return strings.SplitSeq(s, "\n") }
