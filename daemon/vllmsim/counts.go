package vllmsim

import "time"

// counts are an engine's sums since its start, in simulated seconds and tokens.
type counts struct {
	PrefillSeconds float64
	ComputedTokens int64 // in prefill
	CachedTokens   int64
	Queries        int64 // prompt tokens looked up
	Generated      int64
	Prompt         int64
	Steps          int64
	Preemptions    int64
	Finished       [len(finishNames)]int64
}

// observeToken counts the token that q has just got, at e.clock.
func (e *engine) observeToken(q *sequence) {
	e.counts.Generated++
	if q.output == 1 {
		q.first = e.clock
		e.counts.Prompt += int64(q.prompt)
		e.ttft.observe((e.clock - q.arrived).Seconds())
	} else {
		e.interToken.observe((e.clock - q.last).Seconds())
	}
	q.last = e.clock
}

// Stats is what a worker has done since its start. Times are simulated seconds.
type Stats struct {
	ID             string  `json:"id"`
	Uptime         float64 `json:"uptime_seconds"`
	PrefillSeconds float64 `json:"prefill_seconds"` // prefill work done: its maximum over its mean is the imbalance of a fleet
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

func (e *engine) stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.advance()
	}
	c := &e.counts
	return Stats{
		ID: e.cfg.ID, Uptime: (time.Duration(float64(time.Since(e.start)) * e.cfg.Speed)).Seconds(),
		PrefillSeconds: c.PrefillSeconds, ComputedTokens: c.ComputedTokens, CachedTokens: c.CachedTokens,
		QueriedTokens: c.Queries, PromptTokens: c.Prompt, Generated: c.Generated,
		Finished: c.Finished[finishStop] + c.Finished[finishLength], Preemptions: c.Preemptions, Steps: c.Steps,
		Running: len(e.running), Waiting: len(e.waiting),
		Blocks: e.pool.usable(), BlocksHeld: e.pool.usable() - e.pool.free, BlocksCached: e.pool.cached,
		TTFTSum: e.ttft.sum, TTFTCount: e.ttft.count,
	}
}
