package abi

import (
	"math"
	"testing"
)

func TestPrefillWorkedValues(t *testing.T) {
	f := func(n, behind, want float64) {
		t.Helper()
		if got := PrefillSeconds*n + ContextSeconds*n*(behind+n/2); math.Abs(got-want) > 5e-4*want {
			t.Errorf("%g tokens behind %g take %g s; want %g", n, behind, got, want)
		}
	}
	f(15_000, 0, 1.2289)
	f(1, 0, 1./15_000)
	f(1, AttentionTokens/2, 2./15_000)
	f(AttentionTokens, 0, 2*65_536/15_000.)
}
