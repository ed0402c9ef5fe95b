package judge

import (
	"strings"
	"testing"
	"time"
)

// pairs are workers of two roles, at a time that each hand-over moves on by a second.
type pairs struct {
	of  map[byte]*Health
	now time.Duration
}

// play plays hand-overs from p, q to d, e, such as "pd+" and "qe-" for a lost one, and returns who is unpaired then.
func (x *pairs) play(all string) (unpaired string) {
	for step := range strings.FieldsSeq(all) {
		p, d := x.of[step[0]], x.of[step[1]]
		p.SentPaired(x.now)
		d.SentPaired(x.now)
		began := x.now
		x.now += time.Second
		if step[2] == '-' {
			LoseHandover(p, d, x.now)
			continue
		}
		p.HandOver(began, x.now)
		d.HandOver(began, x.now)
	}
	for _, w := range []byte("pqde") {
		if why, _ := x.of[w].Unpaired(); why != "" {
			unpaired += string(w)
		}
	}
	return unpaired
}

// TestWhoLosesHandovers: three losses in a row are blamed on the prefiller, or on the decoder if the prefiller has worked
// with another one meanwhile.
func TestWhoLosesHandovers(t *testing.T) {
	f := func(what, all, want string) *pairs {
		t.Helper()
		x := &pairs{of: map[byte]*Health{}, now: time.Second}
		for _, w := range []byte("pqde") {
			x.of[w] = new(Health)
		}
		if got := x.play(all); got != want {
			t.Errorf("%s: %q is not paired; want %q", what, got, want)
		}
		return x
	}
	f("two", "pd- pd-", "")
	f("a lone pair", "pd- pd- pd-", "p")
	f("one of two prefillers", "pd- qd+ pd- qd+ pd-", "p")
	f("one of two decoders", "pe+ pd- pe+ pd- pe+ pd-", "d")
	f("one of two decoders, two prefillers", "pd- qe+ qd- pe+ pd- qe+ qd- pe+ pd-", "d")
	f("none in a row", "pd- pd- pd+ pd- pd-", "")
	f("nothing works", "pd- qe- pe- qd- pd- qe-", "pq")
	f("and another decoder", "pd- pd- pd- qe+", "p")
	x := f("until one succeeds", "pd- pd- pd- pd+", "")
	if x.of['p'].IsUnpaired(x.now) {
		t.Error("it is still left out")
	}
	p := &Health{}
	LoseHandover(p, new(Health), sec(5))
	if p.HandOver(sec(4), sec(6)); p.handover.lost != 1 {
		t.Error("one that began before the first loss takes it back")
	}
}

// TestUnpairing: a worker is left out for 2 s, and twice as long after each trial that fails.
func TestUnpairing(t *testing.T) {
	p, d, now := &Health{}, &Health{}, sec(1)
	is := func(at float64, want BreakerState) {
		t.Helper()
		if got := p.PairBreaker(sec(at)); got != want {
			t.Errorf("after %v s: %v; want %v", at, got, want)
		}
	}
	for i := range fewLost {
		if _, begins := LoseHandover(p, d, now); begins != (i == fewLost-1) {
			t.Errorf("loss %d: %v", i, begins)
		}
	}
	is(1, Open)
	is(2.9, Open)
	is(3, HalfOpen)
	p.SentPaired(sec(3))
	is(3.1, Open) // the trial is under way
	if _, begins := LoseHandover(p, d, sec(3.5)); begins {
		t.Error("a trial that fails begins nothing")
	}
	is(7.4, Open)
	is(7.5, HalfOpen)
	for i := range 10 {
		at := sec(100 * float64(i+1))
		p.SentPaired(at)
		LoseHandover(p, d, at)
	}
	if _, apart := p.Unpaired(); apart != maxBackOff {
		t.Errorf("%v; want %v at most", apart, maxBackOff)
	}
	if p.Answers() {
		t.Error("a worker whose hand-overs are lost answers all the same")
	}
}

// TestWhoHangsWithAPrompt: a prompt that is late shows a hang if nothing else came from its worker.
func TestWhoHangsWithAPrompt(t *testing.T) {
	f := func(what string, hangs bool, upset func(*Health, *Engine, *Request)) {
		t.Helper()
		h, g, r := &Health{}, &Engine{}, &Request{Sent: sec(10)}
		h.HandOver(sec(8), sec(9))
		g.Moved(sec(9))
		h.Flow(&Request{}, sec(9))
		upset(h, g, r)
		if got, begins := h.MissPrompt(g, r, sec(12)); got != hangs || begins != hangs {
			t.Errorf("%s: %v, begins %v", what, got, begins)
		}
	}
	f("nothing came", true, func(*Health, *Engine, *Request) {})
	f("its metrics moved", false, func(_ *Health, g *Engine, _ *Request) { g.Moved(sec(11)) })
	f("an answer flows", false, func(h *Health, _ *Engine, _ *Request) { h.Flow(&Request{}, sec(11)) })
	f("another prompt was handed over", false, func(h *Health, _ *Engine, _ *Request) { h.HandOver(sec(10), sec(11)) })
	f("it has begun", false, func(_ *Health, _ *Engine, r *Request) { r.First = sec(11) })
	h, r := &Health{}, &Request{Sent: sec(10)}
	h.MissPrompt(new(Engine), r, sec(11.3))
	if why, _ := h.Unpaired(); !h.MayHang() || !strings.Contains(why, "in 1.3 s") {
		t.Errorf("missed: %q", why)
	}
	if hangs, begins := h.MissPrompt(new(Engine), r, sec(11.4)); !hangs || begins {
		t.Errorf("another one hangs %v, and begins what there is %v", hangs, begins)
	}
	if !h.Answers() || h.IsUnpaired(sec(11.5)) || h.Answers() {
		t.Error("its first byte does not end that, once")
	}
}
