package seldom

import (
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	f := func(every time.Duration, wants ...bool) {
		t.Helper()
		var l Line
		at := time.Unix(1000, 0)
		for i, want := range wants {
			if got := l.Due(at.Add(time.Duration(i)*350*time.Millisecond), every); got != want {
				t.Errorf("every %v: %d ms: %v", every, i*350, got)
			}
		}
		if !l.Due(at.Add(-time.Hour), every) || l.Due(at.Add(-time.Hour), every) {
			t.Errorf("every %v: a clock that was set back", every)
		}
	}
	f(time.Second, true, false, false, true, false)
	f(2*time.Second, true, false, false, false, false, false, true, false)
}
