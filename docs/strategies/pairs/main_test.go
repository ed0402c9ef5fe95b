package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestPairs(t *testing.T) {
	s := &pairs{handover: .05, each: .02}
	f := sdktest.NewFrame(4).Prefillers(2)
	want := func(what string, row, pair int) {
		t.Helper()
		if got := f.Run(t, s); got.Row != row || got.Pair != pair {
			t.Errorf("%s: worker %d with %d; want %d with %d", what, got.Row, got.Pair, row, pair)
		}
	}
	f.Prompt(500)
	want("a short prompt is handed to nobody", 0, 0)
	f.Prompt(30_000)
	f.Rows[0].Running, f.Rows[0].InFlight = 8, 8
	f.Rows[1].Running, f.Rows[1].InFlight = 4, 4
	want("a long prompt would hold up answers", 1, 2)
	f.Rows[2].Wait = 3
	want("that prefiller has a queue", 1, 3)
	f.Rows[3].Wait = 100
	f.Rows[2].Wait = 100
	want("both have", 1, 1)
	f.Hold(0, 29_000)
	want("who holds the prompt needs nobody", 0, 0)
	f = sdktest.NewFrame(2)
	want("in a pool without roles", 0, 0)
	f.Rows[0].State, f.Rows[1].State = abi.RowPrefill, abi.RowPrefill
	f.Header.Flags, f.Rows[0].Wait = abi.HeaderPrefill, 1
	want("asked for the prompt alone it leaves that to the host", int(abi.Decline), -1)
	if sdk.WantsOf(s) != abi.WantPair {
		t.Error("it does not ask for prefillers")
	}
}
