package message

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// When a client gives up: the forms of a time, and which field of several holds.
func TestDeadlines(t *testing.T) {
	f := func(want time.Duration, fields ...string) {
		t.Helper()
		in := &Inbound{Epoch: &epoch.Epoch{Deadline: []string{"X-Request-Timeout", "grpc-timeout"}}}
		for i := 0; i < len(fields); i += 2 {
			in.Header = append(in.Header, upstream.Field{Name: fields[i], Value: fields[i+1]})
		}
		arrived := time.Unix(1_800_000_000, 0)
		got := time.Duration(0)
		if at := in.Deadline(arrived); !at.IsZero() {
			got = at.Sub(arrived)
		}
		if got != want {
			t.Errorf("%q: %v; want %v", fields, got, want)
		}
	}
	f(0)
	for given, want := range map[string]time.Duration{
		"10": 10 * time.Second, "1.5": 1500 * time.Millisecond, "10s": 10 * time.Second, "1500ms": 1500 * time.Millisecond,
		"1500m": 1500 * time.Millisecond, "2M": 2 * time.Minute, "3S": 3 * time.Second, "1H": time.Hour,
		"5000u": 5 * time.Millisecond, "5000000n": 5 * time.Millisecond,
		"0": 0, "-1": 0, "NaN": 0, "Inf": 0, "1e308": 0, "1e3": 0, "99999999H": 0, "s": 0, "10 s": 0, "10x": 0, "1.2.3": 0,
	} {
		f(want, "x-request-timeout", given)
	}
	f(time.Second, "Grpc-Timeout", "1S", "X-Stainless-Timeout", "600")
	f(2*time.Second, "Grpc-Timeout", "1S", "X-Request-Timeout", "2")
	f(time.Second, "Grpc-Timeout", "1S", "X-Request-Timeout", "soon")
	f(600*time.Second, "X-Request-Timeout", "soon", "X-Stainless-Timeout", "600")
	f(0, "X-Timeout", "1")
}
