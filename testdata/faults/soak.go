package main

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
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

// soakBlocks is the KV cache of each worker, by its metrics: 32,768 tokens. The router's index fills up to what the
// workers can hold; here it is full after some seconds, so that what grows in the second half is no filling.
const soakBlocks = 2048

// flatShare is by how much the memory may grow in the second half of a soak.
const flatShare = .05

func soakCheck(d time.Duration) check {
	return check{name: "soak", what: fmt.Sprintf("%v at 70 %% load with random faults", d),
		pass: fmt.Sprintf("memory flat (second half grows by less than %.0f %%), in flight 0, requests in = answered + "+
			"aborted", 100*flatShare),
		run: func(l *lab) (verdict, error) { return soak(l, d) }}
}

// soak loads a fleet for d. Memory is judged over the second half. If it grew by more than the mark, the soak goes on
// for as long again, twice at most, and is judged over the second half of the whole: buffers that a burst of faults
// has made come to an end, a leak goes on.
func soak(l *lab, d time.Duration) (verdict, error) {
	var nodes []*node
	for range 4 {
		n, err := l.startNode(&node{slots: make(chan struct{}, soakSlots), blocks: soakBlocks})
		if err != nil {
			return verdict{}, err
		}
		nodes = append(nodes, n)
	}
	r, err := l.inFrontOf("", "strategy = \"prefixaware\"\nhealth_interval = \"300ms\"\nfirst_byte_retry = "+
		"\"1s\"\nstream_timeout = \"1s\"\n", nodes...)
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
	m := watchMemory(r)
	t := &tally{}
	g := growth{}
	for range 3 {
		t.play(l, r.Addr, d)
		g = grown(m.seen())
		if g.share() <= flatShare || l.ctx.Err() != nil {
			break
		}
	}
	m.stop()
	close(quit)
	<-faultsOver
	free := eventually(15*time.Second, func() bool {
		n, err := r.metric("warmpath_worker_in_flight")
		return err == nil && n == 0
	})
	now, err := r.metric("warmpath_requests_total")
	if err != nil {
		return verdict{}, err
	}
	in := t.sent.Load()
	balanced := int64(now-counted) == in
	return say(free && balanced && g.share() <= flatShare && t.foreign.Load() == 0 && t.wrong.Load() == 0,
		"%d requests in, %.0f counted by the router; client saw %d answered, %d refused or broken, %d aborted by "+
			"itself, %d foreign, %d with other bytes than were sent; %s; in flight 0 %v",
		in, now-counted, t.good.Load(), t.bad.Load(), t.left.Load(), t.foreign.Load(), t.wrong.Load(), g, free)
}

// memory samples what a daemon holds, in MB, once a second.
type memory struct {
	mu      sync.Mutex // guards samples
	samples []float64
	quit    chan struct{}
}

func watchMemory(r *router) *memory {
	m := &memory{quit: make(chan struct{})}
	go func() {
		for {
			select {
			case <-m.quit:
				return
			case <-time.After(time.Second):
				m.mu.Lock()
				m.samples = append(m.samples, float64(r.RSS())/(1<<20))
				m.mu.Unlock()
			}
		}
	}()
	return m
}

func (m *memory) stop() { close(m.quit) }

func (m *memory) seen() []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.samples)
}

// growth is the result of the second half of some samples.
type growth struct {
	quarters [4]float64 // what was held after each
	second   float64    // by the line through the second half
	mean     float64    // of the second half
}

func grown(samples []float64) (g growth) {
	if len(samples) < 4 {
		return growth{}
	}
	for i := range g.quarters {
		g.quarters[i] = samples[(i+1)*len(samples)/4-1]
	}
	half := samples[len(samples)/2:]
	g.second = slope(half) * float64(len(half))
	for _, s := range half {
		g.mean += s / float64(len(half))
	}
	return g
}

// share is the growth over the mean; of no samples it is above every mark.
func (g growth) share() float64 {
	if g.mean == 0 {
		return math.Inf(1)
	}
	return g.second / g.mean
}

func (g growth) String() string {
	return fmt.Sprintf("memory %.0f MB after a quarter, %.0f a half, %.0f three, %.0f at the end, second half grew "+
		"by %.2f MB (%.1f %%)",
		g.quarters[0], g.quarters[1], g.quarters[2], g.quarters[3], g.second, 100*g.share())
}

// tally is what the soak's clients saw. wrong are answers that came whole, and are not the worker's bytes.
type tally struct{ sent, good, bad, left, foreign, wrong atomic.Int64 }

// soakEvents is how many events each of the soak's streams has.
const soakEvents = 8

// play sends plain requests, each on a connection that is kept or two in one write, streams, and streams that are left
// half-way.
func (t *tally) play(l *lab, addr string, d time.Duration) {
	wire.Open(l.ctx, addr, soakRate, 512, d, func(c *wire.Client, i int, _ time.Time) {
		mark := newMark()
		switch i % 10 {
		case 0, 1, 2, 3:
			t.sent.Add(1)
			s := watch(addr, streaming(mark, soakEvents, 5*time.Millisecond, ""), mark, nil)
			t.count(s.fine(), s.foreign != "", s.events == soakEvents)
		case 4:
			t.sent.Add(1)
			watch(addr, streaming(mark, soakEvents, 5*time.Millisecond, ""), mark, func(c *wire.Conn, s *seen) {
				if s.events > 2 {
					c.Reset()
				}
			})
			t.left.Add(1)
		case 5:
			t.pipeline(addr, mark, newMark())
		default:
			t.sent.Add(1)
			t.answered(c.Do(plain(mark, "&hold=40"), true), mark)
		}
	})
}

// pipeline sends two requests in one write. The second counts once the first has its whole answer: a router may close
// after one that failed.
func (t *tally) pipeline(addr, first, second string) {
	c, err := wire.Dial(addr)
	if err != nil {
		return
	}
	defer c.Close()
	_, err = c.Write(slices.Concat(plain(first, "&hold=20"), plain(second, "&hold=20")))
	for _, mark := range []string{first, second} {
		t.sent.Add(1)
		a := wire.Answer{Err: err}
		if err == nil {
			a = c.ReadAnswer(true)
		}
		t.answered(a, mark)
		if a.Err != nil || a.Close {
			return
		}
	}
}

func (t *tally) answered(a wire.Answer, mark string) {
	t.count(good(a, mark), foreign(a.Body, mark) != "", bytes.Contains(a.Body, []byte(wire.Reply)))
}

func (t *tally) count(good, foreign, whole bool) {
	if good {
		t.good.Add(1)
	} else {
		t.bad.Add(1)
	}
	if foreign {
		t.foreign.Add(1)
	}
	if good && !whole {
		t.wrong.Add(1)
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
