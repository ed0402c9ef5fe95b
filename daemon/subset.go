package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/adapt"
	"github.com/warmpath/warmpath/daemon/fleet/subset"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// subsetLinger is how long a worker that was used for a while only is used after that: until the workers that take its
// place have been up for a while.
var subsetLinger = 30 * time.Second // tests set another

// choosing is what the subset of a pool is chosen from. The workers of c are all that were found.
func (p *pool) choosing(c *conf.Pool, workers []worker.Spec) *subset.Input {
	in := &subset.Input{Size: c.Subset, Workers: workers}
	if c.Subset == 0 {
		return in
	}
	now := time.Now()
	in.Self, in.Others = adapt.RouterName(p.daemon.atStart), p.daemon.peers.Names(c.Name, now)
	if p.route != nil { // else the pool begins
		in.Stats = p.route.Workers.Stats(now)
	}
	for _, k := range p.daemon.state.Load().conf.Keys {
		if f := k.Fence(); f != nil {
			in.Fences = append(in.Fences, f)
		}
	}
	return in
}

// keepSubset chooses anew which workers this router uses, when that is due, until ctx ends.
func (p *pool) keepSubset(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.subset.Due:
			p.refit()
		}
	}
}

// refit changes the workers that this router uses, if it is to use others.
func (p *pool) refit() {
	p.changing.Lock()
	defer p.changing.Unlock()
	before := p.set.Load()
	c := before.conf
	c.Workers = before.all
	members := p.subset.Choose(p.choosing(&c, before.known), time.Now())
	if maps.Equal(members, before.members) {
		return
	}
	if err := p.use(c, members); err != nil {
		if p.unfit.Due(time.Now(), time.Minute) { // it is tried again each second
			p.log.Error("the subset of workers cannot be changed: that before stays", "error", err)
		}
		return
	}
	p.log.Info("the workers that this router uses have changed", "used", len(members), "of", len(before.all),
		"more", without(members, before.members), "fewer", without(before.members, members))
}

// without names the workers of one map that another does not have, and why they are used. A few of many are named.
func without(some, others map[string]subset.Member) string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(some)) {
		_, has := others[id]
		switch why := some[id].Why; {
		case has:
		case why == "":
			all = append(all, id)
		default:
			all = append(all, id+" ("+why+")")
		}
	}
	text := strings.Join(all[:min(len(all), mostNamed)], ", ")
	if more := len(all) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// mostNamed bounds the workers in a log line.
const mostNamed = 8
