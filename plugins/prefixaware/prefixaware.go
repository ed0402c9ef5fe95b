// Package prefixaware is the default strategy: a request goes where most of its prompt is believed cached, unless that
// costs more than it saves. The rule and its reasons are in package score.
//
// It has no options: each term of the score is in seconds and measured, so there is no weight to turn.
package prefixaware

import (
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/score"
)

// New returns the strategy.
func New() sdk.Strategy { return new(strategy) }

type strategy struct{ rule score.Rule }

func (s *strategy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	return s.rule.Route(r, workers, score.Tiers)
}
