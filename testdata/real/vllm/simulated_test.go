package main

import (
	"context"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/served"
)

// In virtual time kvaware believes what the engines then find, in all requests but those that a reset's event comes too
// late for, and finds more where prefixaware's history is plainly wrong.
func TestSimulatedSituations(t *testing.T) {
	ctx := context.Background()
	l, err := served.NewLoader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(ctx)
	plainly := map[string]bool{"two routers": true, "kv_tokens half of the truth": true,
		"a third of the requests goes past the router": true}
	for i := range situations {
		s, rates := &situations[i], map[string]float64{}
		for _, name := range []string{"prefixaware", "kvaware"} {
			for seed := range uint64(3) {
				x, err := simulate(ctx, l, "native:"+name, s, drawTraffic(seed+1, 200))
				if err != nil {
					t.Fatal(err)
				}
				rates[name] += x.hitRate() / 3
				if inexact := x.requests - x.exact; name == "kvaware" && inexact > 1 {
					t.Errorf("%s, seed %d: %d of %d requests were not believed to the token", s.name, seed+1, inexact,
						x.requests)
				}
			}
		}
		if plainly[s.name] && rates["kvaware"] <= rates["prefixaware"] {
			t.Errorf("%s: kvaware finds %.3f, prefixaware %.3f", s.name, rates["kvaware"], rates["prefixaware"])
		}
	}
}
