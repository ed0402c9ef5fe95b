package message

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// TestMeasured: which faults have a time that the pool measures.
func TestMeasured(t *testing.T) {
	for _, f := range []Fault{FaultFull, FaultNoWorker, FaultUpstream, FaultDown, FaultHidden, FaultResting} {
		if !f.measures() {
			t.Errorf("%s is not measured", f.Code)
		}
	}
	for _, f := range []Fault{FaultRejected, FaultStopping, FaultSilent, FaultKey, FaultBroken, FaultTimeout} {
		if f.measures() {
			t.Errorf("%s is measured", f.Code)
		}
	}
	for value, want := range map[string]int{"": 2, "x": 2, "-1": 2, "0": 2, " 9 ": 9, "Wed, 21 Oct 2026 07:28:00 GMT": 2, "99999999999999999999": 2} {
		if got := Asked(FaultNoWorker, upstream.Header{{Name: "retry-after", Value: value}}).Retry; got != want {
			t.Errorf("Retry-After: %q: %d; want %d", value, got, want)
		}
	}
}
