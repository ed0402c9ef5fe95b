package main

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestNobodyElses(t *testing.T) {
	host := &sdktest.Host{Caller: "acme"}
	host.Use(t)
	f := sdktest.NewFrame(3).Label(host, 0, "for=other").Label(host, 1, "for=acme")
	s := &tenants{spill: .5}
	if got := fmt.Sprint(f.Filter(t, s).Order); got != "[1 2]" {
		t.Errorf("workers %s; want 1, its own, and 2, which is nobody's", got)
	}
	f.Rows[1].Labels, f.Rows[2].Labels = 1, 1
	if got := f.Filter(t, s); got.Row != 0 {
		t.Errorf("workers %v where all are another's", got.Order)
	}
}

func TestSpill(t *testing.T) {
	host := &sdktest.Host{Caller: "acme"}
	host.Use(t)
	f := sdktest.NewFrame(2).Label(host, 0, "for=acme")
	s := &tenants{spill: .5}
	if got := f.Run(t, s); got.Row != 0 {
		t.Errorf("worker %d; want 0, its own", got.Row)
	}
	f.Rows[0].Wait = 3
	if got := f.Run(t, s); got.Row != 1 {
		t.Errorf("worker %d; want 1, which is nobody's", got.Row)
	}
}
