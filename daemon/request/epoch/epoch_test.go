package epoch

import "testing"

// TestExplainLogWanted: a share is drawn, and slow requests are kept until their end is known.
func TestExplainLogWanted(t *testing.T) {
	f := func(l ExplainLog, logged, kept bool) {
		t.Helper()
		for range 20 {
			if a, b := l.Wanted(); a != logged || b != kept {
				t.Errorf("%+v: logged %v, kept %v", l, a, b)
			}
		}
	}
	f(ExplainLog{}, false, false)
	f(ExplainLog{Share: 1}, true, true)
	f(ExplainLog{Slower: 1}, false, true)
}
