package vllmsim

import (
	"fmt"
	"time"
)

// Config describes one simulated worker. The zero value serves the model "sim" in real time.
type Config struct {
	// ID names the worker in /sim/stats. Default "sim".
	ID string
	// Models are the served names of the one model, the first being the one that answers carry. Default ["sim"].
	Models []string
	// KVTokens is the size of the KV cache; it is cut to whole blocks, of which one is vLLM's null block.
	// Default 524,288, about what an 8B model leaves free on an 80 GB card.
	KVTokens int
	// BlockTokens is the size of a KV block in tokens. Default 16, as vLLM's on a GPU; on a CPU that is 128.
	BlockTokens int
	// Speed is how many simulated seconds pass in a second. Default 1. Above 1 a stream gets at most one event in 10 ms.
	Speed float64
	// Slowness multiplies the duration of every step: 2 is a worker half as fast. Default 1.
	Slowness float64
	// MaxModelLen bounds prompt and reply together. Default, and at most, what the KV cache holds; not above 1,048,576.
	MaxModelLen int
	// MaxBatchedTokens is the budget of a step, and so the chunk of a prefill. Default 8192.
	MaxBatchedTokens int
	// MaxSeqs is the number of sequences that run at once. Default 256.
	MaxSeqs int
	// ReplyTokens is the mean length of a reply that ends by itself. Default 64.
	ReplyTokens int
	// APIKey is the bearer key that paths under /v1, /v2 and /inference ask for, as --api-key. Default none.
	APIKey string
	// Sessions makes the worker stateful, as SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true does. Off, it refuses what names a session.
	Sessions bool
	// SessionLife is how long one lives from its opening, as SAGEMAKER_SESSIONS_EXPIRATION. Default 20 minutes.
	SessionLife time.Duration
	// Seed varies the replies. Workers of one seed answer alike.
	Seed uint64
}

func (c Config) withDefaults() (Config, error) {
	if c.ID == "" {
		c.ID = "sim"
	}
	if len(c.Models) == 0 {
		c.Models = []string{"sim"}
	}
	setDefault(&c.KVTokens, 524288)
	setDefault(&c.BlockTokens, BlockTokens)
	setDefault(&c.Speed, 1)
	setDefault(&c.Slowness, 1)
	setDefault(&c.MaxBatchedTokens, 8192)
	setDefault(&c.MaxSeqs, 256)
	setDefault(&c.ReplyTokens, 64)
	setDefault(&c.MaxModelLen, 1048576)
	setDefault(&c.SessionLife, sessionLife)
	if c.KVTokens < 2*c.BlockTokens {
		return c, fmt.Errorf("vllmsim: a KV cache of %d tokens holds no block beside the null block; give at least %d", c.KVTokens, 2*c.BlockTokens)
	}
	if c.Speed < 0 || c.Slowness < 0 || c.MaxModelLen < 0 || c.MaxBatchedTokens < 0 || c.MaxSeqs < 0 || c.ReplyTokens < 0 || c.SessionLife < 0 ||
		c.BlockTokens < 0 {
		return c, fmt.Errorf("vllmsim: a negative size or speed in %+v; give a positive one, or 0 for the default", c)
	}
	c.MaxModelLen = min(c.MaxModelLen, (c.KVTokens/c.BlockTokens-1)*c.BlockTokens)
	return c, nil
}

func setDefault[T int | float64 | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
