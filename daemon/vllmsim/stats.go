package vllmsim

import (
	"time"

	"github.com/warmpath/warmpath/daemon/vllmsim/engine"
)

// Stats is what a worker has done since its start. Times are simulated seconds.
type Stats struct {
	ID             string  `json:"id"`
	Uptime         float64 `json:"uptime_seconds"`
	PrefillSeconds float64 `json:"prefill_seconds"` // work done: its maximum over its mean is a fleet's imbalance
	ComputedTokens int64   `json:"computed_tokens"`
	CachedTokens   int64   `json:"cached_tokens"`
	QueriedTokens  int64   `json:"queried_tokens"` // CachedTokens over this is the hit rate
	PromptTokens   int64   `json:"prompt_tokens"`
	Generated      int64   `json:"generated_tokens"`
	Finished       int64   `json:"finished"` // requests that ended by themselves
	Preemptions    int64   `json:"preemptions"`
	Steps          int64   `json:"steps"`
	Running        int     `json:"running"`
	Waiting        int     `json:"waiting"`
	Blocks         int     `json:"blocks"` // usable
	BlocksHeld     int     `json:"blocks_held"`
	BlocksCached   int     `json:"blocks_cached"`
	TTFTSum        float64 `json:"ttft_sum_seconds"`
	TTFTCount      int64   `json:"ttft_count"`
	Sessions       int     `json:"sessions"`      // live ones
	SessionBytes   int64   `json:"session_bytes"` // of their payloads
	SessionUses    int64   `json:"session_uses"`  // requests that named one
}

// newStats returns the stats of an engine that has been up for so much simulated time.
func newStats(id string, e *engine.Stats, uptime time.Duration) Stats {
	return Stats{
		ID:             id,
		Uptime:         uptime.Seconds(),
		PrefillSeconds: e.PrefillSeconds,
		ComputedTokens: e.ComputedTokens,
		CachedTokens:   e.CachedTokens,
		QueriedTokens:  e.QueriedTokens,
		PromptTokens:   e.PromptTokens,
		Generated:      e.GeneratedTokens,
		Finished:       e.Finished[engine.FinishStop] + e.Finished[engine.FinishLength],
		Preemptions:    e.Preemptions,
		Steps:          e.Steps,
		Running:        e.Running,
		Waiting:        e.Waiting,
		Blocks:         e.Blocks,
		BlocksHeld:     e.BlocksHeld,
		BlocksCached:   e.BlocksCached,
		TTFTSum:        e.TTFT.Sum,
		TTFTCount:      e.TTFT.Count,
	}
}
