package message

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/route"
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

// TestOverflowStatus: what no worker has room for has the status of its pool. Limits of keys keep theirs.
func TestOverflowStatus(t *testing.T) {
	f := func(fault Fault, overflow, want int, kind string) {
		t.Helper()
		p := &epoch.Pool{Pool: &route.Pool{Workers: worker.New(worker.Config{}, time.Now())}, OverflowStatus: overflow}
		if got := fault.Measured(p, time.Now()); got.Status != want || got.Kind != kind {
			t.Errorf("%s, %d: %d %s; want %d %s", fault.Code, overflow, got.Status, got.Kind, want, kind)
		}
	}
	f(FaultQueueFull, 503, 503, "service_unavailable")
	f(FaultWaited, 503, 503, "service_unavailable")
	f(FaultFull, 429, 429, "rate_limit_error")
	f(FaultFull, 0, 429, "rate_limit_error")
	f(FaultRejected, 503, 429, "rate_limit_error")
}
