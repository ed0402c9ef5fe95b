package peers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// both calls two senders with the same arguments.
type both [2]*Sender

func (b both) Sent(s *route.Sent, chains []prompt.Chain, at time.Time) uint64 {
	b[0].Sent(s, chains, at)
	return b[1].Sent(s, chains, at)
}

func (b both) FirstByte(id uint64, at time.Time) {
	for _, t := range b {
		t.FirstByte(id, at)
	}
}

func (b both) Answer(id, space uint64, chain []uint64, at time.Time) {
	for _, t := range b {
		t.Answer(id, space, chain, at)
	}
}

func (b both) Ended(id uint64, at time.Time) {
	for _, t := range b {
		t.Ended(id, at)
	}
}

func (b both) Forgotten(worker uint64) {
	for _, t := range b {
		t.Forgotten(worker)
	}
}

// The books of a router that applies each event by itself and of one that applies many at once, whole requests among
// them, agree, both live and in a replay.
func TestEventsSentAtOnce(t *testing.T) {
	t.Parallel()
	for _, replay := range []bool{false, true} {
		f := newFleet(t, 21, 1, 3, 20_000)
		from := f.routers[0]
		var senders both
		var receivers [2]*router
		for i := range senders {
			senders[i], _ = NewPair(from.pool, 7)
			receivers[i] = f.join()
			if replay {
				receivers[i].receiver.BeginReplay()
			}
		}
		from.pool.Tell(senders)
		hear := func(i int) {
			for _, frame := range senders[i].Take(1<<20, f.now) {
				if err := receivers[i].receiver.Apply(frame, f.now, f.now); err != nil {
					t.Fatal(err)
				}
				senders[i].Confirm([][]byte{frame})
			}
		}
		r := rand.New(rand.NewPCG(3, 4))
		for i := range 3000 {
			f.pass(time.Duration(1+r.IntN(20)) * 100 * time.Microsecond)
			k := -1
			if len(from.open) > 0 {
				k = r.IntN(len(from.open))
			}
			switch op := r.IntN(40); {
			case k < 0 || op < 14:
				from.open = append(from.open, send(t, from.pool, f.text(), f.now))
			case op < 22:
				if o := from.open[k]; !o.first {
					o.first = true
					o.trip.FirstByte(f.now)
				}
			case op < 36:
				from.open[k].answer(words(fmt.Sprint("answer ", r.IntN(1000)), 1+r.IntN(5)), f.now)
				from.open = slices.Delete(from.open, k, k+1)
			case op < 39:
				from.open[k].trip.End(&judge.Outcome{Kind: judge.Canceled}, route.End{At: f.now})
				from.open = slices.Delete(from.open, k, k+1)
			default:
				senders.Forgotten(worker.KeyOf(fmt.Sprint("w", r.IntN(3))))
			}
			hear(0)
			if i%12 == 11 {
				hear(1)
			}
			if i%60 != 59 {
				continue
			}
			one, other := receivers[0].view(f), receivers[1].view(f)
			if !slices.Equal(one, other) {
				t.Fatalf("replay %v, after %d things: sent one by one\n%q\nand at once\n%q", replay, i+1, one, other)
			}
			if a, b := receivers[0].pool.Experience(), receivers[1].pool.Experience(); a.Reuse != b.Reuse {
				t.Fatalf("replay %v, after %d things: two curves of reuse", replay, i+1)
			}
		}
		told, atOnce := senders[0].Stats().Records, senders[1].Stats().Records
		if atOnce > told*3/4 {
			t.Errorf("replay %v: %d records at once for %d: hardly a request was sent as a whole", replay, atOnce, told)
		}
	}
}
