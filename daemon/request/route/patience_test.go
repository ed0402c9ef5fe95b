package route

import (
	"testing"
	"time"
)

// TestPatience: the limit of a prefill goes by what others took, and how much that varied, by the measure that fits best.
func TestPatience(t *testing.T) {
	var p patience
	at := func(queue, alone float64) *[measures]float64 { return &[measures]float64{queue + alone, alone, 1} }
	f := func(what string, least, most float64, by *[measures]float64) {
		t.Helper()
		if s, known := p.limit(by); s < least || s > most || !known {
			t.Errorf("%s: %v s, known %v; want %v to %v", what, s, known, least, most)
		}
	}
	if s, known := p.limit(at(1, 2)); s != 9 || known {
		t.Errorf("at first %v s, known %v; want three times what is expected", s, known)
	}
	p.learn(2, at(0, 2))
	f("after one", 6, 6, at(0, 2))
	for i := range 40 { // an engine that computes one prompt after the other
		queue, alone := float64(i%5), .1+float64(i%3)
		p.learn(queue+alone, at(queue, alone))
	}
	f("in turn, behind others", 10, 10.5, at(9, 1))
	f("in turn, a long one", 20, 21, at(0, 20))
	p = patience{}
	for i := range 40 { // many side by side, by their length
		queue, alone := float64(i%5), .1+float64(i%3)
		p.learn(2*alone, at(queue, alone))
	}
	f("side by side", 2, 2.2, at(9, 1))
	for i := range 60 { // all take as long
		p.learn(.3, at(float64(i%5), .1+float64(i%3)))
	}
	f("as long as each other", .3, .32, at(9, 5))
	p.learn(.6, at(1, 1))
	f("one takes twice as long", .6, .7, at(9, 5))
}

// TestPrefilling: a prompt that cannot go on is waited for while nothing is known, for half of the time that its request
// has. One that was given up counts for no more than twice the limit.
func TestPrefilling(t *testing.T) {
	x := Prefilling{pool: new(Pool), Limit: time.Second, by: [measures]float64{1, .5, 1}, blind: true}
	for timeout, want := range map[time.Duration]time.Duration{time.Minute: blindPatience, 8 * time.Second: 4 * time.Second,
		time.Second: time.Second} {
		x.Limit = time.Second
		x.BeSure(timeout)
		if x.Limit != want {
			t.Errorf("header_timeout %v: %v; want %v", timeout, x.Limit, want)
		}
	}
	x.Limit, x.blind = time.Second, false
	x.BeSure(time.Minute)
	x.Took(time.Minute)
	if by := x.pool.patience.by; by[0].mean != 2 || by[1].mean != 4 || x.Limit != time.Second {
		t.Errorf("limit %v, means %+v; want 2 s of what took a minute", x.Limit, by)
	}
}
