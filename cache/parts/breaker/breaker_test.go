package breaker

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// run takes one step a word, and returns what each said: "f" fails, "t" trips, "s" succeeds, "c" closes, "?" asks
// Lets, and a number waits so many milliseconds.
func run(b *Breaker, steps string) string {
	now := time.Unix(1000, 0)
	var said []string
	for step := range strings.FieldsSeq(steps) {
		switch step {
		case "f":
			said = append(said, fmt.Sprint(b.Fail(now)))
		case "t":
			said = append(said, fmt.Sprint(b.Trip(now)))
		case "s":
			b.Succeed()
		case "c":
			lasted, was := b.Close(now)
			said = append(said, fmt.Sprint(was, lasted))
		case "?":
			said = append(said, fmt.Sprint(b.Lets(now)))
		default:
			var n int
			fmt.Sscan(step, &n)
			now = now.Add(time.Duration(n) * time.Millisecond)
		}
	}
	return strings.Join(append(said, fmt.Sprint(b.Open(), b.Opens(), b.OpenFor(now))), ", ")
}

func TestBreaker(t *testing.T) {
	f := func(rule Rule, steps, want string) {
		t.Helper()
		if got := run(&Breaker{Rule: rule}, steps); got != want {
			t.Errorf("%+v: %s\n got %s\nwant %s", rule, steps, got, want)
		}
	}
	f(Rule{}, "? c f ? 5 f c ?", "true, false 0s, true, false, false, true 5ms, true, false 1 0s")

	row := Rule{Failures: 3}
	f(row, "f f 10 ?", "false, false, true, false 0 0s")
	f(row, "f f f ? 10", "false, false, true, false, true 1 10ms")
	f(row, "f f s f f f", "false, false, false, false, true, true 1 0s")
	f(row, "f f c f f", "false, false, false 0s, false, false, false 0 0s")
	f(row, "t t f 10 s ?", "true, false, false, false, true 1 10ms") // a success alone does not close it
	f(row, "t 10 c f f f", "true, true 10ms, false, false, true, true 2 0s")

	outage := Rule{Failures: 3, Over: 150 * time.Millisecond}
	f(outage, "f f f f 149 f 1 f", "false, false, false, false, false, true, true 1 0s")
	f(outage, "f f f s 150 f f f", "false, false, false, false, false, false, false 0 0s")

	rests := Rule{Failures: 2, Rest: time.Second, Longest: 5 * time.Second}
	f(rests, "f f 999 ? 1 ? ? 999 ? 1 ?", "false, true, false, true, false, false, true, true 1 2s")
	f(rests, "t 1000 ? f 1999 ? 1 ? f 3999 ? 1 ? f 4999 ? 1 ?",
		"true, true, false, false, true, false, false, true, false, false, true, true 1 12s")
	f(rests, "t 1000 ? f c t 1000 ?", "true, true, false, true 1s, true, true, true 2 1s") // the first rest again
	f(rests, "t"+strings.Repeat(" f", 100)+" 4999 ? 1 ?",
		"true"+strings.Repeat(", false", 100)+", false, true, true 1 5s")
}

// TestBreakerOpensOnce: of many who fail at once one hears that the breaker has opened, and of many who ask after a
// rest one is the trial.
func TestBreakerOpensOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	count := func(ask func() bool) (n int) {
		var mu sync.Mutex // guards n
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 500 {
					if ask() {
						mu.Lock()
						n++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		return n
	}
	for range 20 {
		b := Breaker{Rule: Rule{Failures: 3, Rest: time.Second, Longest: time.Second}}
		if n := count(func() bool { return b.Fail(now) }); n != 1 || !b.Open() {
			t.Fatalf("opened %d times", n)
		}
		if n := count(func() bool { return b.Lets(now.Add(time.Second)) }); n != 1 {
			t.Fatalf("%d trials", n)
		}
		if n := count(func() bool { _, was := b.Close(now); return was }); n != 1 || b.Opens() != 1 {
			t.Fatalf("closed %d times, opened %d", n, b.Opens())
		}
	}
}
