// Package waittest waits in tests for what other goroutines or processes do.
package waittest

import (
	"testing"
	"time"
)

// Until waits until ok returns true. It fails the test if that takes longer than a busy machine may need. The message
// says what was waited for.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
