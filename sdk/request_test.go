package sdk

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

func TestLeg(t *testing.T) {
	f := func(flags uint32, want Leg) {
		t.Helper()
		if got := NewRequest(&abi.Header{Flags: flags}, nil).Leg(); got != want {
			t.Errorf("flags %b: leg %d; want %d", flags, got, want)
		}
	}
	f(0, LegWhole)
	f(abi.HeaderStream|abi.HeaderTokens, LegWhole)
	f(abi.HeaderStream|abi.HeaderAnswer, LegAnswer)
	f(abi.HeaderPrefill, LegPrefill)
}
