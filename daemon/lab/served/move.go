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
	task  *relocate.Task // of a strategy's wish, in place of plan
	piece *relocate.Move
	visit *visit
	began time.Time
}

// copy copies the body of a request that the book is to keep: of all once the strategy has wished for something.
func (r *Router) copy(v *visit) {
	r.wishes = r.wishes || len(route.Wishes(&v.choice)) > 0
	if !r.HandOver && !r.wishes {
		return
	}
	v.kept = slices.Clone(r.body)
	if len(v.body) > 0 {
		v.kept = slices.Clone(v.body)
	}
}

// keep has the book keep a request that a worker answers, and take the strategy's wishes.
func (r *Router) keep(v *visit, at time.Time) {
	if v.kept == nil {
		return
	}
	t := &relocate.Turn{Worker: v.trip.Worker().ID(), Hashes: v.ask.Prompt.Chains[0].Hashes, Tokens: v.request.Prompt,
		Request: &relocate.Request{Body: v.kept, Named: v.ask.Claim.Key, Known: route.Talk(&v.choice)},
		Ends:    v.ask.Claim.Final}
	wishes := route.Wishes(&v.choice)
	t.Ends = t.Ends || slices.ContainsFunc(wishes, relocate.Wish.Ends)
	r.pool.Book.Answered(t, at)
	r.pool.Book.Wish(t, wishes, at)
	v.kept = nil
}

// Wished implements [world.Mover].
func (r *Router) Wished(now time.Duration) bool { return r.pool.Book.Wished(r.at(now)) }

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

// Stays implements [world.Mover].
func (r *Router) Stays(now time.Duration, number int) time.Duration {
	r.Drain(now, number, false)
	if !r.HandOver {
		return 0
	}
	r.joins = append(r.joins, name(number))
	return relocate.JoinTime
}

// join begins the moves to workers that have come, if none move away from another.
func (r *Router) join(at time.Time) {
	if slices.ContainsFunc(r.plans, func(p plan) bool { return !p.Joins() }) {
		return
	}
	for _, id := range r.joins {
		if p := r.pool.Book.Join(id, at); p != nil {
			r.plans = append(r.plans, plan{until: at.Add(relocate.JoinTime), Plan: p})
		}
	}
	r.joins = r.joins[:0]
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
			if sent, number := r.sendMove(&moving{plan: p.Plan, piece: m}, at); sent != nil {
				return sent, number
			}
			p.Moved(m, "", 0, at, at)
		}
	}
	for !r.Waiting() {
		t, m, _ := r.pool.Book.Due(at)
		if m == nil {
			break
		}
		if sent, number := r.sendMove(&moving{task: t, piece: m}, at); sent != nil {
			return sent, number
		}
		r.pool.Book.Did(t, m, relocate.Taken{}, at)
	}
	return nil, 0
}

// sendMove chooses a worker for a piece of a move, or of a wish.
func (r *Router) sendMove(own *moving, at time.Time) (*world.Move, int) {
	m := own.piece
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
	v.ask = route.Ask{Prompt: parsed, At: at, Away: true, To: m.To, Held: m.Held, Turn: r.pool.Arrive(model, nil, at),
		Random: r.chance.Uint64() | 1}
	if r.pool.Choose(&v.choice, &v.ask) == route.Chosen {
		for to, left := v.choice.Next(at); left; to, left = v.choice.Next(at) {
			if v.choice.Send(&v.trip, to, nil, at) {
				own.visit, own.began = v, at
				return &world.Move{Text: textOf(body), Own: own}, r.fleet.numbers[to.Worker.ID()]
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
	if own.task != nil {
		r.pool.Book.Did(own.task, own.piece, relocate.Taken{By: id, Cached: cached, Took: at.Sub(own.began)}, at)
		return
	}
	own.plan.Moved(own.piece, id, cached, own.began, at)
}

var _ world.Mover = (*Router)(nil)
