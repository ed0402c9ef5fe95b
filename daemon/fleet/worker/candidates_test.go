package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// few returns the rows of candidates and how many workers were left out.
func (p *Pool) few(at float64, change func(q *Query)) ([]abi.Row, []*Worker, abi.Header, Standing) {
	var c abi.Header
	q := Query{At: p.after(at), Few: true, Means: &c, Count: new(Count)}
	if change != nil {
		change(&q)
	}
	rows, ws, s := p.Snapshot(q, nil, nil)
	return rows, ws, c, s
}

func has(rows []abi.Row, slot uint32) bool {
	return slices.ContainsFunc(rows, func(r abi.Row) bool { return r.Worker == slot })
}

// busyPool is a pool of n workers, of which worker i has i%7 requests in flight, and the first ones most.
func busyPool(t testing.TB, n int) *Pool {
	p := upPool(t, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		for range i%7 + max(0, 20-i) {
			p.send(i, Dispatch{PromptTokens: 500 + r.IntN(3000)}, 1)
		}
	}
	return p
}

// TestCandidates: of a large pool those get a row that hold the prompt, that the request names, and that have the least
// load by each measure. The means are those of all.
func TestCandidates(t *testing.T) {
	p := busyPool(t, 400)
	all := p.rows(2)
	holders := []prefix.Holder{{Slot: 6, Blocks: 9}, {Slot: 13, Blocks: 9}, {Slot: 20, Blocks: 4}}
	for slot := uint32(100); slot < 300; slot++ {
		holders = append(holders, prefix.Holder{Slot: slot, Blocks: 1})
	}
	look := func(q *Query) {
		q.Bound, q.Near[0], q.Holders = "w5", p.fleet.workers[12].key, holders
	}
	p.few(2, look) // makes the order
	p.send(0, Dispatch{PromptTokens: 10}, 2)
	rows, ws, c, standing := p.few(2, look)
	if standing != Ready || len(rows) > 80 || len(rows) != len(ws) || len(rows)+int(c.LeftOut) != 400 {
		t.Fatalf("%v, %d rows of %d workers, %d left out", standing, len(rows), len(ws), int(c.LeftOut))
	}
	if !slices.IsSortedFunc(rows, func(a, b abi.Row) int { return int(a.Worker) - int(b.Worker) }) {
		t.Error("the rows are not in order of slot")
	}
	for _, slot := range []uint32{5, 12, 6, 13, 20} {
		if !has(rows, slot) {
			t.Errorf("worker %d, which the request names or which holds the prompt, has no row", slot)
		}
	}
	least := func(what string, of func(r *abi.Row) float64) {
		best := slices.MinFunc(all, func(a, b abi.Row) int { return compareFloats(of(&a), of(&b)) })
		if i := slices.IndexFunc(rows, func(r abi.Row) bool { return of(&r) == of(&best) }); i < 0 {
			t.Errorf("no row has as little as worker %d: %s", best.Worker, what)
		}
	}
	least("in flight", func(r *abi.Row) float64 { return float64(r.InFlight) })
	least("wait", func(r *abi.Row) float64 { return r.Wait })
	least("room", func(r *abi.Row) float64 { return -r.Room() })
	wait, flight := 0., 0.
	for _, r := range p.rows(2) {
		wait, flight = wait+r.Wait/400, flight+float64(r.InFlight)/400
	}
	near(t, "the mean wait", float64(c.MeanWait), wait, .01*wait)
	near(t, "the mean in flight", float64(c.MeanFlight), flight, 1e-6)
	if small := busyPool(t, allOf); true {
		if rows, _, c, _ := small.few(2, nil); len(rows) != allOf || int(c.LeftOut) != 0 {
			t.Errorf("a pool of %d: %d rows, %d left out", allOf, len(rows), int(c.LeftOut))
		}
	}
}

