// Alike asks for all that the SDK gives; TestAlike holds the same program in the other languages to its answers.
package main

import (
	"math"
	"strings"

	"github.com/warmpath/warmpath/sdk"
)

type alike struct {
	scale float64
	zone  string
}

func (s *alike) Configure(o *sdk.Options) error {
	s.scale, s.zone = o.Float("scale", 2), o.String("zone", "b")
	return nil
}

func (*alike) Reasons() []string { return []string{"asked", "ranked"} }

func (*alike) Wants() sdk.Want { return sdk.WantPair }

func (s *alike) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if len(workers) < 30 { // the host tries a module on smaller fleets
		return sdk.Decline
	}
	switch r.Seq {
	case 0:
		for i, v := range s.values(r, workers) {
			_ = sdk.SetOwn(workers[i].Key, v)
		}
		sdk.Metric("asked", 1.5)
	case 1:
		var k sdk.Ranking
		for i := range workers {
			cost := float64(int(r.TTFT(&workers[i]))) // whole seconds: some are equal
			if i%5 == 0 {
				cost = math.NaN()
			}
			k.Enter(i, &workers[i], cost)
		}
		return k.Choose(r).Because(sdk.ReasonOwn + 1).Bind().Only()
	case 2:
		return r.Reject(451, "not here", 7).Because(sdk.ReasonOwn)
	case 3:
		return r.Unavailable(strings.Repeat("n", 300))
	case 4:
		return r.Hold(.25)
	case 5:
		return r.Pair(1, len(workers)-1)
	case 6:
		for i := range 100_000 {
			r.Then(i % len(workers))
		}
	}
	return sdk.To(0).Because(sdk.ReasonOwn)
}

func (s *alike) values(r *sdk.Request, workers []sdk.Worker) []float64 {
	number := func(text string) float64 { return float64(sdk.Hash(text) >> 11) }
	chance := 0.
	for range 100 {
		if r.Chance(.3) {
			chance++
		}
	}
	return []float64{s.scale, r.TTFT(&workers[1]), r.Prefill(&workers[2]), float64(workers[1].Matched()),
		workers[3].AdapterLoad(), float64(r.Labeled("zone", s.zone)), float64(r.Labeled("zone", "none")),
		number(r.Label(&workers[2], "zone")), number(r.Label(&workers[0], "zone")), number("acme"), number(""),
		sdk.Place(r.Session, &workers[1]), sdk.Place(sdk.Hash(sdk.Caller()), &workers[4]), sdk.Place(7, &workers[5]),
		number(sdk.Header("x-tier")), number(sdk.Header("x-none")), number(sdk.Session()), number(sdk.Model()),
		number(sdk.Tenant()), number(sdk.WorkerID(2)), chance, float64(r.Pick(1000)), float64(r.Pick(7)), float64(r.Pick(0))}
}

// Filter keeps the workers of a label, or those of the header's tier, or has no opinion.
func (s *alike) Filter(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	own := r.Labeled("zone", s.zone)
	switch r.Seq {
	case 1:
		return r.Keep(workers, func(w *sdk.Worker) bool { return w.Labels&own != 0 }).Because(sdk.ReasonOwn)
	case 2:
		return r.Keep(workers, func(w *sdk.Worker) bool { return r.Label(w, "tier") == "none" })
	case 3:
		return r.Reject(403, "no licence", 0)
	}
	return sdk.Decline
}

func (s *alike) Classify(r *sdk.Request) (int, float64) {
	if r.Labeled("zone", s.zone) != 0 {
		return 7, 1
	}
	if sdk.Header("x-tier") == "gold" {
		return 3, .5
	}
	return -2, 0
}

func (*alike) OnFirstToken(o *sdk.Outcome) {
	_ = sdk.SetOwn(o.Key, sdk.Own(o.Key)+float64(o.TTFT))
}

func (*alike) OnComplete(o *sdk.Outcome) { _ = sdk.SetOwn(o.Key, float64(o.OutputTokens)) }

func (*alike) OnKVEvents(events []sdk.KVEvent) {
	for i := range events {
		_ = sdk.SetOwn(events[i].Key, float64(1000*events[i].Kind+events[i].Tokens))
	}
}

func (*alike) Plan(talks []sdk.Talk) {
	for i := range talks {
		t := &talks[i]
		t.Value = float64(t.Gap)*float64(t.Tokens) - float64(t.Seconds)
	}
}

func init() { sdk.Register(&alike{scale: 2, zone: "b"}) }

func main() {}
