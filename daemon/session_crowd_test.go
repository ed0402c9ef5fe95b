package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// flock is many sessions through one daemon.
type flock struct {
	t     *testing.T
	r     *running
	homes []string // by session
}

// use sends a request of each session up to to, in any order and several at a time. A session that has a home must be
// there still, unless that is the one that left.
func (f *flock) use(to int, left string) { f.useSome(to, to, left) }

// useSome is use of so many of these sessions.
func (f *flock) useSome(some, to int, left string) {
	f.t.Helper()
	for len(f.homes) < to {
		f.homes = append(f.homes, "")
	}
	epoch := f.r.epoch()
	caller, _ := epoch.Keys.Check("", "")
	var next, wrong atomic.Int64
	order := rand.New(rand.NewPCG(1, uint64(to))).Perm(to)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := int(next.Add(1) - 1); n < some; n = int(next.Add(1) - 1) {
				i := order[n]
				in := &message.Inbound{Epoch: &epoch.Epoch, Endpoint: message.Classify("POST", "/v1/completions"),
					Method: "POST", Path: "/v1/completions", Body: []byte(hello), Caller: caller, ID: "x", Remote: "127.0.0.1",
					Header: []upstream.Field{{Name: "X-Session-Id", Value: fmt.Sprintf("session-%d", i)}}}
				out := process{f.r.Daemon}.Serve(context.Background(), in)
				at := in.Seen.Worker
				if out.Status != 200 || f.homes[i] != "" && f.homes[i] != at && f.homes[i] != left {
					if wrong.Add(1) == 1 {
						f.t.Errorf("session %d: %d at %q, %d retries, %s; its home is %q", i, out.Status, at, in.Seen.Retries, in.Seen.Reason, f.homes[i])
					}
				}
				f.homes[i] = at
			}
		})
	}
	wg.Wait()
	if n := wrong.Load(); n > 0 {
		f.t.Fatalf("%d sessions moved or failed", n)
	}
}

// imbalance is (max - mean) / mean of the live sessions.
func (f *flock) imbalance(workers int) float64 {
	most, all := 0, 0
	for _, kinds := range f.r.state.Load().pools[0].route.Sessions.Live(time.Now()) {
		n := 0
		for _, k := range kinds {
			n += k
		}
		most, all = max(most, n), all+n
	}
	if all != len(f.homes) {
		f.t.Errorf("%d live sessions; want %d", all, len(f.homes))
	}
	mean := float64(all) / float64(workers)
	return (float64(most) - mean) / mean
}

func TestTenThousandSessionsWhileWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	urls := echoes(t, 7)
	// On a machine that is full a worker is late with two checks in a row, or with a connection, and its sessions move.
	patient := strings.Replace(settings("session", urls...), `health_interval = "100ms"`,
		"health_interval = \"10s\"\nconnect_timeout = \"20s\"", 1)
	f := &flock{t: t, r: start(t, patient, 7)}
	p := f.r.state.Load().pools[0]
	all := p.set.Load().conf.Workers
	to := func(workers ...conf.Worker) {
		t.Helper()
		c := p.set.Load().conf
		c.Workers = workers
		if err := p.change(c); err != nil {
			t.Fatal(err)
		}
		f.r.waitUp(len(workers))
	}
	to(all[:6]...)
	f.use(2500, "")
	to(all...) // w7 joins
	f.use(3500, "")
	to(append([]conf.Worker{all[0]}, all[2:]...)...) // w2 leaves: its sessions move, and no others
	f.use(3500, "w2")
	to(all...) // w2 is back, and begins slowly: what is bound goes to it all the same
	f.use(3900, "")
	eventually(t, "no worker starts slowly", func() bool {
		slow := false
		for _, w := range p.route.Workers.Stats(time.Now()) {
			slow = slow || w.SlowStart
		}
		return !slow
	})
	f.use(10000, "")
	f.useSome(3000, 10000, "")
	if got := f.imbalance(7); got > 0.10 {
		t.Errorf("imbalance of live sessions %.1f %%; want at most 10 %%", 100*got)
	} else {
		t.Logf("imbalance of live sessions %.1f %%", 100*got)
	}
}
