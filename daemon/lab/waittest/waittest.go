// Package waittest waits in tests for what other goroutines or processes do.
package waittest

import (
	"testing"
	"time"
)

// Until waits until ok returns true. It fails the test if that takes longer than a busy machine may need. The message
// names the condition.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// AtBest measures a step, again and again, until it took at most so long. It fails the test if no try did: other work
// on the machine only adds to a time, so that the least of some counts.
func AtBest(t testing.TB, what string, most time.Duration, step func() (took time.Duration)) {
	t.Helper()
	var all []time.Duration
	for range 10 {
		took := step()
		if took <= most {
			return
		}
		all = append(all, took)
	}
	t.Errorf("%s took %v; want at most %v", what, all, most)
}
