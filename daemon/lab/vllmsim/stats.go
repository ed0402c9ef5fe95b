package vllmsim

import (
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
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
	Loading        int     `json:"loading"`       // requests whose blocks come from a tier
	CPUTokens      int64   `json:"cpu_tokens"`    // of CachedTokens, those loaded from the CPU tier
	SharedTokens   int64   `json:"shared_tokens"` // those loaded from the shared tier
	ChunksOnCPU    int     `json:"chunks_on_cpu"`
	RemoteTokens   int64   `json:"remote_tokens"`   // those pulled from a prefill worker
	BlocksPinned   int     `json:"blocks_pinned"`   // of BlocksHeld, those that wait for a decode worker
	PinsExpired    int64   `json:"pins_expired"`    // prompts whose blocks nobody pulled in time
	AdapterLoads   int64   `json:"adapter_loads"`   // of LoRA adapters to the GPU
	BlocksStranded int64   `json:"blocks_stranded"` // of those prompts
	StaleRequests  int64   `json:"stale_requests"`  // got CachedTokens that other weights have computed
	StaleTokens    int64   `json:"stale_tokens"`    // these
	WeightVersion  string  `json:"weight_version,omitempty"`
	// Ranks has the same for each data-parallel rank where there are several; sessions are the worker's.
	Ranks []Stats `json:"ranks,omitempty"`
}

// newStats returns the stats of a worker that has been up for so much simulated time: the sums of its engines.
func newStats(id string, engines []engine.Stats, uptime time.Duration) Stats {
	sum := Stats{ID: id, Uptime: uptime.Seconds()}
	for i := range engines {
		one := Stats{ID: id, Uptime: uptime.Seconds()}
		one.add(&engines[i])
		sum.add(&engines[i])
		if len(engines) > 1 {
			sum.Ranks = append(sum.Ranks, one)
		}
	}
	return sum
}

// add adds what an engine has done.
func (s *Stats) add(e *engine.Stats) {
	s.PrefillSeconds += e.PrefillSeconds
	s.ComputedTokens += e.ComputedTokens
	s.CachedTokens += e.CachedTokens
	s.QueriedTokens += e.QueriedTokens
	s.PromptTokens += e.PromptTokens
	s.Generated += e.GeneratedTokens
	s.Finished += e.Finished[engine.FinishStop] + e.Finished[engine.FinishLength]
	s.Preemptions += e.Preemptions
	s.Steps += e.Steps
	s.Running += e.Running
	s.Waiting += e.Waiting
	s.Blocks += e.Blocks
	s.BlocksHeld += e.BlocksHeld
	s.BlocksCached += e.BlocksCached
	s.TTFTSum += e.TTFT.Sum
	s.TTFTCount += e.TTFT.Count
	s.Loading += e.Loading
	s.CPUTokens += e.CPUTokens
	s.SharedTokens += e.SharedTokens
	s.RemoteTokens += e.RemoteTokens
	s.BlocksPinned += e.BlocksPinned
	s.ChunksOnCPU += e.ChunksOnCPU
	s.AdapterLoads += e.AdapterLoads
	s.StaleRequests += e.StaleRequests
	s.StaleTokens += e.StaleTokens
}
