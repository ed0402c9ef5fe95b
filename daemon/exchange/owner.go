package exchange

import (
	"hash/maphash"

	"github.com/warmpath/warmpath/daemon/worker"
)

// errForeign is the end of an answer that belongs to another request, in the words of the worker's record.
const errForeign = "gave the answer to another request"

var marks = maphash.MakeSeed()

// markOf returns the mark of a request's id for the transport. Clients may give two requests one id, whose answers
// could not be told apart.
func markOf(id string) uint64 { return maphash.String(marks, id) }

// expect has the reply compare the ids of the answer with the request's, by the worker's habit.
func (b *body) expect() {
	b.habit = b.r.pool.Clients.habit(b.a.trip.Worker().URL(), b.r.read.req.Kind, b.events)
	b.reply.Expect(b.habit.mark(b.r.in.ID, b.a.resp.FirstUse(), b.r.mistaken))
}

// foreign reports whether an id has shown that the answer, or a part of a stream, belongs to another request.
func (b *body) foreign() bool { return b.reply != nil && b.reply.Foreign() }

// discardForeign ends an attempt whose answer belongs to another request. That is nobody's answer any more.
func (b *body) discardForeign() *failure {
	o := b.noteForeign()
	return b.discard(o, &failure{reason: reasonForeign, fault: FaultUpstream, grade: gradeSilent})
}

// noteForeign counts and logs an answer that belongs to another request. Its connection is out of step, and others of
// that worker may be: none serves another request.
func (b *body) noteForeign() worker.Outcome {
	w := b.a.trip.Worker()
	b.r.mistaken = true
	b.habit.refused(b.r.in.ID, b.a.resp.FirstUse())
	b.a.resp.Reject()
	if client := b.r.pool.Clients.Get(w.URL()); client != nil {
		client.Retire()
	}
	b.r.journal.foreign(b.r.in, b.r.pool, w)
	return worker.Outcome{Kind: worker.Broken, Err: errForeign}
}

// learnHabit learns from an answer that came whole where the worker's ids have the request's.
func (b *body) learnHabit(whole bool) {
	if b.reply != nil && whole && !b.reply.Failed() {
		owner, frame := b.reply.Owner()
		b.habit.learn(b.r.in.ID, owner, frame)
	}
}
