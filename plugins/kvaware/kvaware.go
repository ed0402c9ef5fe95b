// Package kvaware is prefixaware's rule on what the workers themselves report of their caches, tier by tier.
//
// The host fills a row by the worker's KV events while these are live and the prompt's token ids are known, and says so
// by a bit of the row. Any other row has the routed history, as under prefixaware: so a worker whose events are cut is
// judged by history alone, and the others are not. A decision for a worker whose row is history's has the reason
// [sdk.ReasonPredicted]. The host logs which worker is blind and what to do. A longest match is counted over the whole
// prompt and over all candidates, and chat and completions are alike to it.
package kvaware

import (
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/score"
)

// New returns the strategy.
func New() sdk.Strategy { return &strategy{rule: score.Rule{ByCost: true}} }

type strategy struct{ rule score.Rule }

// Wants implements [sdk.Wanter].
func (*strategy) Wants() sdk.Want { return sdk.WantHeld | sdk.WantCost }

func (s *strategy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	d := s.rule.Route(r, workers)
	if row := d.Row(); row >= 0 && !workers[row].Live() {
		d = d.Because(sdk.ReasonPredicted)
	}
	return d
}
