package worker

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// TestHammer drives all of a pool at once; at the end every counter is zero. It is made for -race.
func TestHammer(t *testing.T) {
	p := upPool(t, 8)
	var all sync.Map // every worker ever seen
	var requests, changes sync.WaitGroup
	stop := make(chan struct{})
	for g := range 6 {
		requests.Go(func() { hammerRequests(p, uint64(g), &all) })
	}
	changes.Go(func() {
		rng := rand.New(rand.NewPCG(9, 9))
		for {
			select {
			case <-stop:
				return
			default:
			}
			s := specs(10)
			rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
			p.Update(s[:4+rng.IntN(6)], time.Now())
			for _, st := range p.Stats(time.Now()) {
				if st.InFlight < 0 || st.Pending < 0 || st.Wait < 0 {
					t.Errorf("negative counters: %+v", st)
				}
			}
			p.mu.Lock()
			ws := append([]*Worker(nil), p.fleet.workers...)
			p.mu.Unlock()
			for _, w := range ws {
				p.Healthy(w.number, time.Now())
				p.Scraped(w.number, Page{Metrics: Metrics{Process: float64(1 + rng.IntN(3)*100), Capacity: rng.IntN(3)}}, time.Now())
			}
			p.Configure(Config{MaxInFlight: rng.IntN(3), Panic: rng.IntN(2) == 0, HealthInterval: time.Millisecond})
			p.Request(time.Now())
			p.MayRetry(time.Now())
			p.Drain("w1", rng.IntN(2) == 0, time.Now())
			p.Models(nil)
			p.Lambda(time.Now())
		}
	})
	requests.Wait()
	close(stop)
	changes.Wait()
	restsAtZero(t, p, &all)
}

// hammerRequests begins and ends requests, each ended twice at once. Worker w2 is a bad one.
func hammerRequests(p *Pool, g uint64, all *sync.Map) {
	rng := rand.New(rand.NewPCG(g, 1))
	rows, ws := make([]abi.Row, 0, 16), make([]*Worker, 0, 16)
	for range 3000 {
		rows, ws, _ = p.Snapshot(Query{Model: "m", At: time.Now()}, rows[:0], ws[:0])
		if len(ws) == 0 {
			continue
		}
		w := ws[rng.IntN(len(ws))]
		all.Store(w, true)
		k, ok := p.TryBegin(w, Dispatch{PromptTokens: rng.IntN(5000), Whole: rng.IntN(3) == 0}, time.Now())
		if !ok {
			continue
		}
		if rng.IntN(4) > 0 {
			k.FirstByte(time.Now())
		}
		kind := judge.Answered
		if rng.IntN(20) == 0 {
			kind = judge.Kind(rng.IntN(6))
		}
		if w.id == "w2" && rng.IntN(10) > 0 { // its breaker opens, and most of its trials fail
			kind = judge.Failed
		}
		var twice sync.WaitGroup
		for range 2 {
			twice.Go(func() { k.End(time.Now(), judge.Outcome{Kind: kind, Tokens: 10}) })
		}
		twice.Wait()
	}
}

// restsAtZero checks that an idle pool counts nothing, and that each slot is that of its worker.
func restsAtZero(t *testing.T, p *Pool, all *sync.Map) {
	t.Helper()
	all.Range(func(k, _ any) bool {
		w := k.(*Worker)
		if w.flight.n != 0 || w.queue.First != nil || w.queue.Last != nil || w.queue.pend != 0 || w.queue.tokens != 0 {
			t.Errorf("%s (gone %v) at the end: in flight %d, queue %+v", w.id, w.place != configured, w.flight.n, w.queue)
		}
		if !w.health.IsTrial(nil) {
			t.Errorf("%s (gone %v) waits at the end for a trial's end", w.id, w.place != configured)
		}
		if w.place != configured && w.place != freed {
			t.Errorf("%s is gone and its slot was not given back", w.id)
		}
		return true
	})
	slots := map[uint32]bool{}
	for _, w := range p.fleet.workers {
		if slots[w.slot] || p.fleet.taken[w.slot] != w {
			t.Errorf("slot %d of %s is shared or free", w.slot, w.id)
		}
		slots[w.slot] = true
	}
	if len(p.fleet.taken) != len(p.fleet.workers) {
		t.Errorf("%d slots are taken for %d workers", len(p.fleet.taken), len(p.fleet.workers))
	}
	n := 0
	for _, w := range p.fleet.workers {
		if w.isUp() {
			n++
		}
	}
	if n != p.fleet.up {
		t.Errorf("up = %d; want %d", p.fleet.up, n)
	}
}
