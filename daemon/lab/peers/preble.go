package peers

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Preble is E2, "exploitation and exploration". If more than Threshold of the prompt is held somewhere, those that hold
// the most are the candidates, and the least loaded of these gets the request, unless its load is over Rebalance times
// the fleet's least: then, as for all other requests, the worker of the smallest sum of three costs in seconds gets it:
//
//	load      prefill and decode of what it was sent in the last three minutes
//	eviction  Eviction times the prefill of what it would push out
//	prefill   of what it does not hold
//
// Source: WukLab/preble, multi_node/global_scheduler_with_time.py, GlobalSchedulerWithTime (commit 0c962c4c), and the
// paper that it belongs to, arXiv 2407.00023. Defaults: threshold .5 ("more cached than not"), eviction off
// (enable_eviction=False), no rebalancing in that file; the paper has it. Its regressions of prefill and decode time
// are replaced by those of sdk/abi and by DecodeSeconds; it splits no hot prefix, since the window's load sends the
// next request elsewhere by itself.
type Preble struct {
	remembering
	loads []window
	mean  float64 // tokens of an answer, a running mean

	Threshold float64
	Rebalance float64 // 0 = never
	Eviction  float64
}

// DecodeSeconds is the share of a step that one more token takes: a step of 12 ms for 64 sequences, and .1 ms each.
const DecodeSeconds = .012/64 + .0001

const prebleWindow = 3 * time.Minute

// window sums what was sent in the last three minutes.
type window struct {
	sent    []sending
	seconds float64
}

type sending struct {
	at      time.Duration
	seconds float64
}

func (w *window) load(now time.Duration) float64 {
	for len(w.sent) > 0 && w.sent[0].at < now-prebleWindow {
		w.seconds -= w.sent[0].seconds
		w.sent = w.sent[1:]
	}
	return w.seconds
}

func (p *Preble) of(worker int) *window {
	for worker >= len(p.loads) {
		p.loads = append(p.loads, window{})
	}
	return &p.loads[worker]
}

// prefill returns the seconds to compute n tokens at the end of a prompt of l.
func prefill(n, l float64) float64 { return n * (abi.PrefillSeconds + abi.ContextSeconds*(l-n/2)) }

// missing returns the tokens of the prompt that a worker does not hold.
func (p *Preble) missing(worker int, q *trial.Request) float64 {
	return max(1, float64(q.Prompt-p.matches[worker]*q.BlockTokens))
}

// Choose implements trial.Chooser.
func (p *Preble) Choose(now time.Duration, q *trial.Request, fleet []trial.View) int {
	p.look(q, fleet)
	_, longest := p.longest(fleet)
	least := math.Inf(1)
	for i := range fleet {
		if fleet[i].Up {
			least = min(least, p.of(i).load(now))
		}
	}
	if float64(longest*q.BlockTokens) > p.Threshold*float64(q.Prompt) {
		best := smallest(fleet, p.next, func(i int) float64 {
			if p.matches[i] < longest {
				return math.Inf(1)
			}
			return p.of(i).load(now)
		})
		// The load of a fleet that has just begun is nearly nothing: a second of it is no imbalance.
		if p.Rebalance == 0 || p.of(best).load(now) <= p.Rebalance*max(1, least) {
			return p.turn(best)
		}
	}
	return p.turn(smallest(fleet, p.next, func(i int) float64 { return p.cost(now, i, q, &fleet[i]) }))
}

func (p *Preble) cost(now time.Duration, worker int, q *trial.Request, v *trial.View) float64 {
	missing := p.missing(worker, q)
	cost := p.of(worker).load(now) + prefill(missing, float64(q.Prompt))
	if p.Eviction > 0 && worker < len(p.memory.of) {
		free := float64(v.KVTokens - len(p.memory.of[worker].at)*q.BlockTokens)
		if out := missing - max(0, free); out > 0 {
			cost += p.Eviction * prefill(out, float64(q.Prompt))
		}
	}
	return cost
}

// Sent implements trial.Chooser.
func (p *Preble) Sent(now time.Duration, q *trial.Request, worker int) {
	w := p.of(worker)
	seconds := prefill(p.missing(worker, q), float64(q.Prompt)) + DecodeSeconds*p.mean
	w.sent = append(w.sent, sending{at: now, seconds: seconds})
	w.seconds += seconds
	p.remembering.Sent(now, q, worker)
}

// End implements trial.Chooser.
func (p *Preble) End(now time.Duration, q *trial.Request, worker int, e *trial.End) {
	if e.Output > 0 {
		p.mean += .02 * (float64(e.Output) - p.mean)
	}
	p.remembering.End(now, q, worker, e)
}

// Down implements trial.Chooser.
func (p *Preble) Down(now time.Duration, worker int) {
	*p.of(worker) = window{}
	p.remembering.Down(now, worker)
}
