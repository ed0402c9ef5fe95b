package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestLongPromptsGoToTheNew(t *testing.T) {
	host := &sdktest.Host{}
	host.Use(t)
	f := sdktest.NewFrame(2).Label(host, 0, "gen=old").Label(host, 1, "gen=new")
	f.Rows[0].Slow, f.Rows[1].Slow = 1, .4
	for _, c := range []struct {
		dearer float64
		wait   float64 // at the new one
		want   int
	}{{2, 0, 1}, {5, 0, 0}, {2, 9, 0}} {
		f.Rows[1].Wait = c.wait
		if got := f.Prompt(20_000).Run(t, &generations{dearer: c.dearer}); got.Row != c.want {
			t.Errorf("a new worker of %v times the price, %v s of queue: worker %d; want %d", c.dearer, c.wait, got.Row, c.want)
		}
	}
}
