package message

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestContextsOfAnEndedLifeMayAskLate: a context made from a request's gets its cause, however late it reads it.
func TestContextsOfAnEndedLifeMayAskLate(t *testing.T) {
	var all Lives
	for range 2000 {
		l := new(Life)
		all.Begin(l)
		child, cancel := context.WithTimeout(l, time.Minute)
		go l.End(ErrClientGone)
		l.Leave()
		<-child.Done()
		if err := context.Cause(child); !errors.Is(err, ErrClientGone) && !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		cancel()
	}
	if all.all.First != nil {
		t.Error("a life was not taken out")
	}
}
