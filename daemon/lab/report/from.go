package report

import (
	"math"

	"github.com/warmpath/warmpath/daemon/lab/trial"
)

// FromTrial returns the figures of a simulated run. Requests without a first token are in no time and in no hit rate;
// they count as lost.
func FromTrial(t *trial.Run, peer bool) Run {
	ttft, tpot := t.Values((*trial.Outcome).TTFT), t.Values((*trial.Outcome).TPOT)
	answered := t.Count(trial.Answered)
	f := Figures{
		Requests: len(t.Outcomes), Lost: len(t.Outcomes) - answered, Moved: t.Moved, Preemptions: int(t.Preemptions()),
		OutputTokens: t.OutputTokens(), Seconds: t.Ended.Seconds(), GPUSeconds: t.GPUSeconds, Imbalance: t.Imbalance(),
		Fallbacks: t.Fallbacks,
		TTFTMean:  known(trial.Mean(ttft)), TTFTP50: known(trial.Quantile(ttft, .5)),
		TTFTP90: known(trial.Quantile(ttft, .9)), TTFTP99: known(trial.Quantile(ttft, .99)),
		TPOTMean: known(trial.Mean(tpot)), TPOTP90: known(trial.Quantile(tpot, .9)),
	}
	if t.ITLP50 > 0 {
		f.ITLP50, f.ITLP99 = t.ITLP50, t.ITLP99
		f.LatencyMean = known(trial.Mean(t.Values((*trial.Outcome).Latency)))
	}
	later := t.Values(func(o *trial.Outcome) float64 {
		if o.Turn == 0 {
			return math.NaN()
		}
		return o.TTFT()
	})
	f.LaterP90 = known(trial.Quantile(later, .9))
	for i := range t.Outcomes {
		if o := &t.Outcomes[i]; o.First > 0 {
			f.PromptTokens += o.Prompt
			f.CachedTokens += o.Cached
		}
	}
	return Run{Scenario: t.Scenario, Strategy: t.Strategy, Peer: peer, Seed: t.Seed, Figures: f}
}

// known returns 0 for what is not a number, which JSON cannot hold.
func known(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}
