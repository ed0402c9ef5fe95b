package strategies

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

var start = time.Unix(1_800_000_000, 0)

// watcher learns the numbers of a pool's workers.
type watcher map[string]uint64

func (w watcher) Watch(id uint64, url, _ string) { w[url] = id }
func (watcher) WatchHealth(uint64)               {}
func (watcher) Unwatch(uint64)                   {}
func (watcher) CheckSoon(uint64)                 {}
func (watcher) ScrapeSoon(uint64)                {}
func (watcher) ListSoon(uint64)                  {}

// chooses is a strategy that answers always the same: a row, abi.Decline or abi.Reject.
func chooses(name string, row int32) *host.Strategy {
	return host.Native(name, 0, func(*abi.Header, []abi.Row, []uint32) uint64 { return abi.Pack(row, 0, 0) })
}

// newPool makes a pool of two workers, a and b, served by live.
func newPool(t *testing.T, live *host.Strategy) *route.Pool {
	t.Helper()
	w := watcher{}
	p := route.New(route.Config{Name: "p", Began: start, Workers: worker.Config{Watcher: w,
		Workers: []worker.Spec{{ID: "a", URL: "http://a"}, {ID: "b", URL: "http://b"}}}})
	p.Strategy.Replace(live)
	for _, number := range w {
		p.Workers.Healthy(number, start)
	}
	return p
}

// decided is a request that the pool's strategy has decided. Release is the caller's.
func decided(t *testing.T, p *route.Pool) *route.Choice {
	t.Helper()
	r, err := new(prompt.Parser).Parse(prompt.KindOf("POST", "/v1/completions"),
		[]byte(`{"model":"m","prompt":"Say something."}`))
	if err != nil {
		t.Fatal(err)
	}
	c := new(route.Choice)
	if v := p.Choose(c, &route.Ask{Prompt: r, At: start.Add(time.Second)}); v != route.Chosen && v != route.Rejected {
		t.Fatal(v)
	}
	return c
}

// run has the shadows decide until the test ends.
func run(t *testing.T, p *Shadows) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { p.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
		p.set(nil)
	})
}

// TestShadowsAreCompared: each choice is counted as what it is, and the verdict names those that differ.
func TestShadowsAreCompared(t *testing.T) {
	for _, c := range []struct {
		live    int32
		verdict string
		want    map[string]Report
	}{
		{0, "other=b declines=declines broken=fails rejects=rejects", map[string]Report{"same": {Agreed: 1}, "other": {},
			"declines": {Declined: 1}, "broken": {Failed: 1}, "rejects": {Rejected: 1}}},
		{abi.Reject, "same=a other=b declines=declines broken=fails", map[string]Report{"same": {}, "other": {},
			"declines": {Declined: 1}, "broken": {Failed: 1}, "rejects": {Agreed: 1}}},
	} {
		p := newShadows()
		p.set([]Shadow{{Module: chooses("same", 0), Share: 1}, {Module: chooses("other", 1), Share: 1},
			{Module: chooses("declines", abi.Decline), Share: 1}, {Module: chooses("broken", 7), Share: 1},
			{Module: chooses("rejects", abi.Reject), Share: 1}})
		run(t, p)
		choice := decided(t, newPool(t, chooses("live", c.live)))
		v := p.Watch(choice)
		choice.Release() // the shadows have a copy
		if v == nil {
			t.Fatal("nobody watches")
		}
		waittest.Until(t, "a verdict", func() bool { return v.String() != "" })
		if v.String() != c.verdict {
			t.Errorf("live %d: %q; want %q", c.live, v, c.verdict)
		}
		all, dropped := p.Reports()
		for _, r := range all {
			w := c.want[r.Strategy]
			if r.Seen != 1 || r.Agreed != w.Agreed || r.Declined != w.Declined || r.Failed != w.Failed || r.Rejected != w.Rejected {
				t.Errorf("live %d: %+v; want %+v", c.live, r, w)
			}
		}
		if len(all) != 5 || dropped != 0 {
			t.Errorf("%d reports, %d dropped", len(all), dropped)
		}
	}
}

