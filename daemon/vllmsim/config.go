package vllmsim

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/daemon/vllmsim/engine"
)

// Config describes one simulated worker. The zero value serves the model "sim" in real time.
type Config struct {
	// ID names the worker in /sim/stats. Default "sim".
	ID string
	// Models are the served names of the one model, the first being the one that answers carry. Default ["sim"].
	Models []string
	// KVTokens, BlockTokens, MaxModelLen, MaxBatchedTokens and MaxSeqs are those of engine.Config, with its defaults.
	KVTokens         int
	BlockTokens      int
	MaxModelLen      int
	MaxBatchedTokens int
	MaxSeqs          int
	// Speed is how many simulated seconds pass in a second. Default 1. Above 1 a stream gets at most one event in 10 ms.
	Speed float64
	// Slowness multiplies the duration of every step: 2 is a worker half as fast. Default 1.
	Slowness float64
	// ReplyTokens is the mean length of a reply that ends by itself. Default 64.
	ReplyTokens int
	// APIKey is the bearer key that paths under /v1, /v2 and /inference ask for, as --api-key. Default none.
	APIKey string
	// Sessions makes the worker stateful, as SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true does. Off, it refuses what names a
	// session.
	Sessions bool
	// SessionLife is how long a session lives from its opening, as SAGEMAKER_SESSIONS_EXPIRATION. Default 20 minutes.
	SessionLife time.Duration
	// Seed varies the replies. Workers of one seed answer alike.
	Seed uint64
}

// flushEvery is how often a stream of an accelerated worker gets an event, in wall time.
const flushEvery = 10 * time.Millisecond

func (c Config) withDefaults() (Config, error) {
	if c.ID == "" {
		c.ID = "sim"
	}
	if len(c.Models) == 0 {
		c.Models = []string{"sim"}
	}
	setDefault(&c.Speed, 1)
	setDefault(&c.ReplyTokens, 64)
	setDefault(&c.SessionLife, sessionLife)
	if c.Speed < 0 || c.ReplyTokens < 0 || c.SessionLife < 0 {
		return c, fmt.Errorf("vllmsim: a negative size or speed in %+v; give a positive one, or 0 for the default", c)
	}
	e, err := c.engine().Complete()
	if err != nil {
		return c, fmt.Errorf("vllmsim: %w", err)
	}
	c.BlockTokens = e.BlockTokens
	c.MaxModelLen = e.MaxModelLen
	return c, nil
}

// engine returns the configuration of the worker's engine.
func (c Config) engine() engine.Config {
	e := engine.Config{
		KVTokens:         c.KVTokens,
		BlockTokens:      c.BlockTokens,
		MaxModelLen:      c.MaxModelLen,
		MaxBatchedTokens: c.MaxBatchedTokens,
		MaxSeqs:          c.MaxSeqs,
		Model:            engine.Model{Slowness: c.Slowness},
	}
	if c.Speed > 1 {
		e.ShowEvery = time.Duration(float64(flushEvery) * c.Speed)
	}
	return e
}

func setDefault[T int | float64 | time.Duration](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}
