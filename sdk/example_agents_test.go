package sdk_test

import (
	"fmt"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/score"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// family keeps a subagent where its parent is, unless it would wait there for longer than the prefill takes that it
// saves. All else goes by the score.
type family struct{ rule score.Rule }

func (s *family) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	home := int(r.ParentRow)
	if home < 0 || r.Turn > 1 {
		return s.rule.Route(r, workers)
	}
	best := 0
	for i := range workers {
		if r.TTFT(&workers[i]) < r.TTFT(&workers[best]) {
			best = i
		}
	}
	if workers[home].Room() < r.Edge(workers) || r.TTFT(&workers[home]) > r.TTFT(&workers[best]) {
		return s.rule.Route(r, workers)
	}
	return sdk.To(home).Because(sdk.ReasonOwn)
}

// A subagent begins with the tools and the system text of its parent, which its parent's worker holds.
func Example_subagents() {
	f := sdktest.NewFrame(3).Prompt(22_000).Hold(1, 20_000)
	f.Header.Session, f.Header.Parent, f.Header.Turn, f.Header.ParentRow = 8, 7, 1, 1
	f.Rows[1].InFlight = 1 // its parent, which goes on
	for _, wait := range []float64{0, 1, 5} {
		f.Rows[1].Wait = wait
		d := sdk.PickNative(&family{}, &f.Header, f.Rows, make([]uint32, 3))
		fmt.Printf("%g s of queue at the parent's worker: worker %d\n", wait, d.Row())
	}
	// Output:
	// 0 s of queue at the parent's worker: worker 1
	// 1 s of queue at the parent's worker: worker 1
	// 5 s of queue at the parent's worker: worker 0
}