// TestTurns: of a large pool the worker is a candidate that has the turn among the rows of all, and those that follow.
// So the shares are equal, whoever leaves or comes back. What a full worker's turns are is not one neighbour's.
func TestTurns(t *testing.T) {
	all := specs(300)
	for i := range all {
		all[i].Labels = map[string]string{"zone": fmt.Sprint(i % 3)}
	}
	p := upPoolOf(Config{Workers: all, MaxInFlight: 2})
	seq, at := uint64(0), 1.
	f := func(what string, fence Fence, n, rounds, over int) {
		t.Helper()
		shares := map[string]int{}
		for range n * rounds {
			seq, at = seq+1, at+.01
			var c Count
			rows, ws, h, _ := p.few(at, func(q *Query) { q.Fence, q.Turn, q.Count = fence, seq, &c })
			if c.Next == nil {
				t.Fatalf("%s: it is nobody's turn", what)
			}
			shares[c.Next.ID()]++
			whole, _, _ := p.Snapshot(Query{At: p.after(at), Fence: fence}, nil, nil)
			if len(whole) != n || len(rows)+int(h.LeftOut) < n || len(rows) > 50 {
				t.Fatalf("%s: %d rows of %d workers, want %d, %d left out", what, len(rows), len(whole), n, int(h.LeftOut))
			}
			turn := slices.Index(ws, c.Next)
			for i := range uint64(nextTurns) {
				if k := (turn + int(i)) % len(rows); over == 0 && rows[k].Key != whole[(seq-1+i)%uint64(n)].Key {
					t.Fatalf("%s: request %d may go to %s; want another one", what, seq, ws[k].ID())
				}
			}
		}
		for id, k := range shares {
			if k < rounds-min(1, over) || k > rounds+over {
				t.Errorf("%s: %s has %d requests in %d rounds", what, id, k, rounds)
			}
		}
		if len(shares) != n {
			t.Errorf("%s: %d workers have requests; want %d", what, len(shares), n)
		}
	}
	f("all", nil, 300, 2, 0)
	p.Drain("w7", true, p.after(at))
	p.kill(150, at)
	f("one is drained, one down", nil, 298, 2, 0)
	f("of a fence", Fence{"zone=1"}, 99, 3, 0)
	p.Drain("w7", false, p.after(at))
	f("the drained one is back", nil, 299, 2, 0)
	p.fleet.workers[9].engine.SetRest(judge.Sleeping, p.fleet.clock(p.after(at)))
	for range 400 { // the order looks at each worker in turn
		at += .01
		p.few(at, nil)
	}
	f("one sleeps, of which nobody was told", nil, 298, 1, 0)
	p.send(20, Dispatch{}, at)
	p.send(20, Dispatch{}, at)
	f("one is full", nil, 297, 20, 5)
}

