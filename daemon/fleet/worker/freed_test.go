package worker

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// busy fills a pool of 1 worker with n requests at second at.
func (p *Pool) busy(n int, talks bool, at float64) []*Ticket {
	all := make([]*Ticket, n)
	for i := range all {
		all[i] = p.send(0, Dispatch{Talks: talks}, at)
	}
	return all
}

// told asks n times at second at and returns the least and the most seconds.
func (p *Pool) told(n int, at float64) (low, high int) {
	low = math.MaxInt
	for range n {
		s := p.RetryAfter(p.after(at))
		low, high = min(low, s), max(high, s)
	}
	return low, high
}

// TestRetryAfter is the table of what clients are told that find no place: hold places, held since second 0, after
// ended answers of that many seconds.
func TestRetryAfter(t *testing.T) {
	f := func(what string, hold int, lasted float64, talks bool, clients int, at float64, low, high int) {
		t.Helper()
		p := upPool(t, 1)
		for _, k := range p.busy(32, talks, 0) {
			k.End(p.after(lasted), judge.Outcome{Kind: judge.Answered})
		}
		began := 1000 + lasted // what was freed of late is forgotten by then
		p.busy(hold, talks, began)
		if l, h := p.told(clients, began+at); l < low || h > high {
			t.Errorf("%s: told %d to %d s; want %d to %d", what, l, h, low, high)
		}
	}
	f("answers of 2 s", 4, 2, true, 1, 1, 3, 4)
	f("answers of 20 s at 2 places", 2, 20, true, 1, 0, 10, 13)
	f("the same, and ten clients: each a place of its own, up to an answer's time", 2, 20, true, 10, 0, 10, 27)
	f("answers of 200 s at 1 place", 1, 200, true, 1, 0, 45, 59)
	f("they last longer than those before", 1, 2, true, 1, 30, 30, 40)
	f("a hundred clients for places of 2 s", 8, 2, true, 100, 0, 3, 4)
	f("embeddings", 4, .02, false, 10, 0, 1, 2)
	f("long transcriptions", 1, 10, false, 1, 0, 10, 13)
	f("nobody was ever refused for so long", 1, 5000, true, 50, 4000, 45, 59)
}

// TestRetryAfterByTurn: each client is told the place behind that of the one before, up to an answer's time. Time that
// passes serves the clients that were told.
func TestRetryAfterByTurn(t *testing.T) {
	p := upPool(t, 1)
	for _, k := range p.busy(32, true, 0) {
		k.End(p.after(40), judge.Outcome{Kind: judge.Answered})
	}
	p.busy(4, true, 1000)
	for i, at := range []float64{1000, 1000, 1000, 1000, 1000, 1025} {
		want := []int{10, 20, 30, 40, 40, 25}[i]
		if got := p.RetryAfter(p.after(at)); got < want || got > want+want/3 {
			t.Errorf("client %d at second %v: told %d s; want %d and up to a third more", i+1, at, got, want)
		}
	}
}

// TestRetryAfterByPlacesFreed: of two kinds of answers the one that ends soon frees the next place.
func TestRetryAfterByPlacesFreed(t *testing.T) {
	p := upPool(t, 1)
	p.busy(4, true, 0) // these last
	for i := range 600 {
		for _, k := range p.busy(4, true, float64(i)) {
			k.End(p.after(float64(i)+1), judge.Outcome{Kind: judge.Answered})
		}
	}
	p.busy(4, true, 600)
	if low, high := p.told(3, 600); low < 3 || high > 4 {
		t.Errorf("four places a second are freed: told %d to %d s; want 3 or 4", low, high)
	}
	if low, _ := p.told(1, 700); low < 20 {
		t.Errorf("none has been freed for 100 s: told %d s", low)
	}
}

// TestRetryAfterWithoutWorkers: the longer nobody is up, the later a client is to come back. A request that finds a
// worker ends that.
func TestRetryAfterWithoutWorkers(t *testing.T) {
	p := upPool(t, 1)
	p.kill(0, 1)
	f := func(at float64, low, high int) {
		t.Helper()
		if s := p.RetryAfter(p.after(at)); s < low || s > high {
			t.Errorf("second %v: told %d s; want %d to %d", at, s, low, high)
		}
	}
	f(2, 3, 4)
	f(10, 3, 4)
	f(82, 20, 26)
	f(5000, 45, 59)
	p.heal(0, 5001)
	p.send(0, Dispatch{Talks: true}, 5002).End(p.after(5003), judge.Outcome{Kind: judge.Answered})
	f(5004, 3, 4)
}

// TestRetryAfterCountsGoodEnds: a worker that refuses at once does not make answers look short.
func TestRetryAfterCountsGoodEnds(t *testing.T) {
	p := upPool(t, 1)
	for _, k := range p.busy(32, true, 0) {
		k.End(p.after(20), judge.Outcome{Kind: judge.Answered})
	}
	for i := range 200 {
		p.send(0, Dispatch{Talks: true}, 300+float64(i)/100).End(p.after(300+float64(i)/100), judge.Outcome{Kind: judge.Failed})
	}
	p.busy(1, true, 303)
	if low, _ := p.told(1, 303); low < 18 {
		t.Errorf("told %d s after quick failures; want some 20", low)
	}
}

// TestRetryAfterIsSpread: clients that are told at once do not all come back at once, and the parts are even.
func TestRetryAfterIsSpread(t *testing.T) {
	p := upPool(t, 1)
	p.busy(1, true, 0)
	n := map[int]int{}
	for range 900 {
		n[p.RetryAfter(p.after(5000))]++
	}
	for s := 45; s < 60; s++ {
		if n[s] < 50 || n[s] > 70 {
			t.Errorf("%d of 900 clients are told %d s; want about 60", n[s], s)
		}
	}
	if len(n) != 15 {
		t.Errorf("told %v", n)
	}
}

// TestHeldPlacesAddUp: whatever ends how, nothing is left in the count.
func TestHeldPlacesAddUp(t *testing.T) {
	p := upPool(t, 2)
	var all []*Ticket
	for i := range 50 {
		all = append(all, p.send(i%2, Dispatch{Talks: i%3 > 0}, float64(i)/7))
	}
	p.kill(0, 8)
	for i, k := range all {
		k.End(p.after(9), judge.Outcome{Kind: judge.Kind(i % 6)})
		k.End(p.after(9), judge.Outcome{Kind: judge.Answered})
	}
	if f := fmt.Sprintf("%+v", p.fleet.places); !strings.HasPrefix(f, "{held:0 began:0 talking:0 ") {
		t.Error(f)
	}
}
