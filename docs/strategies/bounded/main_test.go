package main

import (
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestUsersStay(t *testing.T) {
	host := &sdktest.Host{Headers: map[string]string{"x-user": "ann"}}
	host.Use(t)
	f := sdktest.NewFrame(4)
	home := f.Run(t, bounded{}).Row
	f.Rows[(home+1)%4].Wait = 100
	if got := f.Run(t, bounded{}); got.Row != home {
		t.Errorf("worker %d; want %d as before", got.Row, home)
	}
	f.Rows[home].InFlight = 9
	if got := f.Run(t, bounded{}); got.Row == home {
		t.Error("it goes to a worker with twice the mean in flight")
	}
	to := map[int]bool{}
	f.Rows[home].InFlight = 0
	for _, user := range []string{"bob", "eve", "dan", "kim", "lee", "mia", "ned", "zoe"} {
		host.Headers["x-user"] = user
		to[f.Run(t, bounded{}).Row] = true
	}
	if len(to) < 3 {
		t.Errorf("eight users are at %d of 4 workers", len(to))
	}
}
