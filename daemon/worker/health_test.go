package worker

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

func TestSilentIsNotDeadWhileTokensFlow(t *testing.T) {
	p := upPool(t, 1)
	w := p.workers[0]
	k := p.Begin(w, Dispatch{PromptTokens: 10}, p.after(100))
	for s := 100.0; s < 160; s += 2 { // a minute without an answer to /health
		k.Flow(p.after(s))
		p.checked(w, p.after(s), "timeout", false)
	}
	if got := snap(p, "", 160); got != "w0" {
		t.Fatalf("while tokens flow: %s; want w0", got)
	}
	p.checked(w, p.after(162), "timeout", false)
	if got := snap(p, "", 162); got != "w0" {
		t.Errorf("4 s after the last token: %s; want w0", got)
	}
	p.checked(w, p.after(164), "timeout", false)
	if got := snap(p, "", 164); got != "none up" {
		t.Errorf("6 s after the last token: %s; want none up", got)
	}
	p.checked(w, p.after(166), "", false)
	if got := snap(p, "", 166); got != "w0" {
		t.Errorf("healthy again: %s; want w0", got)
	}
}

func TestSilenceWithoutFlow(t *testing.T) {
	p := upPool(t, 1)
	w := p.workers[0]
	p.checked(w, p.after(2), "timeout", false)
	if got := snap(p, "", 2); got != "w0" {
		t.Errorf("after one silent check: %s; want w0", got)
	}
	p.checked(w, p.after(4), "", false)
	p.checked(w, p.after(6), "timeout", false)
	if got := snap(p, "", 6); got != "w0" {
		t.Errorf("silent, good, silent: %s; want w0", got)
	}
	p.checked(w, p.after(8), "timeout", false)
	if got := snap(p, "", 8); got != "none up" {
		t.Errorf("after two in a row: %s; want none up", got)
	}
}

func TestSlowStart(t *testing.T) {
	p := upPool(t, 1)
	slow := func(at float64, want bool) {
		t.Helper()
		rows, _, _ := p.Snapshot("", p.after(at), nil, nil)
		if got := rows[0].State&abi.RowSlowStart != 0; got != want {
			t.Errorf("slow start at %v s: %v; want %v", at, got, want)
		}
	}
	slow(1, false) // the fleet's own start is none
	p.checked(p.workers[0], p.after(2), "gone", true)
	p.checked(p.workers[0], p.after(4), "", false)
	slow(4, false) // its turn
	p.Begin(p.workers[0], Dispatch{}, p.after(4)).End(p.after(4), Outcome{Kind: Answered})
	slow(4, true) // nobody else is there
	slow(13.9, true)
	slow(14.1, false)
}

func TestRefusedIsDownAtOnce(t *testing.T) {
	p := upPool(t, 2)
	w := p.workers[0]
	p.Begin(w, Dispatch{}, p.after(1)).End(p.after(1), Outcome{Kind: Refused})
	if got := snap(p, "", 1); got != "w1" {
		t.Errorf("after a refused dial: %s; want w1", got)
	}
	select {
	case <-w.kick:
	default:
		t.Error("no health check was asked for")
	}
	if s := p.Stats(p.after(1))[0]; s.LastError != "connection refused" || s.Refused != 1 || s.State != "down" {
		t.Errorf("stats: %+v", s)
	}
}

// fail ends n requests to worker i badly.
func (p *Pool) fail(i, n int, at float64, kind Kind) {
	for range n {
		p.Begin(p.workers[i], Dispatch{}, p.after(at)).End(p.after(at), Outcome{Kind: kind})
	}
}

func TestEjection(t *testing.T) {
	p := upPool(t, 4)
	expect := func(at float64, want string) {
		t.Helper()
		if got := snap(p, "", at); got != want {
			t.Errorf("at %v s: %s; want %s", at, got, want)
		}
	}
	p.fail(0, 4, 1, Failed)
	p.fail(0, 1, 1, Answered)
	p.fail(0, 4, 1, Broken)
	p.fail(0, 9, 1, Canceled)
	expect(1, "w0 w1 w2 w3") // never five in a row
	p.fail(0, 1, 1, Failed)
	expect(1, "w1 w2 w3")
	expect(2.99, "w1 w2 w3")
	expect(3.01, "w0 w1 w2 w3")
	rows, _, _ := p.Snapshot("", p.after(4), nil, nil)
	if len(rows) != 4 {
		t.Error("the trial's turn waits for something")
	}
	p.fail(0, 1, 3.5, Answered)
	if s := p.Stats(p.after(3.6)); !s[0].SlowStart || s[1].SlowStart {
		t.Error("slow start after an ejection is not the ejected worker's alone")
	}
	p.fail(0, 5, 4, Failed) // in its slow start again, one good answer or not: twice as long
	expect(7.99, "w1 w2 w3")
	expect(8.01, "w0 w1 w2 w3")
	p.fail(0, 1, 9, Answered)  // the trial
	p.fail(0, 1, 30, Answered) // good after its slow start: forgiven
	p.fail(0, 5, 30, Failed)
	expect(31.99, "w1 w2 w3")
	expect(32.01, "w0 w1 w2 w3")
}

func TestBackOffIsBounded(t *testing.T) {
	p := upPool(t, 2)
	at := 1.0
	for range 10 {
		p.fail(0, 5, at, Failed)
		if left := p.workers[0].breaker.until - at; left > maxBackOff || left < 2 {
			t.Fatalf("ejected for %v s; want 2..%v", left, maxBackOff)
		}
		at = p.workers[0].breaker.until
	}
}

func TestHalfStays(t *testing.T) {
	f := func(workers, dead, want int) {
		t.Helper()
		p := upPool(t, workers)
		for i := range dead {
			p.checked(p.workers[i], p.after(1), "gone", true)
		}
		for i := range workers {
			p.fail(i, 20, 2, Failed)
		}
		if got := p.Up(p.after(2)); got != want {
			t.Errorf("%d workers, %d dead, all fail: %d left; want %d", workers, dead, got, want)
		}
	}
	f(1, 0, 1)
	f(2, 0, 1)
	f(3, 0, 2)
	f(10, 0, 5)
	f(10, 6, 2)
}

func TestEjectedKeepsItsCache(t *testing.T) {
	downs := 0
	p := New(Config{Workers: specs(2), OnDown: func(uint32) { downs++ }})
	for _, w := range p.workers {
		p.checked(w, p.began, "", false)
	}
	p.workers[0].rel = 2
	p.fail(0, 5, 1, Failed)
	if s := p.Stats(p.after(1))[0]; downs != 0 || s.State != "ejected" || s.Ejections != 1 || s.Slow < 1.9 {
		t.Errorf("%d downs, %+v; want none, ejected, m kept", downs, s)
	}
}
