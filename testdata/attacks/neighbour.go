package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/databench/proc"
	"github.com/warmpath/warmpath/testdata/databench/wire"
)

// rounds is how many neighbour plays.
var rounds = 5

const (
	measured = 1200 * time.Millisecond // each of the three parts of a round
	perSec   = 200                     // requests of the other pool
)

// beside is what neighbour measured in the parts of its rounds.
type beside struct {
	rounds []parts
	own    [3]time.Duration // the longest of the 4 clients' own
	grew   int64            // the daemon's memory
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
// how many rounds are enough to show it depends on what else the machine does.
func neighbour(l *lab, text, keys, more string) (ok bool, seen string) {
	b, err := rounded(l, text, keys, more)
	if err != nil {
		return false, err.Error()
	}
	var p99, longest [3]time.Duration
	for i := range p99 {
		p99[i], longest[i] = b.quantile(i, .99).Round(10*time.Microsecond), round(b.quantile(i, 1))
	}
	ok = longest[1] <= 2*max(longest[0], longest[2])+setAside && b.own[1] <= 2*max(b.own[0], b.own[2])+setAside &&
		b.grew < 128<<20
	at, low, high := p99Ratio(b.rounds)
	return ok, fmt.Sprintf("another pool's p99 without %v, with %v, without %v: %.2f (95 %%: %.2f to %.2f), %s; "+
		"longest %v; its own longest %v; memory +%s",
		p99[0], p99[1], p99[2], at, low, high, tenPercent(at, low, high), longest, b.own, mb(b.grew))
}

// setAside is what a strategy's picks take until it is set aside: five of 5 ms on each of two cores, twice over for
// the machine.
const setAside = 100 * time.Millisecond

// rounded measures what a slow strategy costs another pool. In each part of a round 4 clients use one pool, and a
// steady light load goes to the pool sim. The 4 clients use a pool whose strategy is well, then the pool of the slow
// strategy, then the first again: so proxying for the 4 clients costs the same with and without. All rounds are of
// one daemon: a strategy is set aside in the first, and tried again half a minute later.
func rounded(l *lab, text, keys, more string) (b beside, err error) {
	d, err := l.threePools(text, keys, more)
	if err != nil {
		return b, err
	}
	answers(d.Addr)
	most, was := mostRSS(d), d.RSS()
	for range rounds {
		var took parts
		for i, model := range []string{"well", "bad", "well"} {
			var own time.Duration
			took[i], own = besideOthers(l, d.Addr, model)
			b.own[i] = max(b.own[i], round(own))
		}
		b.rounds = append(b.rounds, took)
	}
	b.grew = most() - was
	if trouble := l.end(d); trouble != "" {
		return b, fmt.Errorf("memory +%s: %s", mb(b.grew), trouble)
	}
	return b, nil
}

// threePools is a daemon with the pool bad, which an attacking strategy serves, and two whose strategies are well:
// the pool well, for the same clients, and the pool sim of others.
func (l *lab) threePools(text, keys, more string) (*proc.Proc, error) {
	bad, err := l.strategy(text)
	if err != nil {
		return nil, err
	}
	var at [3][]string
	for i, model := range []string{"bad", "well", "sim"} {
		at[i], err = l.fleet(model)
		if err != nil {
			return nil, err
		}
	}
	pool := func(name string, at []string) string {
		return fmt.Sprintf("[[pools]]\nname = %q\nmodels = [%q]\nstrategy = \"roundrobin\"\n", name, name) +
			proc.Tables("pools.workers", at)
	}
	return l.serve(proc.Router{
		Server:  l.moduleCache(),
		Pool:    "name = \"bad\"\nmodels = [\"bad\"]\nstrategy = \"mine\"\n",
		Workers: at[0],
		Strategies: pool("well", at[1]) + pool("sim", at[2]) + fmt.Sprintf("[strategies.mine]\npath = %q\n%s", bad, keys) +
			more,
	})
}

// besideOthers returns what the requests of the pool sim took beside 4 clients of a pool, and the longest of the
// clients' own.
func besideOthers(l *lab, addr, model string) (others []time.Duration, own time.Duration) {
	var mu sync.Mutex // guards own
	var all sync.WaitGroup
	all.Go(func() {
		wire.Closed(l.ctx, addr, 4, measured, func(c *wire.Client, _ int) {
			a := c.Do(request("POST", chatPath, chat(model), jsonType), false)
			mu.Lock()
			own = max(own, a.Took)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond) // leaves the machine to the other pool
		})
	})
	others = make([]time.Duration, int(perSec*measured.Seconds()))
	wire.Open(l.ctx, addr, perSec, 16, measured, func(c *wire.Client, i int, due time.Time) {
		c.Do(request("POST", chatPath, chat("sim"), jsonType), false)
		others[i] = time.Since(due)
	})
	all.Wait()
	return others, own
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
