// Package kvaware is prefixaware's rule on what the workers themselves report of their caches, tier by tier.
//
// The host sets its events flag while every candidate's KV events are live. Without it the strategy takes the routed
// history, as prefixaware does, and says so: the reason is [sdk.ReasonPredicted], and each change is one line in the
// log. A longest match is counted over the whole prompt and over all candidates, and chat and completions are alike to
// it.
package kvaware

import (
	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/score"
)

// New returns the strategy.
func New() sdk.Strategy { return &strategy{view: score.Tiers} }

// strategy remembers the view it used last, for the log alone: each instance says it once, whatever the others do.
type strategy struct {
	rule score.Rule
	view score.View
}

func (s *strategy) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	view := score.Tiers
	if !r.FromEvents() {
		view = score.Predicted
	}
	if view != s.view {
		s.view = view
		announce(view)
	}
	return s.rule.Route(r, workers, view)
}

func announce(v score.View) {
	if v == score.Predicted {
		sdk.Log(sdk.Warn, "kvaware: no KV events for this request; routing by the routed history")
		return
	}
	sdk.Log(sdk.Info, "kvaware: KV events are back; routing by what the workers hold")
}
