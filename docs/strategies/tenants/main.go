// Tenants gives each API key workers of its own, those with the label for=NAME OF THE KEY. A request spills over to a
// worker that is nobody's where it would begin so much sooner, and never to another key's. To keep that while the
// module fails too, and for sessions that are bound, set on_failure = "reject", or [[keys]] workers, which no strategy
// can leave.
//
//	options = { spill = .5 }           # seconds
package main

import "github.com/warmpath/warmpath/sdk"

type tenants struct{ spill float64 }

func (s *tenants) Configure(o *sdk.Options) error {
	s.spill = o.Float("spill", .5)
	return nil
}

func (s *tenants) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	own := r.Labeled("for", sdk.Caller())
	var k sdk.Ranking
	for i := range workers {
		switch w := &workers[i]; {
		case w.Labels&own != 0:
			k.Enter(i, w, r.TTFT(w))
		case r.Label(w, "for") == "":
			k.Enter(i, w, s.spill+r.TTFT(w))
		}
	}
	if d := k.Choose(r); d != sdk.Decline {
		return d.Because(sdk.ReasonCost).Only()
	}
	return r.Unavailable("no worker of this key is up and has room")
}

func init() { sdk.Register(&tenants{spill: .5}) }

func main() {}
