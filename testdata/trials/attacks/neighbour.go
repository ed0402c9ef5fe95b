package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// rounds is how many neighbour plays. One shows gross harm alone, which is what every run is for; -rounds 60 shows on a
// quiet machine what another pool's p99 is to within some 5 %.
var rounds = 1

const (
	measured = 1200 * time.Millisecond // each of the three parts of a round
	perSec   = 200                     // requests of the other pool
)

// beside is what neighbour measured in the parts of its rounds.
type beside struct {
	rounds []parts
	own    [3]time.Duration // the longest of the 4 clients' own
	failed [3]int           // of their requests, those not answered with 200
	grew   int64            // the daemon's memory, beyond what the first parts of rounds would give it; not of during
	peak   int64            // the most that it grew within one of these parts
}

// disturbance is what neighbour tries.
type disturbance struct {
	module     string // of the pool bad, in text
	keys, more string // of its table, and behind it
	logged     []string
	// during, if there is one, is called as each part of a round begins, 0 to 2, and what it returns behind that part.
	// The 4 clients use the pool bad in no part then, and what the memory grows by over all parts says nothing, as each
	// has a load.
	during func(d *rig.Proc, r rig.Router, part int) (mend func())
	lies   bool // its own requests may be refused
}

// told is the ratio of the p99s in words. The strategy is set aside in the first round, and the others are alike: so
// they have a ratio of their own.
func (b *beside) told() string {
	at, low, high := p99Ratio(b.rounds)
	all := fmt.Sprintf("%.2f (95 %%: %.2f to %.2f), %s", at, low, high, tenPercent(at, low, high))
	if len(b.rounds) == 1 {
		return fmt.Sprintf("%.2f in one round", at)
	}
	at, low, high = p99Ratio(b.rounds[1:])
	return fmt.Sprintf("%s; from the second round on, as it is set aside, %.2f (%.2f to %.2f), %s", all, at, low, high,
		tenPercent(at, low, high))
}

// quantile is that of the other pool's requests in part i of all rounds.
func (b *beside) quantile(i int, q float64) time.Duration {
	var all []time.Duration
	for k := range b.rounds {
		all = append(all, b.rounds[k][i]...)
	}
	return wire.Quantile(all, q)
}

// neighbour judges what a slow strategy does to another pool. It is broken if a request of the other pool, or of the
// strategy's own, is held longer than the picks that a strategy has until it is set aside can hold it, or if memory
// grows.
//
// The other pool's p99 is to be within 10 % of what it is without the strategy. The ratio is printed with an interval:
// how many rounds are enough to show it depends on what else the machine does. A request that is held in one try may
// have waited for something else that the machine did: what a strategy does it does in each of three.
func neighbour(l *lab, what disturbance) (ok bool, seen string) {
	const tries = 3
	for try := 1; ; try++ {
		b, err := rounded(l, what)
		if err != nil {
			return false, err.Error()
		}
		var p99, longest [3]time.Duration
		for i := range p99 {
			p99[i], longest[i] = b.quantile(i, .99).Round(10*time.Microsecond), round(b.quantile(i, 1))
		}
		held := longest[1] > 2*max(longest[0], longest[2])+setAside ||
			b.own[1] > 2*max(b.own[0], b.own[2])+setAside
		if held && try < tries && l.ctx.Err() == nil {
			continue
		}
		ok = !held && max(b.grew, b.peak) < 128<<20 && (b.failed == [3]int{} || what.lies)
		return ok, fmt.Sprintf("another pool's p99 without %v, with %v, without %v: %s; "+
			"longest %v; its own longest %v, not answered %v; memory +%s, at most +%s; try %d",
			p99[0], p99[1], p99[2], b.told(), longest, b.own, b.failed, mb(b.grew), mb(b.peak), try)
	}
}

// setAside is what a strategy's picks take until it is set aside: five of 5 ms on each of two cores, twice over for
// the machine.
const setAside = 100 * time.Millisecond

