package exchange

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// picky holds the requests of the key "picky" for so many milliseconds while w0 has no row, and gives them w0 then. All
// others get the last row. seen gets the headers of the picky ones.
func picky(millis uint32, seen chan abi.Header) *host.Strategy {
	return host.Native("picky", 0, func(h *abi.Header, rows []abi.Row, _ []uint32) uint64 {
		if h.Caller != pickyHash {
			return abi.Pack(int32(len(rows)-1), 0, 0)
		}
		select {
		case seen <- *h:
		default:
		}
		for i := range rows {
			if rows[i].Key == worker.KeyOf("w0") {
				return abi.Pack(int32(i), 0, 0)
			}
		}
		h.HoldMillis = millis
		return abi.Pack(abi.Hold, 0, 0)
	})
}

// pickyHash is Header.Caller of the key "picky": FNV-1a.
var pickyHash = func() uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range []byte("picky") {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return h
}()

func pickyKey() *gate.Caller {
	c := *inbound("POST", "/", "").Caller
	c.Name = "picky"
	return &c
}

// A request that its strategy holds waits for a better worker though another one is idle. Others pass it, it sees how
// long it has waited, and it goes where it wants when that worker is free.
func TestHeldForABetterWorker(t *testing.T) {
	x := newCrowd(t, 2, waiting.Config{Wait: long})
	seen := make(chan abi.Header, 1)
	x.pool.Strategy.Replace(picky(20_000, seen))
	key := pickyKey()
	first := x.sends(key, "first")
	<-x.came
	<-seen
	held := x.sends(key, "held")
	x.waits(1)
	<-seen
	x.until("the held request does not see that it waits", func() bool {
		h := <-seen
		return h.Waited > 0 && h.QueueDepth == 1
	})
	passes := x.sends(nil, "passes") // to w1, which is idle
	if got := <-x.came; got != "passes" {
		t.Fatalf("%s came to a worker; want the one that passes", got)
	}
	x.free <- true
	x.free <- true
	if got := <-x.came; got != "held" {
		t.Fatalf("%s came", got)
	}
	x.free <- true
	for _, g := range []*guest{first, held, passes} {
		g.wants(t, 200, "")
	}
	if held.in.Seen.Fallback != "" || held.in.Seen.Worker != "w0" || held.in.Seen.Queued.Waited == 0 {
		t.Errorf("%+v", held.in.Seen)
	}
	x.rests()
}

// A strategy that holds for ever ends by its own bound, with the fallback's choice; a client that leaves meanwhile is
// gone at once.
func TestAHoldWithoutAnEnd(t *testing.T) {
	x := newCrowd(t, 2, waiting.Config{Wait: long})
	x.pool.Strategy.Replace(picky(200, nil))
	key := pickyKey()
	first := x.sends(key, "first")
	<-x.came
	held, leaves := x.sends(key, "held"), x.sends(key, "leaves")
	x.waits(2)
	leaves.life.Leave()
	x.waits(1)
	if got := <-x.came; got != "held" {
		t.Fatalf("%s came", got)
	}
	x.free <- true
	x.free <- true
	held.wants(t, 200, "")
	first.wants(t, 200, "")
	if s := &held.in.Seen; s.Fallback != "hold" || s.Worker != "w1" || s.Queued.Waited < 200*time.Millisecond {
		t.Errorf("%+v; want the fallback's worker after 200 ms", s)
	}
	if strings.Contains(x.log.String(), "holds requests") {
		t.Errorf("the log: %s", x.log)
	}
}

// A request that is held has its worker before its first token comes too late: the fallback chooses in time.
func TestAHoldBeforeItsDeadline(t *testing.T) {
	x := newCrowd(t, 2, waiting.Config{Wait: long})
	x.pool.Strategy.Replace(picky(20_000, nil))
	key := pickyKey()
	first := x.sends(key, "first")
	<-x.came
	held := x.sends(key, "held", "X-Slo-Ttft-Ms", "3000")
	select {
	case <-x.came:
	case out := <-held.done:
		x.free <- true
		t.Fatalf("no worker while one is idle: %d %s", out.Status, out.Body)
	}
	x.free <- true
	x.free <- true
	held.wants(t, 200, "")
	first.wants(t, 200, "")
	if s := &held.in.Seen; s.Fallback != "hold" || s.Worker != "w1" || s.Queued.Waited < time.Second {
		t.Errorf("%+v; want the fallback's worker before 3 s", s)
	}
}

// Without a queue nobody waits: the fallback chooses at once, and the log says so, once.
func TestAHoldWithoutAQueue(t *testing.T) {
	x := newCrowd(t, 2, waiting.Config{Wait: long})
	x.pool.Queue = nil
	x.pool.Strategy.Replace(picky(20_000, nil))
	key := pickyKey()
	x.sends(key, "first")
	<-x.came
	held := x.sends(key, "held")
	if got := <-x.came; got != "held" {
		t.Fatalf("%s came", got)
	}
	x.free <- true
	x.free <- true
	held.wants(t, 200, "")
	again := x.sends(key, "third")
	<-x.came
	x.free <- true
	again.wants(t, 200, "")
	if n := strings.Count(x.log.String(), "the strategy holds requests, and its pool has no queue"); n != 1 {
		t.Errorf("%d lines: %s", n, x.log)
	}
}

// What a strategy says of a request's class and share holds as far as its key may ask for it.
func TestRated(t *testing.T) {
	in := &message.Inbound{Caller: &gate.Caller{Priority: [2]int{-10, 3}}}
	f := func(class int, share float64, wantClass int, wantShare float64) {
		t.Helper()
		cut := class
		if class == wantClass {
			cut = 0
		}
		w := &waiting.Wait{}
		w.Weight = 2
		admission.Rate(w, in, class, share)
		if w.Class != wantClass || w.Weight != wantShare || w.Cut != cut {
			t.Errorf("%d, %v: %d, %v, cut from %d; want %d, %v", class, share, w.Class, w.Weight, w.Cut, wantClass, wantShare)
		}
	}
	f(2, 5, 2, 5)
	f(99, 1e9, 3, 100)
	f(-99, .001, -10, .1)
	f(math.MaxInt32, math.Inf(1), 3, 100)
	f(math.MinInt32, math.NaN(), -10, 2)
	f(0, 0, 0, 2)
	f(0, -1, 0, 2)
}