// TestShare: a shadow sees about the share that it is to see, and one beside it its own.
func TestShare(t *testing.T) {
	const requests = 2000
	p := newShadows()
	p.set([]Shadow{{Module: chooses("half", 0), Share: .5}, {Module: chooses("tenth", 0), Share: .1}})
	run(t, p)
	c := decided(t, newPool(t, chooses("live", 0)))
	defer c.Release()
	watched := uint64(0)
	for range requests {
		if p.Watch(c) != nil {
			watched++
		}
		time.Sleep(20 * time.Microsecond) // so that not many are dropped
	}
	var seen map[string]uint64
	waittest.Until(t, "all are seen", func() bool {
		seen = map[string]uint64{}
		all, _ := p.Reports()
		for _, r := range all {
			seen[r.Strategy] = r.Seen
		}
		return seen["half"] == watched
	})
	_, dropped := p.Reports()
	if n := watched + dropped; n < requests*4/10 || n > requests*6/10 {
		t.Errorf("%d of %d; want half", n, requests)
	}
	if n := seen["tenth"]; n < watched/10 || n > watched*3/10 {
		t.Errorf("%d of %d for the other; want a fifth of them", n, watched)
	}
	p.set([]Shadow{{Module: chooses("none", 0)}})
	if p.Watch(c) != nil {
		t.Error("a share of 0 is watched")
	}
}

// TestQueueIsBounded: what comes faster than the shadows take it is dropped and counted; nobody waits.
func TestQueueIsBounded(t *testing.T) {
	p := newShadows()
	p.set([]Shadow{{Module: chooses("slow", 0), Share: 1}})
	c := decided(t, newPool(t, chooses("live", 0)))
	defer c.Release()
	for i := range queued + 10 {
		if v := p.Watch(c); (v != nil) != (i < queued) {
			t.Fatalf("request %d: %v", i, v)
		}
	}
	if _, dropped := p.Reports(); dropped != 10 {
		t.Errorf("%d dropped; want 10", dropped)
	}
	run(t, p)
	waittest.Until(t, "those that waited are decided", func() bool { all, _ := p.Reports(); return all[0].Seen == queued })
}

// TestSetKeepsCounts: a shadow that stays goes on counting, another begins, and none is asked once it is gone.
func TestSetKeepsCounts(t *testing.T) {
	p := newShadows()
	if p.Watch(nil) != nil {
		t.Error("without a shadow somebody watches")
	}
	run(t, p)
	c := decided(t, newPool(t, chooses("live", 0)))
	defer c.Release()
	for i := range 3 {
		next := fmt.Sprint("next-", i)
		p.set([]Shadow{{Module: chooses("stays", 0), Share: 1}, {Module: chooses(next, 1), Share: 1}})
		p.Watch(c)
		waittest.Until(t, "both have decided", func() bool {
			all, _ := p.Reports()
			return all[0].Seen == uint64(i+1) && all[1].Seen == 1 && all[1].Strategy == next
		})
	}
	p.set(nil)
	if all, _ := p.Reports(); len(all) != 0 || p.Watch(c) != nil {
		t.Errorf("shadows that are gone: %v", all)
	}
}

// TestShadowsHammer: requests come while the shadows are replaced.
func TestShadowsHammer(t *testing.T) {
	p := newShadows()
	run(t, p)
	live := newPool(t, chooses("live", 0))
	var all sync.WaitGroup
	for range 4 {
		c := decided(t, live)
		all.Go(func() {
			defer c.Release()
			for range 500 {
				if v := p.Watch(c); v != nil {
					_ = v.String()
				}
			}
		})
	}
	for i := range 200 {
		p.set([]Shadow{{Module: chooses("a", int32(i%2)), Share: 1}})
		p.Reports()
	}
	all.Wait()
}
