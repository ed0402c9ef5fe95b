package peers

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// SMG is cache_aware of SGLang's model gateway. If the most requests in flight exceed the fewest by more than Gap, and
// by more than Factor times, the worker with the fewest gets the request. Else the worker with the longest match gets
// it, if that is more than Threshold of the prompt; else again the one with the fewest.
//
// Source: sgl-project/sglang, sgl-model-gateway/src/policies/cache_aware.rs (commit 053b63ff). It has two sets of
// defaults. The library's (policies/mod.rs, CacheAwareConfig): threshold .5, gap 32, factor 1.1, trees cut to 10,000
// characters a worker each 30 s. The command's: .3, 64, 1.5, 67,108,864 characters, 120 s. Of several that hold the
// last node of a match its tree gives the first, as here. The later repository lightseekorg/smg compares the
// candidate's load with the mean in place of the extremes; that form is not here.
type SMG struct {
	remembering
	Threshold   float64
	Gap, Factor float64
}

// Choose implements trial.Chooser.
func (s *SMG) Choose(_ time.Duration, q *trial.Request, fleet []trial.View) int {
	s.look(q, fleet)
	least, most := math.Inf(1), 0.
	for i := range fleet {
		if fleet[i].Up {
			least, most = min(least, float64(fleet[i].InFlight)), max(most, float64(fleet[i].InFlight))
		}
	}
	if most-least > s.Gap && most > least*s.Factor {
		return s.fewest(fleet)
	}
	if best, _ := s.longest(fleet); best >= 0 && s.share(best, q) > s.Threshold {
		return best
	}
	return s.fewest(fleet)
}

// LLMD is llm-d's sum of three scorers: the matched part of the prompt, how short the waiting queue is between the
// fleet's shortest (1) and longest (0), and the free part of the KV cache.
//
// Sources: llm-d/llm-d-router, pkg/epp/framework/plugins/scheduling/scorer: prefix/plugin.go, queuedepth/queue.go,
// kvcacheutilization/kvcache_utilization.go (commits 068b68d0, 2342697f), max-score picker. Weights 3, 2, 2 are those
// of its guides' configuration. Its approximate index takes 256 blocks of 16 tokens of a prompt and keeps 31,250 a
// worker, heads the oldest.
type LLMD struct {
	remembering
	Prefix, Queue, KV float64 // weights
	Cap               int     // tokens of a prompt that count; 0 = all
}

// Choose implements trial.Chooser.
func (l *LLMD) Choose(_ time.Duration, q *trial.Request, fleet []trial.View) int {
	seen := *q
	if l.Cap > 0 {
		seen.Chain = q.Chain[:min(len(q.Chain), l.Cap/max(1, q.BlockTokens))]
		seen.Prompt = min(q.Prompt, l.Cap)
	}
	l.look(&seen, fleet)
	shortest, longest := math.MaxInt, 0
	for i := range fleet {
		if fleet[i].Up {
			shortest, longest = min(shortest, fleet[i].Waiting), max(longest, fleet[i].Waiting)
		}
	}
	return l.turn(smallest(fleet, l.next, func(i int) float64 {
		queue := 1.
		if longest > shortest {
			queue = float64(longest-fleet[i].Waiting) / float64(longest-shortest)
		}
		return -(l.Prefix*l.share(i, &seen) + l.Queue*queue + l.KV*(1-fleet[i].KVUsage))
	}))
}

// Sent implements trial.Chooser.
func (l *LLMD) Sent(now time.Duration, q *trial.Request, worker int) {
	if l.Cap == 0 {
		l.remembering.Sent(now, q, worker)
		return
	}
	chain := q.Chain[:min(len(q.Chain), l.Cap/max(1, q.BlockTokens))]
	l.memory.touch(now, worker, chain, q, l.kv[worker])
}

// AIBrix is the prefix-cache policy of AIBrix. Workers with a match are gone through by the longest, then the fewest
// requests: the first with no more requests than the mean and Deviations standard deviations gets the request. If
// there is none, the worker with the fewest requests does. If the busiest has more than Factor times (mean + 1)
// requests, and Gap more than the idlest, only the idlest are looked at.
//
// Source: vllm-project/aibrix, pkg/plugins/gateway/algorithms/prefix_cache.go (commit 01de8a51). Defaults: deviations
// 1, factor 2, gap 8. Matches are compared in whole percent.
type AIBrix struct {
	remembering
	Deviations, Factor, Gap float64
}

// Choose implements trial.Chooser.
func (a *AIBrix) Choose(_ time.Duration, q *trial.Request, fleet []trial.View) int {
	a.look(q, fleet)
	var n, sum, squares, most float64
	least := math.Inf(1)
	for i := range fleet {
		if v := float64(fleet[i].InFlight); fleet[i].Up {
			n, sum, squares = n+1, sum+v, squares+v*v
			least, most = min(least, v), max(most, v)
		}
	}
	if n == 0 {
		return -1
	}
	mean := sum / n
	limit := mean + a.Deviations*math.Sqrt(max(0, squares/n-mean*mean))
	if most > a.Factor*(mean+1) && most-least >= a.Gap {
		limit = min(limit, least) // only the idlest
	}
	best := smallest(fleet, a.next, func(i int) float64 {
		match := math.Floor(100 * a.share(i, q))
		if match == 0 || float64(fleet[i].InFlight) > limit {
			return math.Inf(1)
		}
		return -match + float64(fleet[i].InFlight)/1e6
	})
	if a.share(best, q) < .01 || float64(fleet[best].InFlight) > limit {
		return a.fewest(fleet)
	}
	return a.turn(best)
}

// LoadAware takes from the matched part of the prompt Beta times the worker's requests in flight over the fleet's mean,
// and chooses the largest. No product is known to have just this rule. It is the shortest that weighs a match against a
// relative load, and at Beta .3 it was the best peer in overload: a full match is left at about 3 times the mean.
type LoadAware struct {
	remembering
	Beta float64
}

// Choose implements trial.Chooser.
func (l *LoadAware) Choose(_ time.Duration, q *trial.Request, fleet []trial.View) int {
	l.look(q, fleet)
	up, sum := 0, 0
	for i := range fleet {
		if fleet[i].Up {
			up++
			sum += fleet[i].InFlight
		}
	}
	mean := max(1, float64(sum)/float64(max(1, up)))
	return l.turn(smallest(fleet, l.next, func(i int) float64 {
		return l.Beta*float64(fleet[i].InFlight)/mean - l.share(i, q)
	}))
}
