package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestWhereTheAdapterRuns(t *testing.T) {
	f := sdktest.NewFrame(3)
	f.Rows[0].State, f.Rows[2].State = abi.RowAdaptersFull, abi.RowAdapter
	if got := f.Run(t, adapters{}); got.Row != 2 {
		t.Errorf("worker %d; want 2, which has it", got.Row)
	}
	f.Rows[2].Wait = 1.5
	if got := f.Run(t, adapters{}); got.Row != 1 {
		t.Errorf("worker %d while that one is busy; want 1, which has room for it", got.Row)
	}
	f.Rows[1].Wait = 1.5
	if got := f.Run(t, adapters{}); got.Row != 2 {
		t.Errorf("worker %d while both are busy; want 2: 0 would throw another out", got.Row)
	}
}
