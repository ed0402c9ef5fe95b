package engine

import (
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Model gives the time that a worker needs for what it computes. A prefill of n tokens behind p known ones costs
//
//	PrefillSeconds*n + ContextSeconds*n*(p + n/2)
//
// so that chunks add up to the cost of the whole.
//
// A step of decodes alone reads the weights once, StepSeconds, and adds DecodeSeconds for each sequence, and for each
// of its tokens DecodeContextSeconds. The default model has none of these: 64 sequences make tokens every 18 ms. A step
// with prefill reads the weights under cover of the arithmetic, hence the larger of the two.
type Model struct {
	// PrefillSeconds is the prefill of one token, attention aside.
	PrefillSeconds float64
	// ContextSeconds is added to the prefill of a token for each token before it.
	ContextSeconds float64
	// StepSeconds is the least that a step takes.
	StepSeconds float64
	// DecodeSeconds is added to a step for each sequence that gets one more token.
	DecodeSeconds float64
	// DecodeContextSeconds is added for each token before those: the KV that attention reads from memory.
	DecodeContextSeconds float64
	// Slowness multiplies the duration of every step: 2 is a worker half as fast. 0 is 1.
	Slowness float64
}

// DefaultModel returns the model that the router starts from: the prefill of sdk/abi, and the steps of an 8B model.
func DefaultModel() Model {
	return Model{
		PrefillSeconds: abi.PrefillSeconds,
		ContextSeconds: abi.ContextSeconds,
		StepSeconds:    0.012,
		DecodeSeconds:  0.0001,
		Slowness:       1,
	}
}

// Prefill returns the seconds of work of n new tokens behind p known ones, slowness aside.
func (m *Model) Prefill(n, p int) float64 {
	return float64(n) * (m.PrefillSeconds + m.ContextSeconds*(float64(p)+float64(n)/2))
}

// Step returns the duration of a step with so many seconds of prefill and so many decoding sequences, which have so
// many tokens together.
func (m *Model) Step(prefill float64, decodes, context int) time.Duration {
	s := max(prefill, m.StepSeconds) + m.DecodeSeconds*float64(decodes) + m.DecodeContextSeconds*float64(context)
	return time.Duration(s * m.Slowness * float64(time.Second))
}
