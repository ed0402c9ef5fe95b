package route

import (
	"math"
	"sync/atomic"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// scale is a pool's running estimate of tokens per byte of canonical prompt text, from the prompt_tokens that its
// workers report. It starts at 1/4, English prose under the usual vocabularies.
type scale struct {
	bits    atomic.Uint64 // math.Float64bits; 0 = start value
	samples atomic.Uint32
}

const startTokensPerByte = 0.25

func (s *scale) tokensPerByte() float64 {
	if b := s.bits.Load(); b != 0 {
		return math.Float64frombits(b)
	}
	return startTokensPerByte
}

// correct takes one request's figures. It leaves out short prompts, which are mostly template. The n-th sample counts
// 1/n, from the 32nd on 1/32: the first ones outweigh the initial guess, and later one odd prompt moves nothing.
// Samples out of [1/64, 2] are images or counts of something else.
func (s *scale) correct(tokens, bytes int) {
	if bytes < 512 || tokens <= 0 {
		return
	}
	x := float64(tokens) / float64(bytes)
	if x < 1./64 || x > 2 {
		return
	}
	n := min(s.samples.Add(1), 32)
	old := s.tokensPerByte()
	s.bits.Store(math.Float64bits(old + (x-old)/float64(n)))
}

// start sets the estimate before the first sample. It counts as eight samples: it was learnt, but perhaps of others.
func (s *scale) start(tokensPerByte float64) {
	if tokensPerByte >= 1./64 && tokensPerByte <= 2 && s.samples.CompareAndSwap(0, 8) {
		s.bits.Store(math.Float64bits(tokensPerByte))
	}
}

// textBlock returns the tokens in a block of text.
func (s *scale) textBlock() float64 { return s.tokensPerByte() * prompt.BlockBytes }

// tokens returns the length of a prompt in tokens, and the tokens in one of its blocks.
func (s *scale) tokens(c *prompt.Chain) (length int, block float64) {
	if c.Tokens > 0 {
		return c.Tokens, prompt.BlockTokens
	}
	return int(float64(c.Bytes) * s.tokensPerByte()), s.textBlock()
}
