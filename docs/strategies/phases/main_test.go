package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestLongPrompts(t *testing.T) {
	host := &sdktest.Host{}
	host.Use(t)
	f := sdktest.NewFrame(2).Label(host, 1, "role=prefill")
	s := &phases{slow: .5}
	if got := f.Prompt(1000).Run(t, s); got.Row != 0 {
		t.Errorf("a short prompt goes to worker %d; want 0, which generates", got.Row)
	}
	if got := f.Prompt(30_000).Run(t, s); got.Row != 1 {
		t.Errorf("a long prompt goes to worker %d; want 1, which prefills", got.Row)
	}
	f.Rows[0].Wait = 100
	if got := f.Prompt(1000).Run(t, s); got.Row != 0 {
		t.Errorf("a short prompt leaves its workers: %d", got.Row)
	}
	if got := f.Hold(0, 1000).Hold(1, 1000).Prompt(30_000); got.Run(t, s).Row != 1 {
		t.Error("a prompt of which little is held is not long")
	}
}