// TestCandidatesOfOnePlace: of the holders some hold as much as others, and there is room for one of them.
func TestCandidatesOfOnePlace(t *testing.T) {
	p := busyPool(t, 400)
	var holders []prefix.Holder
	for i := range holding + 9 {
		holders = append(holders, prefix.Holder{Slot: uint32(399 - i), Blocks: uint32(max(1, holding-i))})
	}
	rows, _, _, standing := p.few(2, func(q *Query) { q.Holders = holders })
	n := 0
	for _, h := range holders {
		if has(rows, h.Slot) {
			n++
		}
	}
	if standing != Ready || n < holding || n == len(holders) {
		t.Errorf("%v, %d of %d holders; want %d or a few more", standing, n, len(holders), holding)
	}
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestNobodyIsOverlooked: while some worker can take a request, a request that candidates alone are looked at for finds
// one, whatever keeps the others from it.
func TestNobodyIsOverlooked(t *testing.T) {
	f := func(what string, c Config, keep func(p *Pool, i int), q func(*Query)) {
		t.Helper()
		c.Workers = specs(300)
		p := upPoolOf(c)
		p.few(1, nil)
		for i := range 300 {
			if i != 217 {
				keep(p, i)
			}
		}
		for _, at := range []float64{2, 2.1, 4} {
			rows, _, _, standing := p.few(at, q)
			if standing != Ready || !has(rows, p.fleet.workers[217].slot) {
				t.Errorf("%s, after %v s: %v, %d rows; want that of the one worker that can", what, at, standing, len(rows))
			}
		}
		keep(p, 217)
		if rows, _, _, standing := p.few(5, q); standing == Ready && len(rows) == 1 {
			t.Errorf("%s: the last one has a row too", what)
		}
	}
	drain := func(p *Pool, i int) { p.Drain(fmt.Sprintf("w%d", i), true, p.after(1)) }
	f("drained", Config{}, drain, nil)
	f("down", Config{}, func(p *Pool, i int) { p.kill(i, 1) }, nil)
	f("full", Config{MaxInFlight: 1}, func(p *Pool, i int) { p.send(i, Dispatch{}, 1) }, nil)
	f("backlogged", Config{MaxWait: .5}, func(p *Pool, i int) { p.send(i, Dispatch{PromptTokens: 900_000}, 1) }, nil)
	f("another model", Config{}, func(p *Pool, i int) {
		p.Listed(p.fleet.workers[i].number, []string{"other"}, nil)
	}, func(q *Query) { q.Model = "tiny" })
	f("asleep", Config{}, func(p *Pool, i int) {
		p.fleet.workers[i].engine.SetRest(judge.Sleeping, sec(1)) // without an event: the order does not know
	}, nil)
}

// TestCandidatesOfAFence: a fence has an order of its own, and nobody outside of it gets a row.
func TestCandidatesOfAFence(t *testing.T) {
	all := specs(400)
	for i := range all {
		all[i].Labels = map[string]string{"zone": fmt.Sprint(i % 2), "rare": fmt.Sprint(i % 40)}
	}
	p := upPoolOf(Config{Workers: all})
	for i := range 400 {
		if i%2 == 0 {
			p.send(i, Dispatch{PromptTokens: 1000}, 1)
		}
	}
	for fence, want := range map[string]int{"zone=0": 200, "zone=1": 200, "rare=3": 10} {
		rows, ws, c, _ := p.few(2, func(q *Query) { q.Fence = Fence{fence} })
		if len(rows)+int(c.LeftOut) != want || want > allOf && len(rows) > 40 {
			t.Errorf("%s: %d rows, %d left out; want %d together", fence, len(rows), int(c.LeftOut), want)
		}
		for _, w := range ws {
			if !w.inside(Fence{fence}) {
				t.Errorf("%s: worker %s has a row", fence, w.ID())
			}
		}
		if flight := float64(c.MeanFlight); fence == "zone=0" && flight != 1 || fence == "zone=1" && flight != 0 {
			t.Errorf("%s: %v in flight on the mean", fence, flight)
		}
	}
	for i := range 20 { // more fences than are kept in order
		rows, _, _, _ := p.few(2, func(q *Query) { q.Fence = Fence{"zone=1", fmt.Sprintf("!rare=%d", 2*i+1)} })
		if len(rows) == 0 {
			t.Fatalf("fence %d: no rows", i)
		}
	}
	for i := range all { // the labels change
		all[i].Labels = map[string]string{"zone": fmt.Sprint((i + 1) % 2)}
	}
	p.Update(all, p.after(3))
	_, ws, _, _ := p.few(4, func(q *Query) { q.Fence = Fence{"zone=1"} })
	for _, w := range ws {
		if w.slot%2 != 0 {
			t.Fatalf("worker %s has a row, by a label that it has lost", w.ID())
		}
	}
}

// TestTheOrderFollowsTheLoad plays random requests, and compares the order with what the rows of all show.
func TestTheOrderFollowsTheLoad(t *testing.T) {
	p := upPool(t, 200)
	r := rand.New(rand.NewPCG(3, 4))
	var tickets []*Ticket
	p.few(1, nil)
	for i := range 3000 {
		at := 1 + .003*float64(i)
		switch k := r.IntN(5); {
		case k < 2 || len(tickets) < 100:
			tickets = append(tickets, p.send(r.IntN(200), Dispatch{PromptTokens: r.IntN(4000)}, at))
		case k == 2:
			tickets[r.IntN(len(tickets))].FirstByte(p.after(at))
		default:
			k := r.IntN(len(tickets))
			tickets[k].FirstByte(p.after(at))
			tickets[k].End(p.after(at), judge.Outcome{Kind: judge.Answered})
			tickets = slices.Delete(tickets, k, k+1)
		}
		rows, _, c, _ := p.few(at, nil)
		if i%50 != 0 {
			continue
		}
		all, least := p.rows(at), uint32(1<<31)
		flight, wait := 0., 0.
		for _, row := range all {
			least = min(least, row.InFlight)
			flight, wait = flight+float64(row.InFlight)/200, wait+row.Wait/200
		}
		if !slices.ContainsFunc(rows, func(x abi.Row) bool { return x.InFlight == least }) {
			t.Fatalf("request %d: no candidate has %d in flight, as some worker has", i, least)
		}
		near(t, "the mean in flight", float64(c.MeanFlight), flight, 1e-4)
		near(t, "the mean wait", float64(c.MeanWait), wait, .2*wait+.05)
	}
}

func BenchmarkCandidates(b *testing.B) {
	for _, n := range []int{64, 256, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := busyPool(b, n)
			var rows []abi.Row
			var ws []*Worker
			q, i := Query{Few: true, Count: new(Count)}, 0
			b.ReportAllocs()
			for b.Loop() {
				at := 2 + float64(i)*.002
				q.At = p.after(at)
				rows, ws, _ = p.Snapshot(q, rows[:0], ws[:0])
				k := p.force(ws[i%len(ws)], Dispatch{PromptTokens: 1000}, at)
				k.FirstByte(q.At)
				k.End(q.At, judge.Outcome{Kind: judge.Answered})
				i++
			}
		})
	}
}
