package vllmsim

import (
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// The time model, in seconds of one worker of slowness 1. A prefill of n tokens behind p known ones costs
//
//	c1*n + c2*n*(p + n/2)
//
// so that chunks add up to the cost of the whole, c1*n + c2*n*(L-n/2) for the last n tokens of a prompt of L. c1 and
// c2 are those of sdk/abi: 15,000 tokens take 1.23 s.
//
// A step of decodes alone reads the weights once, stepSeconds, and adds decodeSeconds for each sequence: 64 sequences make
// tokens every 18 ms. A step with prefill reads the weights under cover of the arithmetic, hence the larger of the two.
const (
	stepSeconds   = 0.012
	decodeSeconds = 0.0001
)

// prefillCost is the work of n new tokens behind p known ones.
func prefillCost(n, p int) float64 {
	return float64(n) * (abi.PrefillSeconds + abi.ContextSeconds*(float64(p)+float64(n)/2))
}

// stepCost is the duration of an engine step with so much prefill work and so many decoding sequences.
func stepCost(prefill float64, decodes int, slowness float64) time.Duration {
	s := max(prefill, stepSeconds) + decodeSeconds*float64(decodes)
	return time.Duration(s * slowness * float64(time.Second))
}
