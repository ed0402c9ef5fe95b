package judge

import (
	"testing"
	"time"
)

// start is when the clocks of tests begin.
var start = time.Unix(1_000_000, 0)

// sec returns s seconds.
func sec(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if d := got - want; d > tolerance || d < -tolerance {
		t.Errorf("%s = %v; want %v within %v", what, got, want, tolerance)
	}
}
