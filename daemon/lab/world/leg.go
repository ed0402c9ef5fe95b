package world

import (
	"fmt"

	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// leg is the prefill of a request at another worker than the one that answers.
type leg struct {
	request *Request
	answers *machine
	machine *machine
	seq     engine.Sequence
}

// prefill has a worker compute the prompt of a request, which goes on to another one behind that.
func (w *world) prefill(q *Request, answers *machine, number int) {
	m := w.machines[number]
	if m.engine == nil || m == answers {
		w.err = fmt.Errorf("world: a router had worker %d compute the prompt of request %d, which is down or answers it", number,
			q.ID)
		return
	}
	q.leg = &leg{request: q, answers: answers, machine: m}
	seq := &q.leg.seq
	*seq = engine.NewSequence(q.IDs, "", 0, w.Engine.BlockTokens)
	seq.Owner, seq.MaxTokens, seq.Reply, seq.Keep = q.leg, 1, engine.NewReply(q.Turn.Answer), true
	m.sums.Requests++
	if err := m.engine.Submit(w.now-m.began, seq); err != nil {
		w.err = fmt.Errorf("world: the prompt of request %d does not fit: %w", q.ID, err)
		return
	}
	m.plan()
}

// handOver sends a request whose prompt is computed to the worker that answers, which loads the KV first.
func (w *world) handOver(l *leg) {
	q, o := l.request, &w.run.Outcomes[l.request.ID]
	q.started = true
	o.Cached = l.seq.CachedTokens()
	o.CPU, o.Shared = l.seq.Loaded()
	w.routers[q.router].(Pairer).Prefilled(w.now, q, o.Cached)
	w.called(q.router)
	q.seq.Remote = q.Prompt
	if err := l.answers.submit(w.now, q); err != nil {
		w.err = fmt.Errorf("world: request %d does not fit: %w", q.ID, err)
	}
}

// release has the prefiller free what it kept. A nil leg has nothing.
func (l *leg) release() {
	if l != nil {
		l.machine.engine.Release(&l.seq)
		l.machine.plan()
	}
}

// cached returns what the worker that answers says of the prompt's tokens that it did not compute.
func (q *Request) cached(o *trial.Outcome) int {
	if q.leg != nil {
		return q.seq.CachedTokens()
	}
	return o.Cached
}
