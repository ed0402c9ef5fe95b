package strategies

import (
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// pairs is a strategy that answers always the same: a row for the answer and one for the prompt, -1 = none. The rows are
// d0, d1, p0 and p1.
func pairs(name string, row, pair int32) *host.Strategy {
	return host.Native(name, abi.WantPair|abi.WantHeld, func(h *abi.Header, _ []abi.Row, _ []uint32) uint64 {
		h.PairRow = pair
		return abi.Pack(row, 0, 0)
	})
}

// TestShadowsOfPairs: the verdict says whom a shadow names for the prompt where that is not what the live strategy
// named, whether that one sees prefillers or not. Of a request that is not split none of that counts.
func TestShadowsOfPairs(t *testing.T) {
	f := func(what string, live *host.Strategy, split bool, verdict string, agreed ...string) {
		t.Helper()
		var specs []worker.Spec
		for _, id := range []string{"d0", "d1", "p0", "p1"} {
			s := worker.Spec{ID: id, URL: "http://" + id, Labels: map[string]string{"for": id[:1]}}
			if id[0] == 'p' {
				s.Role = worker.Prefills
			}
			specs = append(specs, s)
		}
		w := watcher{}
		pool := route.New(route.Config{Name: "p", Began: start, Workers: worker.Config{Watcher: w, Workers: specs}})
		pool.Strategy.Replace(live)
		for _, number := range w {
			pool.Workers.Healthy(number, start)
		}
		p := newShadows()
		shadows := []Shadow{{Module: pairs("same", 0, 2), Share: 1}, {Module: pairs("other", 0, 3), Share: 1},
			{Module: pairs("alone", 0, 0), Share: 1}, {Module: pairs("nobody", 0, -1), Share: 1},
			{Module: pairs("far", 1, 2), Share: 1}, {Module: chooses("plain", 0), Share: 1}}
		p.set(shadows)
		pool.Watch((&Loaded{shadows: shadows}).watching())
		run(t, p)
		r, err := new(prompt.Parser).Parse(prompt.KindOf("POST", "/v1/completions"), []byte(`{"model":"m","prompt":"Say something."}`))
		if err != nil {
			t.Fatal(err)
		}
		ask := route.Ask{Prompt: r, At: start.Add(time.Second), Leg: route.Answer, Fence: worker.Fence{"for=d"}}
		if split {
			ask.Prefillers = worker.Fence{"for=p"}
		}
		c := new(route.Choice)
		if v := pool.Choose(c, &ask); v != route.Chosen {
			t.Fatal(v)
		}
		v := p.Watch(c)
		c.Release()
		waittest.Until(t, "a verdict", func() bool { return v.String() != "" })
		if v.String() != verdict {
			t.Errorf("%s: %q; want %q", what, v, verdict)
		}
		all, _ := p.Reports()
		for _, r := range all {
			same := false
			for _, name := range agreed {
				same = same || name == r.Strategy
			}
			if r.Seen != 1 || r.Failed+r.Declined != 0 || (r.Agreed == 1) != same {
				t.Errorf("%s: %+v", what, r)
			}
		}
	}
	f("a pair", pairs("live", 0, 2), true, "other=d0+p1 alone=d0+d0 nobody=d0 far=d1+p0 plain=d0", "same")
	f("alone", pairs("live", 0, 0), true, "same=d0+p0 other=d0+p1 nobody=d0 far=d1+p0 plain=d0", "alone")
	f("the host decides", pairs("live", 0, -1), true, "same=d0+p0 other=d0+p1 alone=d0+d0 far=d1+p0", "nobody", "plain")
	f("it sees no prefillers", chooses("live", 0), true, "same=d0+p0 other=d0+p1 alone=d0+d0 far=d1+p0", "nobody", "plain")
	f("not split", pairs("live", 0, -1), false, "far=d1", "same", "other", "alone", "nobody", "plain")
}
