package route

import (
	"fmt"
	"math"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// SplitRule is when another worker than the one that answers computes the prompt.
type SplitRule struct {
	Threshold int          // tokens that the one that answers lacks, if Always that the prompt has; with fewer it is alone
	Fence     worker.Fence // of the workers that may compute it
	Near      string       // a label that it had better have; "" = none
	Far       float64      // seconds by which one without it is worse
	Rate      float64      // tokens a second whose KV comes from there; 0 = as the pool has learnt it
	Always    bool         // the threshold alone decides, of the whole prompt
}

// Splits reports whether another worker is to compute the prompt. Call it before Send. A strategy that names a pair
// decides that itself.
//
// Alone, the worker computes what it lacks behind the prefill that is queued there, and each answer that it is writing
// stands still for as long: an engine's step with a prefill in it takes as long as the prefill. In two parts, the
// prompt waits at the prefiller that has it first, and its KV is brought over. Its wait there counts twice, as others
// will wait for it. What takes fewer seconds of all clients together is chosen. While nothing is known of the transfer
// the threshold decides, and so it does if no prefiller is up: whoever asks for one counts that.
func (rule *SplitRule) Splits(c *Choice, to Target) bool {
	is, _ := rule.Decide(c, to)
	return is
}

// Decide is Splits. Of a prompt of Threshold tokens that is not split it says why.
func (rule *SplitRule) Decide(c *Choice, to Target) (splits bool, why string) {
	if by, named := Paired(c, to); named {
		return by != nil, ""
	}
	if c.ask.Shared && c.fleet.frame.Rows[to.row].Prefills() { // it computes the prompts of its own answers
		return false, ""
	}
	if rule.Always { // as HyperPod's routingThreshold: whatever of the prompt is cached
		return c.size.all >= rule.Threshold, ""
	}
	lacks := Lacking(c, to)
	if c.size.all < rule.Threshold {
		return false, ""
	}
	if lacks < rule.Threshold {
		return false, fmt.Sprintf("it lacks %d of %d tokens, fewer than threshold", lacks, c.size.all)
	}
	rate := rule.Rate
	if rate <= 0 {
		rate = c.pool.TransferRate(c.at)
	}
	if rate <= 0 || c.space == nil {
		return true, ""
	}
	h, row := &c.fleet.frame.Header, &c.fleet.frame.Rows[to.row]
	prefill := h.Prefill(row)
	alone := row.Wait + prefill*(1+float64(writing(row)))
	elsewhere := prefillElsewhere(c, rule) + float64(lacks)/rate
	if math.IsInf(elsewhere, 1) || elsewhere < alone {
		return true, ""
	}
	return false, fmt.Sprintf("that takes %.2f s there, and %.2f s by a prefiller", alone, elsewhere)
}

// OnlyDecodes reports whether the worker was started for answers alone.
func OnlyDecodes(c *Choice, to Target) bool { return !c.fleet.frame.Rows[to.row].Prefills() }

// prefillElsewhere returns the fewest seconds of a worker inside of the fence, +Inf if there is none: those of the
// prefill, twice those that it waits for, and those by which it holds up answers there.
func prefillElsewhere(c *Choice, rule *SplitRule) float64 {
	d := matchPrefillers(c, rule)
	defer decisions.Put(d)
	f := &d.fleet
	least := math.Inf(1)
	for i := range f.frame.Rows {
		row := &f.frame.Rows[i]
		least = min(least, 2*row.Wait+f.frame.Header.Prefill(row)+row.Delay)
	}
	return least
}

// matchPrefillers returns the rows of the workers inside of the fence, as c's strategy sees such rows behind its own.
// Put them back.
func matchPrefillers(c *Choice, rule *SplitRule) *decision {
	d := decisions.Get().(*decision)
	d.reset(&Ask{})
	f, of := &d.fleet, &c.fleet
	f.frame.Header, f.held.wanted = of.frame.Header, of.held.wanted
	f.beginning.Parts, f.beginning.Tokens = append(f.beginning.Parts, of.beginning.Parts...), of.beginning.Tokens
	f.fill(c.pool.Workers, toPrefill(c.query(), rule.Fence))
	f.match(c.pool, c.space, &c.below, &c.ask)
	fillDelay(&f.frame, &c.ask, Prefill)
	addFar(f.frame.Rows, c.pool.Workers, rule.Near, rule.Far)
	f.dropBacklogged(c.pool.Workers.MaxWait(), "")
	return d
}
