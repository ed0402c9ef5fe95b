package daemon

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestContextsOfAnEndedLifeMayAskLate: whoever made a context from a request's gets its cause, however late it asks.
func TestContextsOfAnEndedLifeMayAskLate(t *testing.T) {
	var all lives
	for range 2000 {
		l := new(life)
		all.begin(l)
		child, cancel := context.WithTimeout(l, time.Minute)
		go l.end(errClientGone)
		l.leave()
		<-child.Done()
		if err := context.Cause(child); !errors.Is(err, errClientGone) && !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		cancel()
	}
	if all.first != nil {
		t.Error("a life was not taken out")
	}
}
