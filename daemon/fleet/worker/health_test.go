package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

func TestSilentIsNotDeadWhileTokensFlow(t *testing.T) {
	p := upPool(t, 1)
	w := p.fleet.workers[0]
	k := p.force(w, Dispatch{PromptTokens: 10}, 100)
	for s := 100.0; s < 160; s += 2 { // a minute without an answer to /health
		k.Flow(p.after(s))
		p.hush(int(w.slot), s)
	}
	if got := snap(p, "", 160); got != "w0" {
		t.Fatalf("while tokens flow: %s; want w0", got)
	}
	p.hush(int(w.slot), 162)
	if got := snap(p, "", 162); got != "w0" {
		t.Errorf("4 s after the last token: %s; want w0", got)
	}
	p.hush(int(w.slot), 164)
	if got := p.Stats(p.after(164))[0].State; got != Silent {
		t.Errorf("6 s after the last token: %v; want silent", got)
	}
	p.heal(int(w.slot), 166)
	if got := snap(p, "", 166); got != "w0" {
		t.Errorf("healthy again: %s; want w0", got)
	}
}

func TestSilenceWithoutFlow(t *testing.T) {
	p := upPool(t, 1)
	w := p.fleet.workers[0]
	p.hush(int(w.slot), 2)
	if got := snap(p, "", 2); got != "w0" {
		t.Errorf("after one silent check: %s; want w0", got)
	}
	p.heal(int(w.slot), 4)
	p.hush(int(w.slot), 6)
	if got := snap(p, "", 6); got != "w0" {
		t.Errorf("silent, good, silent: %s; want w0", got)
	}
	p.hush(int(w.slot), 8)
	if got := p.Stats(p.after(8))[0].State; got != Silent {
		t.Errorf("after two in a row: %v; want silent", got)
	}
	if got := snap(p, "", 8); got != "w0" {
		t.Errorf("the last worker: %s; want w0, though it is silent", got)
	}
}

func TestSlowStart(t *testing.T) {
	p := upPool(t, 1)
	slow := func(at float64, want bool) {
		t.Helper()
		rows := p.rows(at)
		if got := rows[0].State&abi.RowSlowStart != 0; got != want {
			t.Errorf("slow start at %v s: %v; want %v", at, got, want)
		}
	}
	slow(1, false) // the start of the fleet is no slow start
	p.kill(0, 2)
	p.heal(0, 4)
	slow(4, false) // its turn
	p.send(0, Dispatch{}, 4).End(p.after(4), judge.Outcome{Kind: judge.Answered})
	slow(4, true) // no other worker is there
	slow(13.9, true)
	slow(14.1, false)
}

func TestRefusedIsDownAtOnce(t *testing.T) {
	watcher := new(watcher)
	p := upPoolOf(Config{Workers: specs(2), Watcher: watcher})
	watcher.want(t, "watch 1", "watch 2")
	p.send(0, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: judge.Refused})
	if got := snap(p, "", 1); got != "w1" {
		t.Errorf("after a refused dial: %s; want w1", got)
	}
	watcher.want(t, "check 1")
	if s := p.Stats(p.after(1))[0]; s.LastError != "connection refused" || s.Refused != 1 || s.State != Down {
		t.Errorf("stats: %+v", s)
	}
}

// TestFailedChecks: what a failed check proves, by those before it.
func TestFailedChecks(t *testing.T) {
	f := func(what string, h health, c check, flows bool, want state) {
		t.Helper()
		if got := h.fail(c, flows); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	const flows, still = true, false
	f("the first late one", health{state: up}, checkLate, still, up)
	f("the second", health{state: up, late: 1}, checkLate, still, silent)
	f("the tenth while tokens flow", health{state: up, late: 9}, checkLate, flows, up)
	f("late, after a 503", health{state: up, ill: 1}, checkLate, still, up)
	f("the tenth of a silent worker", health{state: silent, late: 9}, checkLate, still, silent)
	f("the first 503", health{state: up}, checkIll, still, up)
	f("the second", health{state: up, ill: 1}, checkIll, still, down)
	f("the second while tokens flow", health{state: up, ill: 1}, checkIll, flows, down)
	f("the first after an answer that said the same", health{state: up, dying: true}, checkIll, still, down)
	f("the second 503 of a silent worker", health{state: silent, late: 2, ill: 1}, checkIll, still, down)
	f("a refused connection while tokens flow", health{state: up}, checkClosed, flows, down)
	f("the same of a silent worker", health{state: silent}, checkClosed, still, down)
	f("late, of a worker that is down", health{state: down}, checkLate, still, down)
	for _, c := range []check{checkLate, checkIll, checkClosed} {
		f("the first check of all", health{state: starting}, c, still, down)
	}
}

// TestGoodCheckEndsSuspicion: failed checks count in a row.
func TestGoodCheckEndsSuspicion(t *testing.T) {
	h := health{state: up}
	for range 5 {
		for _, c := range []check{checkIll, checkLate} {
			if got := h.fail(c, false); got != up {
				t.Fatalf("after a good check: %v; want %v", got, up)
			}
		}
		h.dying = true
		h.pass(3)
	}
}

// TestHears: a good check shows that a process lived on, if it came later and no other process began meanwhile.
func TestHears(t *testing.T) {
	f := func(what string, h health, since float64, want bool) {
		t.Helper()
		if got := h.hears(since); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("checked since", health{state: up, born: 1, good: 9}, 5, true)
	f("not checked since", health{state: up, born: 1, good: 4}, 5, false)
	f("a new process", health{state: up, born: 7, good: 9}, 5, false)
	f("down", health{state: down, born: 1, good: 9}, 5, false)
	f("silent", health{state: silent, born: 1, good: 9}, 5, false)
}

// TestRise: a worker comes back, or begins with the fleet.
func TestRise(t *testing.T) {
	f := func(what string, h health, want bool) {
		t.Helper()
		got := h.rise(7)
		if got != want || h.state != up || h.joined || h.fell != 0 {
			t.Errorf("%s: %v, %+v; want %v", what, got, h, want)
		}
		if is := h.born == 7; is == (what == "from silence") {
			t.Errorf("%s: a new process is assumed: %v", what, is)
		}
	}
	f("the fleet's own start", health{}, false)
	f("a newcomer", health{joined: true}, true)
	f("from death", health{state: down, fell: 3}, true)
	f("from silence", health{state: silent, fell: 3, born: 2}, true)
}

// TestLastError: the page shows why the worker is down, and whether the error is over.
func TestLastError(t *testing.T) {
	var e lastError
	want := func(text string, over bool) {
		t.Helper()
		if e.text != text || e.over != over {
			t.Errorf("%q, over %v; want %q, %v", e.text, e.over, text, over)
		}
	}
	e.note("page", start, byMetrics, false)
	want("page", false)
	e.good(byHealth) // that does not end an error of another source
	want("page", false)
	e.good(byMetrics)
	want("page", true)
	e.note("refused", start, byHealth, true)
	e.note("page", start, byMetrics, true) // a scrape that was under way when it died
	want("refused", false)
	e.note("refused again", start, byHealth, true)
	want("refused again", false)
	e.good(byHealth)
	e.note("page", start, byMetrics, true)
	want("page", false)
}
