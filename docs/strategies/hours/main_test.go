package main

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestRentedWorkers(t *testing.T) {
	host := &sdktest.Host{}
	host.Use(t)
	f := sdktest.NewFrame(2).Label(host, 1, "rented=yes")
	f.Rows[0].Wait = 5
	s := &hours{}
	if err := sdktest.Configure(s, map[string]string{"zone": "+02:00"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		when string
		wait float64 // at one's own
		want int
	}{
		{"2026-11-27T07:00:00Z", 5, 1}, // Friday, nine o'clock
		{"2026-11-27T05:59:00Z", 5, 0},
		{"2026-11-27T16:00:00Z", 5, 0}, // 18 o'clock
		{"2026-11-28T09:00:00Z", 5, 0}, // Saturday
		{"2026-11-29T09:00:00Z", 5, 0},
		{"2026-11-29T09:00:00Z", 70, 1},
	} {
		at, err := time.Parse(time.RFC3339, c.when)
		if err != nil {
			t.Fatal(err)
		}
		f.Header.Now, f.Rows[0].Wait = at.UnixNano(), c.wait
		if got := f.Run(t, s); got.Row != c.want {
			t.Errorf("%s, %v s of work at one's own: worker %d; want %d", c.when, c.wait, got.Row, c.want)
		}
	}
}
