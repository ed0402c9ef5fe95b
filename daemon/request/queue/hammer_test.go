package queue

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hall hands the turns of a queue to those who wait in it, as an exchange does.
type hall struct {
	queue *Queue
	free  atomic.Int64 // places at the workers
	turns atomic.Int64 // that somebody has now
}

// guest is one who waits.
type guest struct {
	Request
	turn chan bool // false: it was displaced
}

// next gives the turn to the next, if anybody may have it.
func (h *hall) next() {
	if r := h.queue.Next(start); r != nil {
		r.Owner.(*guest).turn <- true
	}
}

// wait waits for a place until patience is over. It reports how that ended.
func (h *hall) wait(t *testing.T, g *guest, patience time.Duration) string {
	g.Owner, g.turn = g, make(chan bool, 2)
	out, ok := h.queue.Enter(&g.Request, start)
	for _, d := range out {
		d.Owner.(*guest).turn <- false
	}
	if !ok {
		return "refused"
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	h.next()
	defer h.next()
	for {
		select {
		case has := <-g.turn:
			if !has {
				return "displaced"
			}
			if n := h.turns.Add(1); n != 1 {
				t.Errorf("%d have the turn", n)
			}
			found := h.free.Add(-1) >= 0
			h.turns.Add(-1)
			if found {
				h.queue.Served(&g.Request, start)
				return "served"
			}
			h.free.Add(1)
			h.queue.Blocked(&g.Request)
			h.next()
		case <-over.C:
			h.queue.Leave(&g.Request, start)
			return "gone"
		}
	}
}

// TestQueueUnderLoad: hundreds come, go, wait and are displaced at once. Nobody is forgotten, one has the turn at a time,
// and at the end nothing waits and all places are free.
func TestQueueUnderLoad(t *testing.T) {
	h := &hall{queue: New(Config{MaxRequests: 60, MaxBytes: 1 << 20, Starve: time.Millisecond})}
	h.free.Store(4)
	var fates sync.Map
	var all, hold sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for n := range 30 {
				g := &guest{Request: Request{Lane: uint64(i % 2), Class: i % 3, Key: fmt.Sprint(i % 3), Flow: fmt.Sprint(i % 7), Cost: float64(1+n%5) / 10}}
				fate := h.wait(t, g, time.Duration(1+(i+n)%40)*time.Millisecond)
				count, _ := fates.LoadOrStore(fate, new(atomic.Int64))
				count.(*atomic.Int64).Add(1)
				if fate != "served" {
					continue
				}
				hold.Go(func() {
					time.Sleep(100 * time.Microsecond)
					h.free.Add(1)
					h.queue.Wake()
					h.next()
				})
			}
		})
	}
	all.Add(1)
	ended := make(chan struct{})
	go func() { // who looks on
		defer all.Done()
		for {
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
				h.queue.Counts()
				h.queue.Flows(3)
				h.queue.Predict(&Request{Flow: "1"})
				h.queue.Position(&Request{Flow: "2"})
				h.queue.Configure(h.queue.conf)
			}
		}
	}()
	time.AfterFunc(200*time.Millisecond, func() { close(ended) })
	all.Wait()
	hold.Wait()
	if c := h.queue.Counts(); c.Depth != 0 || c.Bytes != 0 || h.free.Load() != 4 || len(h.queue.lanes) != 0 {
		t.Errorf("left behind: %+v, %d places are free", c, h.free.Load())
	}
	for _, fate := range []string{"served", "gone", "displaced", "refused"} {
		n, some := fates.Load(fate)
		if !some {
			t.Errorf("nobody was %s", fate)
			continue
		}
		t.Logf("%d were %s", n.(*atomic.Int64).Load(), fate)
	}
}
