package exchange

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// TestWaitingUnderLoad: whatever happens to requests in whatever phase, no place at a worker is lost, none is given
// twice, and nobody waits for ever. The configuration changes all the while.
func TestWaitingUnderLoad(t *testing.T) {
	conf := waiting.Config{Config: queue.Config{MaxRequests: 40, MaxBytes: 1 << 30, Starve: 20 * time.Millisecond},
		Wait: 2 * time.Second, WaitEmpty: time.Second}
	x := newCrowd(t, 3, conf)
	x.answers = oddly
	var most atomic.Int64
	stop := make(chan bool)
	var helpers, all sync.WaitGroup
	helpers.Go(func() { x.changes(conf, &most, stop) })
	helpers.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-x.came:
			case x.free <- true:
				time.Sleep(200 * time.Microsecond)
			}
		}
	})
	statuses := make([]atomic.Int64, 600)
	for g := range 60 {
		all.Go(func() {
			for i := range 40 {
				statuses[x.meddles(g, i)].Add(1)
			}
		})
	}
	all.Wait()
	close(stop)
	helpers.Wait()
	x.pool.Workers.Configure(worker.Config{MaxInFlight: 1, Room: x.queue})
	x.queue.Configure(conf)
	x.heal()
	for s := range statuses {
		if n := statuses[s].Load(); n > 0 {
			t.Logf("%d: %d", s, n)
		}
	}
	if n := most.Load(); n > 1 {
		t.Errorf("%d requests at a worker of one place", n)
	}
	if statuses[200].Load() < 100 {
		t.Error("hardly anybody was served")
	}
	for len(x.came) > 0 {
		<-x.came
	}
	x.rests()
}

// oddly answers as a worker that is full, that breaks, or that streams.
func oddly(n int64, w http.ResponseWriter) bool {
	switch n % 7 {
	case 1:
		w.WriteHeader(503)
		return true
	case 2:
		panic(http.ErrAbortHandler) // the connection breaks
	case 3:
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
		}
		return true
	}
	return false
}

// changes has workers flap and changes each number, until stop. most is the most requests that a worker had.
func (x *crowd) changes(conf waiting.Config, most *atomic.Int64, stop chan bool) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(3 * time.Millisecond):
		}
		c := conf
		c.MaxRequests, c.Wait, c.ByDeadline = 5+i%50, time.Duration(1+i%3)*time.Second, i%2 == 0
		x.queue.Configure(c)
		x.pool.Workers.Configure(worker.Config{MaxInFlight: 1, MaxWait: float64(i % 2), Room: x.queue})
		for _, n := range x.pool.Workers.InFlight() {
			most.Store(max(most.Load(), int64(n)))
		}
		if i%40 == 0 {
			for _, id := range x.prober.ids {
				x.pool.Workers.Dead(id, "flaps", time.Now())
			}
		}
		if i%40 == 3 {
			x.heal()
		}
	}
}

// meddles sends a request, leaves it in some phase, and returns its status.
func (x *crowd) meddles(g, i int) int {
	at := x.sends(nil, fmt.Sprint(g), "X-Warmpath-Priority", fmt.Sprint(-(g % 3)))
	if g%4 == 0 {
		time.AfterFunc(time.Duration(rand.N(20_000))*time.Microsecond, func() { at.life.End(message.ErrClientGone) })
	}
	out := <-at.done
	if out.Stream != nil {
		if i%2 == 0 {
			_, _ = new(fickle).whole(out)
		} else {
			out.Stream.Close()
		}
		at.life.Leave()
	}
	return out.Status
}

// brittle is a Meter that panics at the end of a wait.
type brittle struct {
	*tally
	on atomic.Bool
}

func (m *brittle) Waited(*message.Seen, journal.Waited) {
	if m.on.Load() {
		panic("a meter panics")
	}
}

// A panic in the middle of a turn gives it back.
func TestPanicGivesTheTurnBack(t *testing.T) {
	x := newCrowd(t, 1, waiting.Config{Wait: long})
	m := &brittle{tally: x.counted}
	x.journal.Meter = m
	m.on.Store(true)
	first := x.sends(nil, "first")
	<-x.came
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`)
	in.Epoch = x.epoch
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		x.Serve(new(message.Life), in)
	}()
	x.waits(1)
	x.free <- true
	if got := <-ended; got == nil {
		t.Error("the meter did not panic")
	}
	m.on.Store(false)
	first.wants(t, 200, "")
	x.rests()
}

// calls counts the calls of a Waker.
type calls struct{ atomic.Int64 }

func (c *calls) Wake() { c.Add(1) }

// A model that the pool names and no worker lists is one whose workers are away: 503, not 404, and a scaler is told.
// Requests for it wait where they may.
func TestANamedModelWithoutWorkers(t *testing.T) {
	x := newCrowd(t, 1, waiting.Config{Wait: long})
	var woken calls
	x.pool.Waker = &woken
	for _, id := range x.prober.ids {
		x.pool.Workers.Listed(id, []string{"m"}, []json.RawMessage{nil})
	}
	ask := func(model string) *guest {
		in := inbound("POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[]}`)
		in.Epoch, in.ID = x.epoch, model
		g := &guest{in: in, life: new(message.Life), done: make(chan *message.Outbound, 1)}
		go func() { g.done <- x.Serve(g.life, in) }()
		return g
	}
	ask("unnamed").wants(t, 404, "")
	if n := woken.Load(); n != 0 {
		t.Errorf("a scaler was told %d times of a model that nobody has", n)
	}
	ask("named").wants(t, 503, "no_workers")
	if woken.Load() == 0 {
		t.Error("no scaler was told")
	}
	x.pool.WaitEmpty = true
	x.queue.Configure(waiting.Config{Config: queue.Config{MaxRequests: 9, MaxBytes: 1 << 30}, Wait: long, WaitEmpty: long})
	g := ask("named")
	x.waits(1)
	for _, id := range x.prober.ids {
		x.pool.Workers.Listed(id, []string{"m", "named"}, []json.RawMessage{nil, nil})
	}
	<-x.came
	x.free <- true
	g.wants(t, 200, "")
	x.rests()
}
