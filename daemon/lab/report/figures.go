package report

import (
	"fmt"
	"slices"
)

// Run is what one strategy did on one scenario with one seed.
type Run struct {
	Scenario string  `json:"scenario"`
	Strategy string  `json:"strategy"`
	Peer     bool    `json:"peer"` // a baseline: others are compared with the best of these
	Seed     uint64  `json:"seed"`
	Figures  Figures `json:"figures"`
}

// Figures are what a run measured. Times are in simulated seconds.
type Figures struct {
	Requests     int `json:"requests"`
	Lost         int `json:"lost"`  // of them: refused, or their worker went down while they streamed
	Moved        int `json:"moved"` // later turns that went to another worker than the turn before
	PromptTokens int `json:"prompt_tokens"`
	CachedTokens int `json:"cached_tokens"` // of the prompt tokens, found in any tier
	OutputTokens int `json:"output_tokens"`
	Preemptions  int `json:"preemptions"`
	Fallbacks    int `json:"fallbacks"` // choices that the host made, as the strategy failed or declined

	Seconds    float64 `json:"seconds"`     // from the first arrival to the last end
	GPUSeconds float64 `json:"gpu_seconds"` // paid for: summed over workers, the seconds up times the GPUs

	TTFTMean float64 `json:"ttft_mean"`
	TTFTP50  float64 `json:"ttft_p50"`
	TTFTP90  float64 `json:"ttft_p90"`
	TTFTP99  float64 `json:"ttft_p99"`
	LaterP90 float64 `json:"later_ttft_p90"` // of turns after a chat's first
	TPOTMean float64 `json:"tpot_mean"`      // seconds a token after the first
	TPOTP90  float64 `json:"tpot_p90"`

	// Of a scenario with roles.
	ITLP50      float64 `json:"itl_p50,omitempty"` // seconds between two tokens, of all tokens
	ITLP99      float64 `json:"itl_p99,omitempty"`
	LatencyMean float64 `json:"latency_mean,omitempty"` // from arrival to the last token

	Imbalance float64 `json:"imbalance"` // prefill seconds of the busiest worker over the mean
}

// HitRate returns the share of the prompt tokens that were found cached.
func (f *Figures) HitRate() float64 { return over(float64(f.CachedTokens), float64(f.PromptTokens)) }

// Throughput returns the output tokens a second.
func (f *Figures) Throughput() float64 { return over(float64(f.OutputTokens), f.Seconds) }

// Cost returns what 1,000 output tokens cost where a GPU costs price an hour.
func (f *Figures) Cost(price float64) float64 {
	return over(f.GPUSeconds/3600*price, float64(f.OutputTokens)/1000)
}

// over divides, and returns 0 where there is nothing to divide by.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// A figure is one column of the tables.
type figure struct {
	Key   string // in JSON
	Name  string // heads the column
	show  func(float64) string
	value func(f *Figures, price float64) float64
}

// The two figures that strategies are judged by.
const (
	ttftMean = "ttft_mean"
	ttftP90  = "ttft_p90"
)

var figures = []figure{
	named(ttftMean, "TTFT mean, s", seconds, func(f *Figures, _ float64) float64 { return f.TTFTMean }),
	named("ttft_p50", "p50", seconds, func(f *Figures, _ float64) float64 { return f.TTFTP50 }),
	named(ttftP90, "p90", seconds, func(f *Figures, _ float64) float64 { return f.TTFTP90 }),
	named("ttft_p99", "p99", seconds, func(f *Figures, _ float64) float64 { return f.TTFTP99 }),
	named("tpot_mean", "TPOT, ms", milliseconds, func(f *Figures, _ float64) float64 { return f.TPOTMean }),
	named("throughput", "tokens/s", whole, func(f *Figures, _ float64) float64 { return f.Throughput() }),
	named("hit_rate", "hit rate", percent, func(f *Figures, _ float64) float64 { return f.HitRate() }),
	named("imbalance", "imbalance", hundredths, func(f *Figures, _ float64) float64 { return f.Imbalance }),
	named("lost", "lost", whole, func(f *Figures, _ float64) float64 { return float64(f.Lost) }),
	named("moved", "moved", whole, func(f *Figures, _ float64) float64 { return float64(f.Moved) }),
	named("preemptions", "preempted", whole, func(f *Figures, _ float64) float64 { return float64(f.Preemptions) }),
	named("cost", "cost/1k", money, func(f *Figures, price float64) float64 { return f.Cost(price) }),
}

// ofRoles are further columns of a scenario with roles.
var ofRoles = []figure{
	named("itl_p50", "ITL p50, ms", milliseconds, func(f *Figures, _ float64) float64 { return f.ITLP50 }),
	named("itl_p99", "p99", milliseconds, func(f *Figures, _ float64) float64 { return f.ITLP99 }),
	named("latency_mean", "latency, s", seconds, func(f *Figures, _ float64) float64 { return f.LatencyMean }),
}

// columnsOf returns the figures that a scenario's table has.
func columnsOf(r *Report, scenario string) []figure {
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Scenario == scenario && run.Figures.ITLP50 > 0 {
			return slices.Concat(figures, ofRoles)
		}
	}
	return figures
}

func named(key, name string, show func(float64) string, value func(*Figures, float64) float64) figure {
	return figure{Key: key, Name: name, show: show, value: value}
}

func figureByKey(key string) *figure {
	for i := range figures {
		if figures[i].Key == key {
			return &figures[i]
		}
	}
	panic("BUG: no figure " + key)
}

// seconds shows three digits, and milliseconds at the finest.
func seconds(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func milliseconds(v float64) string { return fmt.Sprintf("%.1f", 1000*v) }
func whole(v float64) string        { return fmt.Sprintf("%.0f", v) }
func percent(v float64) string      { return fmt.Sprintf("%.1f %%", 100*v) }
func hundredths(v float64) string   { return fmt.Sprintf("%.2f", v) }
func money(v float64) string        { return fmt.Sprintf("%.5f", v) }
