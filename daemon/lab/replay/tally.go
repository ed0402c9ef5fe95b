package replay

import (
	"math"
	"slices"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// KVBlockTokens is the size of a worker's KV block, vLLM's default, in which
// hits are counted.
const KVBlockTokens = 16

// PrefillSeconds returns the work of computing the prompt's tokens that were not
// cached, n = prompt - cached, each of which attends to all before it:
//
//	c1*n + c2*n*(prompt - n/2)        c1 and c2 as in sdk/abi
//
// They are what the router starts from; busiest over mean does not change with the
// speed of the workers, only with the ratio of the two. PrefillSeconds(15000, 0) is
// 1.229 s: one for the tokens, .229 for attention.
func PrefillSeconds(prompt, cached int) float64 {
	n := float64(prompt - cached)
	return abi.PrefillSeconds*n + abi.ContextSeconds*n*(float64(prompt)-n/2)
}

// outcome is what a run has gathered once all its requests have ended.
type outcome struct {
	model   string
	speed   float64
	wall    time.Duration
	trace   []Request
	samples []sample
	counts  *counts
}

// seconds returns a wall time as seconds of trace time.
func (o *outcome) seconds(d time.Duration) float64 { return d.Seconds() * o.speed }

// tally returns the figures of a run.
func tally(o outcome) Result {
	sent := int(o.counts.sent.Load())
	res := Result{
		Model:        o.model,
		Speed:        o.speed,
		Requests:     len(o.trace),
		Sent:         sent,
		Answered:     int(o.counts.answered.Load()),
		Errors:       map[string]int{},
		Held:         int(o.counts.held.Load()),
		PeakInFlight: int(o.counts.peak.Load()),
		WallSeconds:  o.wall.Seconds(),
	}
	if n := len(o.trace) - sent; n > 0 {
		res.Errors["not sent"] = n
	}
	var ttft, total []float64
	work := map[string]float64{}
	requests := map[string]float64{}
	for i := range o.samples {
		s := &o.samples[i]
		if !s.sent {
			continue
		}
		res.LateSecondsMax = max(res.LateSecondsMax, o.seconds(s.late))
		if s.ttft > 0 {
			ttft = append(ttft, o.seconds(s.ttft))
		}
		if s.err != nil {
			res.addError(s)
			continue
		}
		total = append(total, o.seconds(s.total))
		if s.worker != "" {
			requests[s.worker]++
		}
		if s.usage == nil {
			res.NoUsage++
			continue
		}
		res.addUsage(s.usage, o.trace[i].InputTokens)
		if s.worker != "" {
			work[s.worker] += PrefillSeconds(s.usage.Prompt, s.usage.cached())
		}
	}
	res.TTFT = distribution(ttft)
	res.Total = distribution(total)
	res.BlockHitRate = ratio(res.CachedBlocks, res.PromptBlocks)
	res.TokenHitRate = ratio(res.CachedTokens, res.PromptTokens)
	res.Workers = len(requests)
	res.WorkBusiestOverMean = busiest(work)
	res.RequestsBusiestOverMean = busiest(requests)
	return res
}

// addError counts a request that failed.
func (res *Result) addError(s *sample) {
	res.Errors[s.kind]++
	if res.FirstError == "" {
		res.FirstError = s.err.Error()
	}
}

// addUsage counts what a worker reported of a request.
func (res *Result) addUsage(u *usage, traceTokens int) {
	res.TraceTokens += traceTokens
	res.PromptTokens += u.Prompt
	res.CachedTokens += u.cached()
	res.PromptBlocks += u.Prompt / KVBlockTokens
	res.CachedBlocks += u.cached() / KVBlockTokens
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// busiest returns the largest value over the mean of those there are; 0 if none.
func busiest(by map[string]float64) float64 {
	var top, sum float64
	for _, v := range by {
		top = max(top, v)
		sum += v
	}
	if sum == 0 {
		return 0
	}
	return top / (sum / float64(len(by)))
}

// distribution returns the figures of v, which it sorts in place.
func distribution(v []float64) Distribution {
	if len(v) == 0 {
		return Distribution{}
	}
	slices.Sort(v)
	var sum float64
	for _, x := range v {
		sum += x
	}
	return Distribution{
		Count: len(v),
		Mean:  sum / float64(len(v)),
		P50:   percentile(v, 50),
		P90:   percentile(v, 90),
		P99:   percentile(v, 99),
		Max:   v[len(v)-1],
	}
}

// percentile returns the nearest rank: the smallest value that at least p percent
// of the sorted values do not exceed. It is always one that was measured.
func percentile(sorted []float64, p float64) float64 {
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}
