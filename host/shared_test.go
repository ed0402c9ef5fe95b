package host

import (
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestStrategiesShareInstances: strategies of the same module and settings have one compiled module and the same
// instances, until the last of them is closed. What they count, and what fails them, stays apart.
func TestStrategiesShareInstances(t *testing.T) {
	h := newHost(t, Config{Slots: 4})
	wasm := wat(t, "tiny")
	shop := load(t, h, wasm, Options{Pool: "shop"})
	chat := load(t, h, wasm, Options{Pool: "chat"})
	if shop.code != chat.code || shop.instances != chat.instances {
		t.Fatal("two pools of one module have each its own")
	}
	waittest.Until(t, "two instances for both", func() bool { return shop.Stats().Instances == 2 })
	for i := range 3 {
		if r := shop.Pick(frame(16, i)); r.Fallback != "" {
			t.Fatalf("got %+v", r)
		}
	}
	chat.Pick(frame(16, 3))
	if s, c := shop.Stats().Picks, chat.Stats().Picks; s != 3 || c != 1 {
		t.Errorf("picks: %d and %d; want 3 and 1", s, c)
	}
	shop.Close(ctx)
	if r := shop.Pick(frame(16, 3)); r.Fallback != "closed" {
		t.Errorf("closed: got %+v", r)
	}
	if r := chat.Pick(frame(16, 3)); r.Fallback != "" || len(h.codes.of) != 1 {
		t.Errorf("the other: got %+v, %d modules", r, len(h.codes.of))
	}
	chat.Close(ctx)
	if len(h.codes.of) != 0 || len(h.shared.of) != 0 {
		t.Errorf("at the end there are %d modules and %d sets of instances", len(h.codes.of), len(h.shared.of))
	}
}

// TestNotShared: what an instance has seen must not reach a strategy of other settings.
func TestNotShared(t *testing.T) {
	h := newHost(t, Config{})
	wasm := wat(t, "tiny")
	first := load(t, h, wasm, Options{Allow: []string{"headers:x-tenant"}})
	for what, o := range map[string]Options{
		"no permissions":  {},
		"other headers":   {Allow: []string{"headers:x-tenant", "headers:x-team"}},
		"a shadow":        {Allow: []string{"headers:x-tenant"}, Shadow: true},
		"another's limit": {Allow: []string{"headers:x-tenant"}, MemoryBytes: 4 << 20},
	} {
		if s := load(t, h, wasm, o); s.instances == first.instances {
			t.Errorf("%s: they share", what)
		}
	}
	if s := load(t, h, wasm, Options{Allow: []string{"headers:x-tenant"}, Fuel: 5_000_000}); s.instances != first.instances {
		t.Error("with more fuel: they do not share")
	}
}

// TestSharedAtOnce: pools come, go and pick at the same time, and nothing is left of them.
func TestSharedAtOnce(t *testing.T) {
	h := newHost(t, Config{Slots: 2})
	wasm := wat(t, "tiny")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				s, err := h.Load(ctx, "tiny", wasm, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				for range 10 {
					s.Pick(frame(16, 3))
				}
				s.Close(ctx)
			}
		})
	}
	all.Wait()
	if len(h.codes.of) != 0 || len(h.shared.of) != 0 {
		t.Errorf("there are %d modules and %d sets of instances", len(h.codes.of), len(h.shared.of))
	}
}

// TestAFailingPoolBesideAnother: a pool whose picks all fail discards instances that another pool uses. The other's picks
// wait for new ones, and none goes by the fallback.
func TestAFailingPoolBesideAnother(t *testing.T) {
	h := newHost(t, Config{Slots: 2, QuarantineAfter: never})
	wasm := wat(t, "tiny")
	good := load(t, h, wasm, Options{Pool: "good"})
	bad := load(t, h, wasm, Options{Pool: "bad"})
	if good.instances != bad.instances {
		t.Fatal("they share nothing")
	}
	var all sync.WaitGroup
	all.Go(func() {
		for discarded := 0; discarded < 50; { // what a pick that fails does
			if sl, _ := bad.instances.take(bad.program); sl != nil {
				bad.discard(sl)
				discarded++
			}
		}
	})
	all.Go(func() {
		for range 2000 {
			if r := good.Pick(frame(16, 3)); r.Fallback != "" {
				t.Errorf("the other: %+v", r)
				return
			}
		}
	})
	all.Wait()
	if n := bad.Stats().Discarded; n != 50 || good.Stats().Discarded != 0 {
		t.Errorf("discarded: %d by one, %d by the other; want 50 and 0", n, good.Stats().Discarded)
	}
}
