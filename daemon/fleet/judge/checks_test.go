package judge

import "testing"

// TestFailedChecks: what a failed check proves, by those before it.
func TestFailedChecks(t *testing.T) {
	f := func(what string, h checks, c Check, flows bool, want State) {
		t.Helper()
		if got := h.fail(c, flows); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	const flows, still = true, false
	f("the first late one", checks{state: Up}, CheckLate, still, Up)
	f("the second", checks{state: Up, late: 1}, CheckLate, still, Silent)
	f("the tenth while tokens flow", checks{state: Up, late: 9}, CheckLate, flows, Up)
	f("late, after a 503", checks{state: Up, ill: 1}, CheckLate, still, Up)
	f("the tenth of a silent worker", checks{state: Silent, late: 9}, CheckLate, still, Silent)
	f("the first 503", checks{state: Up}, CheckIll, still, Up)
	f("the second", checks{state: Up, ill: 1}, CheckIll, still, Down)
	f("the second while tokens flow", checks{state: Up, ill: 1}, CheckIll, flows, Down)
	f("the first after an answer that said the same", checks{state: Up, dying: true}, CheckIll, still, Down)
	f("the second 503 of a silent worker", checks{state: Silent, late: 2, ill: 1}, CheckIll, still, Down)
	f("a refused connection while tokens flow", checks{state: Up}, CheckClosed, flows, Down)
	f("the same of a silent worker", checks{state: Silent}, CheckClosed, still, Down)
	f("late, of a worker that is down", checks{state: Down}, CheckLate, still, Down)
	for _, c := range []Check{CheckLate, CheckIll, CheckClosed} {
		f("the first check of all", checks{state: Starting}, c, still, Down)
	}
}

// TestGoodCheckEndsSuspicion: failed checks count in a row.
func TestGoodCheckEndsSuspicion(t *testing.T) {
	h := checks{state: Up}
	for range 5 {
		for _, c := range []Check{CheckIll, CheckLate} {
			if got := h.fail(c, false); got != Up {
				t.Fatalf("after a good check: %v; want %v", got, Up)
			}
		}
		h.dying = true
		h.pass(sec(3))
	}
}

// TestHears: a good check shows that a process lived on, if it came later and no other process began meanwhile.
func TestHears(t *testing.T) {
	f := func(what string, h checks, since float64, want bool) {
		t.Helper()
		if got := h.hears(sec(since)); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("checked since", checks{state: Up, born: sec(1), good: sec(9)}, 5, true)
	f("not checked since", checks{state: Up, born: sec(1), good: sec(4)}, 5, false)
	f("a new process", checks{state: Up, born: sec(7), good: sec(9)}, 5, false)
	f("down", checks{state: Down, born: sec(1), good: sec(9)}, 5, false)
	f("silent", checks{state: Silent, born: sec(1), good: sec(9)}, 5, false)
}

// TestRise: a worker comes back, or begins with the fleet.
func TestRise(t *testing.T) {
	f := func(what string, h checks, want bool) {
		t.Helper()
		got := h.rise(sec(7))
		if got != want || h.state != Up || h.joined || h.fell != 0 {
			t.Errorf("%s: %v, %+v; want %v", what, got, h, want)
		}
		if is := h.born == sec(7); is == (what == "from silence") {
			t.Errorf("%s: a new process is assumed: %v", what, is)
		}
	}
	f("the fleet's own start", checks{}, false)
	f("a newcomer", checks{joined: true}, true)
	f("from death", checks{state: Down, fell: sec(3)}, true)
	f("from silence", checks{state: Silent, fell: sec(3), born: sec(2)}, true)
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
	e.note("page", start, ByMetrics, false)
	want("page", false)
	e.good(ByHealth) // that does not end an error of another source
	want("page", false)
	e.good(ByMetrics)
	want("page", true)
	e.note("refused", start, ByHealth, true)
	e.note("page", start, ByMetrics, true) // a scrape that was under way when it died
	want("refused", false)
	e.note("refused again", start, ByHealth, true)
	want("refused again", false)
	e.good(ByHealth)
	e.note("page", start, ByMetrics, true)
	want("page", false)
}
