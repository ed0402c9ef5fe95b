package exchange_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestGoodputUnderBackpressure: workers of fixed slots and service time say 503 or 429 above them, under clients that try
// again after a tenth of a second. What is served is at least .95 of what each worker alone serves under its part of the
// clients.
func TestGoodputUnderBackpressure(t *testing.T) {
	n := 40
	if testing.Short() || raceEnabled {
		n = 4
	}
	worst := 9.0
	for seed := range uint64(n) {
		synctest.Test(t, func(t *testing.T) {
			got, direct := goodput(t, seed)
			worst = min(worst, got/direct)
			if got < .95*direct {
				t.Errorf("seed %d: %.0f requests are served; want at least .95 of %.0f", seed, got, direct)
			}
		})
	}
	t.Logf("%d fleets: at worst %.3f of what the workers serve alone", n, worst)
}

// goodput returns how many requests a fleet serves in some time, and how many its workers do alone.
func goodput(t *testing.T, seed uint64) (got, direct float64) {
	const warm, measured = 3 * time.Second, 8 * time.Second
	f := newFleet(t, seed, 2+int(seed%3))
	load, slots := 1+2*rand.New(rand.NewPCG(seed, 1)).Float64(), 0
	for i, e := range f.engines {
		e.slots, e.service = 2+f.draw(5), f.between(.2, 1)
		if seed%2 == 0 {
			e.slots = f.engines[0].slots
		} else if i == 0 {
			e.slots = 12
		}
		slots += e.slots
	}
	served, part := 0, int(load*float64(slots)/float64(len(f.engines))+.5)
	for _, e := range f.engines {
		direct += float64(min(part, e.slots)) * measured.Seconds() / e.service.Seconds()
	}
	clients := part * len(f.engines)
	for range clients {
		f.clients.Add(1)
		first := f.between(0, .5)
		go func() {
			defer f.clients.Done()
			time.Sleep(first)
			for f.now() < warm+measured {
				a := f.enter(&ask{path: chat, patient: time.Minute})
				f.serve(a)
				f.lock()
				pause := f.between(.09, .11)
				switch {
				case a.status == 200 && f.now() > warm && f.now() < warm+measured:
					served++
					fallthrough
				case a.status == 200:
					pause = f.between(0, 1e-5)
				}
				f.unlock()
				time.Sleep(pause)
			}
		}()
	}
	f.end()
	if f.breach != "" {
		t.Errorf("seed %d: %s", seed, f.breach)
	}
	return float64(served), direct
}
