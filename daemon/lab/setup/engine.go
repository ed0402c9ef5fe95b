package setup

import (
	"fmt"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Engine is one worker of a fleet, in the words of a scenario's [engine] and of a model's file.
type Engine struct {
	About string `toml:"about"`

	GPUs   float64 `toml:"gpus"`     // of a worker
	Hourly float64 `toml:"gpu_hour"` // price of one GPU for an hour

	KVTokens         int `toml:"kv_tokens"` // 0 here and below: as package engine has it
	BlockTokens      int `toml:"block_tokens"`
	MaxModelLen      int `toml:"max_model_len"`
	MaxBatchedTokens int `toml:"max_batched_tokens"`
	MaxSeqs          int `toml:"max_seqs"`

	PrefillRate    float64 `toml:"prefill_tokens_per_second"` // attention aside
	Attention      float64 `toml:"attention_tokens"`          // prompt length at which attention costs as much as the rest
	Step           float64 `toml:"step_seconds"`
	Decode         float64 `toml:"decode_seconds"`
	DecodeContext  float64 `toml:"decode_context_seconds"`
	CPUTokens      int     `toml:"cpu_kv_tokens"` // 0 = no such tier
	CPURate        float64 `toml:"cpu_tokens_per_second"`
	SharedTokens   int     `toml:"shared_kv_tokens"` // 0 = no such tier
	SharedRate     float64 `toml:"shared_tokens_per_second"`
	ChunkTokens    int     `toml:"chunk_tokens"`
	PoolPrefill    float64 `toml:"pool_prefill_tokens_per_second"` // [[pools]] prefill_tokens_per_second; 0 = the default
	ScrapeInterval float64 `toml:"scrape_seconds"`                 // of a worker's metrics
}

// Bounds of an engine's numbers, far beyond any that exist: times of a run stay within what a clock can hold.
const (
	most        = 1e9
	longest     = 3600 // seconds
	leastScrape = .01  // seconds: each reads the metrics of all workers
)

// check returns what is wrong with the numbers that Config would take for not given, or that no clock can hold.
func (e *Engine) check() error {
	for _, f := range []struct {
		key         string
		value, most float64
	}{
		{"gpus", e.GPUs, most}, {"gpu_hour", e.Hourly, most}, {"prefill_tokens_per_second", e.PrefillRate, most},
		{"attention_tokens", e.Attention, most}, {"step_seconds", e.Step, longest}, {"decode_seconds", e.Decode, longest},
		{"decode_context_seconds", e.DecodeContext, longest}, {"cpu_tokens_per_second", e.CPURate, most},
		{"shared_kv_tokens", float64(e.SharedTokens), 1e15}, {"shared_tokens_per_second", e.SharedRate, most},
		{"pool_prefill_tokens_per_second", e.PoolPrefill, most}, {"scrape_seconds", e.ScrapeInterval, longest},
	} {
		if !(f.value >= 0 && f.value <= f.most) {
			return fmt.Errorf("engine.%s is %g; give a number from 0 to %g", f.key, f.value, f.most)
		}
	}
	if e.ScrapeInterval > 0 && e.ScrapeInterval < leastScrape {
		return fmt.Errorf("engine.scrape_seconds is %g; give %g at least, or 0 for the default", e.ScrapeInterval,
			leastScrape)
	}
	return nil
}

// Config returns the engine's own configuration.
func (e *Engine) Config() engine.Config {
	m := engine.DefaultModel()
	if e.PrefillRate > 0 {
		m.PrefillSeconds = 1 / e.PrefillRate
	}
	if e.Attention > 0 {
		m.ContextSeconds = 2 * m.PrefillSeconds / e.Attention
	}
	if e.Step > 0 {
		m.StepSeconds, m.DecodeSeconds = e.Step, e.Decode
	}
	m.DecodeContextSeconds = e.DecodeContext
	c := engine.Config{KVTokens: e.KVTokens, BlockTokens: e.BlockTokens, MaxModelLen: e.MaxModelLen,
		MaxBatchedTokens: e.MaxBatchedTokens, MaxSeqs: e.MaxSeqs, CPUTokens: e.CPUTokens, ChunkTokens: e.ChunkTokens,
		Model: m}
	if e.CPURate > 0 {
		c.CPUSeconds = 1 / e.CPURate
	}
	if e.SharedRate > 0 {
		c.SharedSeconds = 1 / e.SharedRate
	}
	return c
}
