package engine

import (
	"fmt"
	"time"
)

// Config describes one simulated worker. The zero value is an 8B model on an 80 GB card.
type Config struct {
	// KVTokens is the size of the KV cache. It is cut to whole blocks, of which one is vLLM's null block. Default 524,288,
	// about what an 8B model leaves free on an 80 GB card.
	KVTokens int
	// BlockTokens is the size of a KV block. Default 16, as vLLM's on a GPU; on a CPU that is 128.
	BlockTokens int
	// MaxModelLen bounds prompt and reply together. Default, and at most, what the KV cache holds; not above 1,048,576.
	MaxModelLen int
	// MaxBatchedTokens is the budget of a step, and so the chunk of a prefill. Default 8192.
	MaxBatchedTokens int
	// MaxSeqs is the number of sequences that run at once. Default 256.
	MaxSeqs int
	// CPUTokens is the size of the CPU tier, which keeps what the GPU forgets. Default 0, none.
	CPUTokens int
	// Shared is a tier behind the CPU tier that other engines may use too. Default nil, none.
	Shared *Tier
	// ChunkTokens is what the tiers store and drop as one, a multiple of BlockTokens. Default BlockTokens, as vLLM's
	// offloading; LMCache has 256.
	ChunkTokens int
	// CPUSeconds and SharedSeconds are the time to load one token from a tier. Defaults 1/120,000 and
	// 1/40,000.
	CPUSeconds    float64
	SharedSeconds float64
	// RemoteSeconds is the time to load one token from another engine. Default 1/40,000.
	RemoteSeconds float64
	// MaxLoras is the number of LoRA adapters that run at a time, and LoraSeconds what a step takes longer for each that
	// it loads. Default 0, no bound, and no time.
	MaxLoras    int
	LoraSeconds float64
	// Changes makes the engine record what changes in its caches. The caller then has to call TakeBatches.
	Changes bool
	// Gap is called with the time between two tokens of a sequence. Default nil: no calls.
	Gap func(time.Duration)
	// Model gives the duration of a step. The zero value is DefaultModel; where only Slowness is set, it slows the
	// default.
	Model Model
	// ShowEvery is the least simulated time between two events of kind Tokens of a sequence, 0 for one at each Advance. A
	// caller that asks only for first tokens and ends sets it to an hour; Advance then takes long strides.
	ShowEvery time.Duration
}

// BlockTokens is the default of Config.BlockTokens.
const BlockTokens = 16

// The times to load one token from a tier: an 8B model's token has 128 KB, which a CPU's memory gives at 16 GB/s and a
// network at 5 GB/s.
const (
	cpuSeconds    = 1. / 120_000
	sharedSeconds = 1. / 40_000
)

// Complete returns the configuration with its defaults filled in, or an error that names what is wrong.
func (c Config) Complete() (Config, error) {
	setDefault(&c.KVTokens, 524288)
	setDefault(&c.BlockTokens, BlockTokens)
	setDefault(&c.MaxModelLen, 1048576)
	setDefault(&c.MaxBatchedTokens, 8192)
	setDefault(&c.MaxSeqs, 256)
	setDefault(&c.ChunkTokens, c.BlockTokens)
	setDefault(&c.CPUSeconds, cpuSeconds)
	setDefault(&c.SharedSeconds, sharedSeconds)
	setDefault(&c.RemoteSeconds, sharedSeconds)
	slowness := c.Model.Slowness
	setDefault(&slowness, 1)
	if c.Model == (Model{Slowness: c.Model.Slowness}) {
		c.Model = DefaultModel()
	}
	c.Model.Slowness = slowness
	if c.KVTokens < 0 || c.BlockTokens < 0 || c.MaxModelLen < 0 || c.MaxBatchedTokens < 0 || c.MaxSeqs < 0 ||
		slowness < 0 || c.ShowEvery < 0 || c.CPUTokens < 0 || c.CPUSeconds < 0 || c.SharedSeconds < 0 ||
		c.RemoteSeconds < 0 || c.MaxLoras < 0 || c.LoraSeconds < 0 {
		return c, fmt.Errorf("engine: a negative size or speed in %+v; give a positive one, or 0 for the default", c)
	}
	if c.ChunkTokens < 1 || c.ChunkTokens%c.BlockTokens != 0 {
		return c, fmt.Errorf("engine: chunks of %d tokens are no multiple of blocks of %d; give a multiple",
			c.ChunkTokens, c.BlockTokens)
	}
	if c.KVTokens < 2*c.BlockTokens {
		return c, fmt.Errorf("engine: a KV cache of %d tokens holds no block beside the null block; give at least %d",
			c.KVTokens, 2*c.BlockTokens)
	}
	c.MaxModelLen = min(c.MaxModelLen, (c.KVTokens/c.BlockTokens-1)*c.BlockTokens)
	return c, nil
}

func setDefault[T int | float64](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
