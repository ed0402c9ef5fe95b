package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestCheapestInTime(t *testing.T) {
	host := &sdktest.Host{Headers: map[string]string{"x-slo-ttft-ms": "300"}}
	host.Use(t)
	f := sdktest.NewFrame(3)
	f.Rows[0].Price, f.Rows[1].Price, f.Rows[2].Price = 3, 2, 1
	f.Rows[2].Wait = 1
	if got := f.Run(t, &slo{ms: 500}); got.Row != 1 || got.Reason != sdk.ReasonOwn {
		t.Errorf("worker %d for %v; want 1, the cheapest that begins within 300 ms", got.Row, got.Reason)
	}
	host.Headers = nil
	if got := f.Run(t, &slo{ms: 5000}); got.Row != 2 {
		t.Errorf("worker %d without the header; want 2, which is in time by the option", got.Row)
	}
	if got := f.Run(t, &slo{ms: 1}); got.Row != 0 || got.Reason != sdk.ReasonOwn+1 {
		t.Errorf("worker %d for %v where none is in time; want 0, the soonest", got.Row, got.Reason)
	}
	f.Header.Priority = 1
	if got := f.Run(t, &slo{ms: 1}); got.Row != int(abi.Reject) || got.Status != 429 {
		t.Errorf("batch traffic gets worker %d, status %d; want 429", got.Row, got.Status)
	}
}
