package host

import "testing"

// A panic of a Go guest is logged with its stack once, and after that as one line.
func TestBrief(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := Brief(text); got != want {
			t.Errorf("%q: %q; want %q", text, got, want)
		}
	}
	f("", "")
	f("out of fuel; raise fuel", "out of fuel; raise fuel")
	f(`wp_pick: unreachable (it says "panic: too long")`, `wp_pick: unreachable (it says "panic: too long")`)
	f(`wp_pick: unreachable (it says "panic: too long\n\ngoroutine 1 [running]:\n\tmain.Route(...)")`,
		`wp_pick: unreachable (it says "panic: too long ...")`)
	f(`wp_pick: unreachable (it says "\n")`, `wp_pick: unreachable (it says " ...")`)
}
