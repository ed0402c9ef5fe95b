package served

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/relocate"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// bookBytes bounds the conversations that a router keeps to move them.
const bookBytes = 8 << 30

// moving is a move under way.
type moving struct {
	plan  *relocate.Plan
	piece *relocate.Move
	visit *visit
	began time.Time
}

// keep has the book keep a request that a worker answers.
func (r *Router) keep(v *visit, at time.Time) {
	if v.kept == nil {
		return
	}
	q := v.request
	r.pool.Book.Answered(&relocate.Turn{Worker: v.trip.Worker().ID(), Hashes: v.ask.Prompt.Chains[0].Hashes,
		Tokens: q.Prompt, Request: &relocate.Request{Body: v.kept, Caller: nil}}, at)
	v.kept = nil
}

// Leaves implements [world.Mover].
func (r *Router) Leaves(now time.Duration, number int, within time.Duration) {
	r.Drain(now, number, true)
	if r.HandOver {
		at := r.at(now)
		r.plans = append(r.plans, plan{until: at.Add(within),
			Plan: r.pool.Book.Plan(name(number), at, at.Add(within))})
	}
}

// plan is the moves away from a worker, or to one.
type plan struct {
	*relocate.Plan
	until time.Time
}

// joinTime is the daemon's.
const joinTime = time.Minute

// Stays implements [world.Mover].
func (r *Router) Stays(now time.Duration, number int) {
	r.Drain(now, number, false)
	if r.HandOver {
		r.joins = append(r.joins, name(number))
	}
}

// join begins the moves to workers that have come, if there are no other moves.
func (r *Router) join(at time.Time) {
	if len(r.plans) > 0 || len(r.joins) == 0 {
		return
	}
	if p := r.pool.Book.Join(r.joins[0], at, at.Add(joinTime)); p != nil {
		r.plans = append(r.plans, plan{until: at.Add(joinTime), Plan: p})
	}
	r.joins = r.joins[1:]
}

// Move implements [world.Mover].
func (r *Router) Move(now time.Duration) (*world.Move, int) {
	at := r.at(now)
	r.plans = slices.DeleteFunc(r.plans, func(p plan) bool {
		if at.Before(p.until) {
			return false
		}
		p.End()
		return true
	})
	r.join(at)
	for _, p := range r.plans {
		for m, _ := p.Next(at); m != nil; m, _ = p.Next(at) {
			if sent, number := r.sendMove(p.Plan, m, at); sent != nil {
				return sent, number
			}
			p.Moved(m, "", 0, at, at)
		}
	}
	return nil, 0
}

// sendMove chooses a worker for a piece of a move.
func (r *Router) sendMove(p *relocate.Plan, m *relocate.Move, at time.Time) (*world.Move, int) {
	body := m.Body
	if !m.Whole {
		body = relocate.Part(body, m.Share())
	}
	v := r.visit()
	parsed, err := v.parser.Parse(prompt.Completion, body)
	if err != nil {
		panic("BUG: served: a body that cannot be read: " + err.Error())
	}
	parsed.MaxTokens, parsed.Stream = 1, false
	v.ask = route.Ask{Prompt: parsed, At: at, Away: true, To: m.To, Turn: r.pool.Arrive(model, nil, at),
		Random: r.chance.Uint64() | 1}
	if r.pool.Choose(&v.choice, &v.ask) == route.Chosen {
		for to, left := v.choice.Next(at); left; to, left = v.choice.Next(at) {
			if v.choice.Send(&v.trip, to, nil, at) {
				return &world.Move{Text: textOf(body), Own: &moving{plan: p, piece: m, visit: v, began: at}},
					r.fleet.numbers[to.Worker.ID()]
			}
		}
	}
	r.leave(v)
	return nil, 0
}

// Moved implements [world.Mover].
func (r *Router) Moved(now time.Duration, m *world.Move, ok bool) {
	own, at := m.Own.(*moving), r.at(now)
	v := own.visit
	id, cached := "", 0
	if ok {
		tokens := 0
		id = v.trip.Worker().ID()
		tokens, cached = m.Prompt()
		v.trip.FirstByte(at)
		r.reply.Reset(prompt.Completion, true, 0)
		r.body = appendAnswer(r.body[:0], tokens, 1, cached, "a")
		r.reply.Feed(r.body)
		v.choice.Answered(v.trip.Worker(), true)
		v.trip.End(&judge.Outcome{Kind: judge.Answered}, route.End{Whole: true, Status: 200, At: at, Reply: r.reply})
	} else {
		v.choice.Unreached(v.trip.Worker())
		v.trip.End(&judge.Outcome{Kind: judge.Broken, Err: "closed or reset the connection before the end of its answer"},
			route.End{At: at})
	}
	r.settle()
	r.leave(v)
	own.plan.Moved(own.piece, id, cached, own.began, at)
}

var _ world.Mover = (*Router)(nil)
