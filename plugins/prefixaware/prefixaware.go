package prefixaware

import (
	"errors"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// New returns the strategy.
func New() sdk.Strategy { return &strategy{rule: score.Rule{ByCost: true}} }

type strategy struct {
	rule      score.Rule
	blocks    uint32 // that count as cached; 0 = all
	threshold uint32 // requests in flight at which to spill; 0 = never
	shown     []sdk.Worker
}

// Configure takes the options.
func (s *strategy) Configure(o *sdk.Options) error {
	length, threshold := o.Int("prefix_length", 0), o.Int("concurrency_threshold", 0)
	if length != 0 && (length < 1024 || length > 65536) {
		return errors.New("prefixaware: prefix_length is out of range; " +
			"write bytes from 1024 to 65536, or leave it out for all")
	}
	if threshold < 0 || threshold > 1024 {
		return errors.New("prefixaware: concurrency_threshold is out of range; " +
			"write requests from 1 to 1024, or leave it out")
	}
	s.blocks, s.threshold = uint32(length/abi.BlockBytes), uint32(threshold)
	s.rule.ByCost = s.blocks == 0 && s.threshold == 0
	return nil
}

// Wants asks for the host's scores, which are the same and cost it less. They do not fit where the options change what
// is scored.
func (s *strategy) Wants() sdk.Want {
	if s.rule.ByCost {
		return sdk.WantCost | sdk.WantCandidates
	}
	return 0
}

// full is the delay of a worker at the threshold, in seconds: it comes after all others. It is no wait, which would
// raise the mean wait of all workers. If all are at the threshold none is delayed.
const full = 1e6

// Route scores the workers as the options let them be seen.
func (s *strategy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if s.blocks > 0 || s.threshold > 0 {
		workers = s.seen(workers)
	}
	return s.rule.Route(r, workers)
}

// seen is the workers with no more of the prompt than counts, and those at the threshold last.
func (s *strategy) seen(workers []sdk.Worker) []sdk.Worker {
	s.shown = append(s.shown[:0], workers...)
	spill := false
	for i := range workers {
		spill = spill || workers[i].InFlight < s.threshold
	}
	for i := range s.shown {
		w := &s.shown[i]
		if left := s.blocks; left > 0 {
			for _, n := range [...]*uint32{&w.GPU, &w.L1, &w.L2} {
				*n = min(*n, left)
				left -= *n
			}
		}
		if spill && w.InFlight >= s.threshold {
			w.Delay += full
		}
	}
	return s.shown
}