// rounded measures what a slow strategy costs another pool. In each part of a round 4 clients use one pool, and a
// steady light load goes to the pool sim. The 4 clients use a pool whose strategy is well, then the pool of the slow
// strategy, then the first again: so proxying for the 4 clients costs the same with and without. All rounds are of
// one daemon: a strategy is set aside in the first, and tried again half a minute later.
//
// The daemon's memory grows as it learns, from any traffic. What it grows by is therefore told less three times what it
// grew by in the rounds' first parts: each part has as many requests.
func rounded(l *lab, what disturbance) (b beside, err error) {
	d, r, err := l.threePools(what)
	if err != nil {
		return b, err
	}
	answers(d.Addr)
	first, usual := d.RSS(), int64(0)
	for range rounds {
		var took parts
		for i, model := range []string{"well", "bad", "well"} {
			mend := func() {}
			if what.during != nil {
				model = "well"
				mend = what.during(d, r, i)
			}
			most, was := mostRSS(d), d.RSS()
			var own answered
			took[i], own = besideOthers(l, d.Addr, model)
			b.own[i], b.failed[i] = max(b.own[i], round(own.longest)), b.failed[i]+own.failed
			peak := most()
			mend()
			switch i {
			case 0:
				usual += d.RSS() - was
			case 1:
				b.peak = max(b.peak, peak-was)
			}
		}
		b.rounds = append(b.rounds, took)
	}
	if what.during == nil {
		b.grew = d.RSS() - first - 3*max(usual, 0)
	}
	for _, text := range what.logged {
		if !d.Logged(text) {
			err = errors.Join(err, fmt.Errorf("the log has no %q: %.600s", text, d.Log(600)))
		}
	}
	if trouble := l.end(d); trouble != "" {
		err = errors.Join(err, fmt.Errorf("memory +%s: %s", mb(b.grew), trouble))
	}
	return b, err
}

// threePools is a daemon with the pool bad, which an attacking strategy serves, and two whose strategies are well:
// the pool well, for the same clients, and the pool sim of others.
func (l *lab) threePools(what disturbance) (d *rig.Proc, r rig.Router, err error) {
	bad, err := l.strategy(what.module)
	if err != nil {
		return nil, r, err
	}
	var at [3][]string
	for i, model := range []string{"bad", "well", "sim"} {
		at[i], err = l.fleet(model)
		if err != nil {
			return nil, r, err
		}
	}
	pool := func(name string, at []string) string {
		return fmt.Sprintf("[[pools]]\nname = %q\nmodels = [%q]\nstrategy = \"roundrobin\"\n", name, name) +
			rig.Tables("pools.workers", at)
	}
	r = rig.Router{
		Server:  l.moduleCache(),
		Pool:    "name = \"bad\"\nmodels = [\"bad\"]\nstrategy = \"mine\"\n",
		Workers: at[0],
		Strategies: pool("well", at[1]) + pool("sim", at[2]) +
			fmt.Sprintf("[strategies.mine]\npath = %q\n%s", bad, what.keys) + what.more,
	}
	d, err = l.serve(r)
	return d, r, err
}

// answered is what came of the 4 clients' requests.
type answered struct {
	longest time.Duration
	failed  int
}

// besideOthers returns what the requests of the pool sim took beside 4 clients of a pool, and what came of the clients'
// own.
func besideOthers(l *lab, addr, model string) (others []time.Duration, own answered) {
	var mu sync.Mutex // guards own
	var all sync.WaitGroup
	all.Go(func() {
		wire.Closed(l.ctx, addr, 4, measured, func(c *wire.Client, _ int) {
			a := c.Do(wire.Request("POST", chatPath, chat(model), jsonType), false)
			mu.Lock()
			own.longest = max(own.longest, a.Took)
			if a.Status != 200 && l.ctx.Err() == nil {
				own.failed++
			}
			mu.Unlock()
			time.Sleep(5 * time.Millisecond) // leaves the machine to the other pool
		})
	})
	others = make([]time.Duration, int(perSec*measured.Seconds()))
	wire.Open(l.ctx, addr, perSec, 16, measured, func(c *wire.Client, i int, due time.Time) {
		c.Do(wire.Request("POST", chatPath, chat("sim"), jsonType), false)
		others[i] = time.Since(due)
	})
	all.Wait()
	return others, own
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
