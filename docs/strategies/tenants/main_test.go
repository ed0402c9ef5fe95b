package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestNobodyElses(t *testing.T) {
	host := &sdktest.Host{Caller: "acme"}
	host.Use(t)
	f := sdktest.NewFrame(3).Label(host, 0, "for=other").Label(host, 1, "for=acme")
	s := &tenants{spill: .5}
	if got := f.Run(t, s); got.Row != 1 {
		t.Errorf("worker %d; want 1, its own", got.Row)
	}
	f.Rows[1].Wait = 3
	got := f.Run(t, s)
	if got.Row != 2 || len(got.Order) != 1 || got.Order[0] != 1 {
		t.Errorf("worker %d, then %v; want 2, which is nobody's, then 1", got.Row, got.Order)
	}
	f.Rows[1].Labels, f.Rows[2].Labels = 1, 1
	if got := f.Run(t, s); got.Row != int(abi.Reject) || got.Status != 503 {
		t.Errorf("worker %d where all are another's, status %d; want 503", got.Row, got.Status)
	}
}
