// A strategy that uses what ABI 1.1 brought: it turns tenants away in its own words, keeps the night's traffic on batch
// workers, takes the cheapest worker by the host's own score else, and sums up in the store what it learns beside the
// picks.
package main

import (
	"strconv"

	"github.com/warmpath/warmpath/sdk"
)

const (
	onBatch sdk.Reason = sdk.ReasonOwn + iota
	cheapest
	known
)

type observer struct{}

func (observer) Wants() sdk.Want {
	return sdk.WantCost | sdk.WantHeld | sdk.WantPair | sdk.WantCandidates | sdk.WantSessions
}

func (observer) Reasons() []string { return []string{"batch worker", "cheapest", "known elsewhere"} }

func (observer) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if t := sdk.Header("X-Tenant"); t == "blocked" {
		return r.Reject(403, "tenant "+strconv.Quote(t)+" is blocked", 60)
	}
	if sdk.Caller() == "nightly" {
		batch := r.Labeled("tier", "batch")
		for i := range workers {
			if workers[i].Labels&batch != 0 && r.Label(&workers[i], "pool") == "a" {
				return sdk.To(i).Because(onBatch)
			}
		}
	}
	if h, ok := sdk.PrefixBest(); ok && h.Row >= 0 {
		if p, ok := sdk.PrefixWorker(int(h.Row)); ok && p.Blocks > 0 && len(sdk.CacheTiers(int(h.Row))) == 2 {
			return sdk.To(int(h.Row)).Because(known)
		}
	}
	best := 0
	for i := range workers {
		if workers[i].Cost < workers[best].Cost {
			best = i
		}
	}
	return sdk.To(best).Because(cheapest)
}

// Filter keeps tenants that are allowed elsewhere from the workers of pool=a.
func (observer) Filter(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if sdk.Caller() == "" {
		return sdk.Decline
	}
	if t := sdk.Header("X-Tenant"); t == "blocked" {
		return r.Reject(403, "tenant "+strconv.Quote(t)+" is blocked", 60)
	}
	a := r.Labeled("pool", "a")
	return r.Keep(workers, func(w *sdk.Worker) bool { return w.Labels&a == 0 }).Because(onBatch)
}

// Classify lets the nightly caller wait behind all others.
func (observer) Classify(r *sdk.Request) (class int, weight float64) {
	if sdk.Caller() == "nightly" {
		return -5, .5
	}
	return int(r.QueueDepth), 0
}

func (observer) OnTick(now int64) { add("tick", now) }

func (observer) OnFirstToken(o *sdk.Outcome) { add("first", int64(o.Seq)) }

func (observer) OnComplete(o *sdk.Outcome) { add("complete", int64(o.OutputTokens)) }

func (observer) OnKVEvents(events []sdk.KVEvent) {
	for i := range events {
		add("event", int64(events[i].Tokens))
	}
}

// Plan moves the cheapest first, and nothing that takes no time.
func (observer) Plan(talks []sdk.Talk) {
	for i := range talks {
		talks[i].Value = 0
		if s := talks[i].Seconds; s > 0 {
			talks[i].Value = 1 / float64(s)
		}
	}
}

func add(key string, n int64) {
	if _, err := sdk.KVAdd(key, n, 0); err != nil {
		sdk.Log(sdk.Warn, err.Error())
	}
}

func init() { sdk.Register(observer{}) }

func main() {}
