package served

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Split is the rule of a scenario with prefillers.
type Split struct {
	route.SplitRule
	Shared bool // the prefillers answer too
}

// SplitOf returns the rule of a scenario whose prefillers send so many tokens of KV a second.
func SplitOf(threshold int, rate float64) *Split {
	return &Split{SplitRule: route.SplitRule{Threshold: threshold, Fence: worker.Fence{worker.PrefillLabel}, Rate: rate}}
}

// answers returns the labels of the workers that may answer.
func (s *Split) answers() worker.Fence {
	if s.Shared {
		return nil
	}
	return worker.Fence{worker.Not + worker.PrefillLabel}
}

// sendPrefill has a prefiller compute the prompt of a request, as a request of its own. If none takes it, the worker
// that answers computes the prompt.
func sendPrefill(r *Router, v *visit, at time.Time) {
	l := r.visit()
	l.request = v.request
	parsed, err := l.parser.Parse(prompt.Completion, v.body)
	if err != nil {
		panic("BUG: served: a body that cannot be read: " + err.Error())
	}
	parsed.MaxTokens, parsed.Stream = 1, false
	l.ask = route.Ask{Prompt: parsed, At: at, Leg: route.Prefill, Shared: r.Split.Shared, Fence: r.Split.Fence,
		IDs: v.ask.IDs, Caller: v.ask.Caller, Headers: v.ask.Headers,
		Turn: r.pool.Arrive(model, r.Split.Fence, at), Random: r.chance.Uint64() | 1}
	if by, _ := route.Paired(&v.choice, v.to); by != nil {
		l.ask.Named = by.ID()
	}
	if r.pool.Choose(&l.choice, &l.ask) == route.Chosen {
		for to, left := l.choice.Next(at); left; to, left = l.choice.Next(at) {
			if l.choice.Send(&l.trip, to, nil, at) {
				v.prefill = l
				return
			}
		}
	}
	r.leave(l)
}

// Pair is a Router that has other workers compute prompts by its Split.
type Pair struct{ *Router }

// Prefiller implements [world.Pairer].
func (r Pair) Prefiller(_ time.Duration, q *world.Request) int {
	if v := q.Own.(*visit); v.prefill != nil {
		return r.fleet.numbers[v.prefill.trip.Worker().ID()]
	}
	return -1
}

// Prefilled implements [world.Pairer].
func (r Pair) Prefilled(now time.Duration, q *world.Request, cached int) {
	at, v := r.at(now), q.Own.(*visit)
	l := v.prefill
	l.trip.FirstByte(at)
	r.reply.Reset(prompt.Completion, true, 0)
	r.body = appendAnswer(r.body[:0], q.Prompt, 1, cached, q.Reply(1))
	r.reply.Feed(r.body)
	v.trip.Handed(v.to, at)
	l.choice.Answered(l.trip.Worker(), true)
	l.trip.End(&judge.Outcome{Kind: judge.Answered}, route.End{Whole: true, Status: 200, At: at, Reply: r.reply})
	r.settle()
	r.leave(l)
}

var _ world.Pairer = Pair{}

// Fleet returns the workers as the router knows them at that time, for a test that scales them.
func (r *Router) Fleet(now time.Duration) (*worker.Pool, time.Time) { return r.pool.Workers, r.at(now) }

// Drain takes a worker out of the choice, or puts it back.
func (r *Router) Drain(now time.Duration, number int, on bool) {
	r.pool.Workers.Drain(name(number), on, r.at(now))
}
